"""Exchange: solve a semi-infinite LP by adding the rows that its last answer violates.

One warm HiGHS model holds a finite working set of rows. Each iteration solves it, looks for the
local maxima of every family's excess, adds them, and drops rows that have long been slack. The
LP's value is a bound throughout, because it knows only some of the rows. At the end the answer is
moved towards a Slater point, just far enough to satisfy every row that the search can find, so that
[bound, objective] is a bracket of the optimum.

The same loop serves the continuum and a finite grid; only the search differs. (The method is the
outer approximation of Blankenship and Falk, 1976, with many points an iteration; the bracket follows
from convexity: lambda = v / (v + s) of the way to a point with room s removes a violation v.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from osilp_pyomo.clusters import cluster_means
from osilp_pyomo.domains import FloatArray
from osilp_pyomo.errors import SolverError
from osilp_pyomo.feasibility import repaired, slater_point
from osilp_pyomo.highs import HighsModel, LPSolution
from osilp_pyomo.problem import IntArray, SemiInfiniteLP
from osilp_pyomo.rays import ray_problem
from osilp_pyomo.scaling import scaling_for
from osilp_pyomo.search import FiniteSearch, Found, Search, apart

# A row that was slack this many times in a row while the bound moved is dropped.
_PATIENCE = 6
# Rows added for one family in one iteration at most.
_ADDED = 200
# Binding rows within these distances, in widths of the domain, may straddle one binding point.
_CLUSTER_RADII = (0.15, 0.01)
# So many iterations without less violation, at a violation this small, are the limit of rounding; whether the
# answer is good enough is for the bracket and the audit to say.
_STALLED, _ROUNDING = 15, 1e-6
# A move towards a Slater point can uncover a violation that was hidden beside a larger one.
_REPAIRS = 3
# A direction that improves the objective by more than this share of its largest cost, over a unit box, is a ray.
_RAY = 1e-7
# Unbounded LPs in a row, each with rows that should have bounded it, before the question is left open.
_MOST_RAYS = 20


@dataclass(frozen=True)
class ExchangeOptions:
    """When to stop.

    ``tolerance`` is the violation that counts as none, relative to the size of the row's terms.
    """

    tolerance: float = 1e-9
    iteration_limit: int = 500
    time_limit: float | None = None
    report: Callable[[dict[str, Any]], None] | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """How an exchange ended; arrays are None where there is no answer.

    ``points`` and ``duals`` hold the working set of each family and its row duals (None for a model
    with integers), ``found`` what the search found at x.
    """

    status: str
    objective: float
    bound: float
    x: FloatArray | None = None
    repaired: bool = False
    found: tuple[Found, ...] = ()
    points: tuple[FloatArray, ...] = ()
    duals: tuple[FloatArray, ...] | None = None
    core_duals: FloatArray | None = None
    reduced_costs: FloatArray | None = None
    log: tuple[dict[str, Any], ...] = ()
    memory: int = 0


@dataclass
class _WorkingSet:
    """Which point each row of the HiGHS model beyond the ordinary ones stands for."""

    family: list[int] = field(default_factory=list)
    point: list[FloatArray] = field(default_factory=list)
    slack: list[int] = field(default_factory=list)

    def of(self, number: int) -> IntArray:
        return np.flatnonzero(np.array(self.family, dtype=int) == number)

    def points(self, number: int, dimension: int) -> FloatArray:
        chosen = [self.point[k] for k in self.of(number)]
        return np.array(chosen).reshape(-1, dimension)

    def copy(self) -> _WorkingSet:
        return _WorkingSet(list(self.family), list(self.point), list(self.slack))

    def keep(self, kept: IntArray) -> None:
        for name in ("family", "point", "slack"):
            setattr(self, name, [getattr(self, name)[k] for k in kept])


class Exchange:
    """A warm LP and the searches that feed it; ``run`` may be called again after a search has learned."""

    def __init__(self, problem: SemiInfiniteLP, searches: Sequence[Search], options: ExchangeOptions) -> None:
        self.problem = problem
        self.searches = tuple(searches)
        self.options = options
        self._scaling = scaling_for(problem, [search.points for search in searches])
        self.model = HighsModel(problem.core, self._scaling)
        self.working = _WorkingSet()
        self.log: list[dict[str, Any]] = []
        # On a grid, rows at other points would not belong to the problem.
        self._continuum = not any(isinstance(search, FiniteSearch) for search in searches)
        self._started = time.monotonic()
        self._largest = 0
        self._tolerance = options.tolerance
        self._solved = self.working  # the rows that the last solution has duals for
        for number, search in enumerate(self.searches):
            self._add(number, _first_points(search))

    def tighten(self, factor: float) -> bool:
        """Ask for less violation in the next run; False where rounding forbids it."""
        self._tolerance *= factor
        return self._tolerance > 1e-15

    def run(self) -> Outcome:
        """Exchange until nothing is violated, or a limit is met."""
        best_bound, status, solution = np.nan, "iteration_limit", None
        smallest, stalled = np.inf, 0
        found: tuple[Found, ...] = ()
        checked_rays = 0
        while len(self.log) < self.options.iteration_limit:
            if self.options.time_limit is not None:
                self.model.limit_time(self.options.time_limit - (time.monotonic() - self._started))
            current = self.model.solve()
            if current.status == "unbounded":
                judged = self._judge_ray()
                checked_rays += 1
                if judged != "bounded":
                    return self._without_answer(judged)
                if checked_rays < _MOST_RAYS:
                    continue
                return self._without_answer("infeasible_or_unbounded")
            if current.status in ("time_limit", "solver_error", "iteration_limit") and solution is not None:
                status = current.status
                break
            if current.status == "solver_error":
                raise SolverError(
                    "HiGHS met numerical trouble and gives no answer; look for coefficients of very different size, or "
                    "functions of the index that are almost linearly dependent."
                )
            if current.status != "optimal":
                return self._without_answer(current.status)
            assert current.x is not None
            solution, self._solved = current, self.working.copy()
            found = tuple(search.worst(current.x) for search in self.searches)
            violated = [max(0.0, each.worst) for each in found]
            added = sum(self._add_violated(number, each) for number, each in enumerate(found))
            if added and solution.row_duals is not None and self._continuum:
                self._add_centroids(solution)
            self._record(solution, violated, added)
            relative = max((each.relative for each in found), default=0.0)
            stalled = 0 if relative < 0.9 * smallest else stalled + 1
            smallest = min(smallest, relative)
            if not added or (stalled >= _STALLED and relative <= _ROUNDING):
                # Rows that are in the LP and violated all the same are beyond HiGHS.
                enforced = all(each.blatant <= _ROUNDING for each in found)
                status = "optimal" if enforced else "inaccurate"
                break
            moved = not np.isclose(solution.objective, best_bound, rtol=1e-10, atol=1e-12)
            best_bound = solution.objective
            if solution.row_duals is not None:
                self._drop_slack(solution, moved)
            if self._out_of_time():
                status = "time_limit"
                break
        if solution is None:
            return self._without_answer(status)
        return self._finish(status, solution, found)

    # -- rows ------------------------------------------------------------------------------------

    def _add(self, number: int, points: FloatArray) -> int:
        family = self.problem.families[number]
        known = self.working.points(number, family.domain.dimension)
        # Compared exactly: the two sides of a jump are neighbouring numbers.
        known_points = {point.tobytes() for point in known}
        points = points[[point.tobytes() not in known_points for point in points]]
        if not len(points):
            return 0
        lower, upper = family.limits(points)
        self.model.add_rows(family.rows.columns, family.matrix(points), lower, upper)
        self.working.family += [number] * len(points)
        self.working.point += list(points)
        self.working.slack += [0] * len(points)
        held = len(self.working.family) * max(1, len(family.rows.columns)) * 12
        self._largest = max(self._largest, held + sum(search.memory for search in self.searches))
        return len(points)

    def _add_violated(self, number: int, found: Found) -> int:
        violated = found.excess > self._tolerance * found.scale
        points = found.points[violated][:_ADDED]
        return self._add(number, points[apart(points / self.problem.families[number].domain.width, 1e-7)])

    def _add_centroids(self, solution: LPSolution) -> None:
        """Add the dual-weighted mean of binding rows that stand close together.

        Such rows straddle one binding point of the continuum. Their duals share its price so that
        the dual equations hold; expanded around the mean, those equations say that the point is the
        mean up to the square of the distance. Without this step the distance only halves each time.
        """
        assert solution.row_duals is not None
        duals = solution.row_duals[len(self.problem.core.row_lower) :]
        for number, family in enumerate(self.problem.families):
            mine = self._solved.of(number)
            mine = mine[np.abs(duals[mine]) > 1e-9 * np.abs(duals[mine]).max(initial=0.0)]
            if len(mine) < 2:
                continue
            points = np.array([self._solved.point[k] for k in mine])
            for radius in _CLUSTER_RADII:
                means, _, counts = cluster_means(points, duals[mine], family.domain.width, radius)
                means = means[counts > 1]
                self._add(number, means[family.domain.contains(means)])

    def _drop_slack(self, solution: LPSolution, moved: bool) -> None:
        assert solution.row_duals is not None
        duals = solution.row_duals[len(self.problem.core.row_lower) :]
        binding = np.ones(len(self.working.slack), dtype=bool)
        binding[: len(duals)] = np.abs(duals) > 0
        for k, tight in enumerate(binding):
            self.working.slack[k] = 0 if tight else self.working.slack[k] + moved
        old = np.array(self.working.slack) > _PATIENCE
        if old.any():
            self.model.delete_rows(np.flatnonzero(old) + len(self.problem.core.row_lower))
            self.working.keep(np.flatnonzero(~old))

    def _points(self, rows: _WorkingSet) -> tuple[FloatArray, ...]:
        return tuple(
            rows.points(number, family.domain.dimension) for number, family in enumerate(self.problem.families)
        )

    # -- endings ---------------------------------------------------------------------------------

    def _out_of_time(self) -> bool:
        limit = self.options.time_limit
        return limit is not None and time.monotonic() - self._started > limit

    def _record(self, solution: LPSolution, violated: list[float], added: int) -> None:
        record = {
            "iteration": len(self.log) + 1,
            "bound": solution.bound,
            "violation": max(violated, default=0.0),
            "rows": len(self.working.family),
            "added": added,
            "restarts": self.model.restarts,
            "seconds": time.monotonic() - self._started,
        }
        self.log.append(record)
        if self.options.report is not None:
            self.options.report(record)

    def _without_answer(self, status: str) -> Outcome:
        value = np.nan
        if status == "unbounded":
            value = np.inf if self.problem.core.maximize else -np.inf
        return Outcome(status, value, value, log=tuple(self.log), memory=self._largest)

    def _finish(self, status: str, solution: LPSolution, found: tuple[Found, ...]) -> Outcome:
        assert solution.x is not None
        core = self.problem.core
        x, moved = solution.x, None
        if status == "optimal" and any(each.worst > 0 for each in found):
            moved = self._repair(x, found)
            if moved is not None:
                x = moved
                found = tuple(search.worst(x) for search in self.searches)
        outcome = Outcome(
            status,
            core.value(x),
            solution.bound,
            x,
            moved is not None,
            found,
            self._points(self._solved),
            log=tuple(self.log),
            memory=self._largest,
        )
        return self._with_duals(outcome, solution)

    def priced(self, outcome: Outcome) -> Outcome:
        """The same outcome with prices for its integers held at their values; the last thing to ask for."""
        if outcome.x is None or not self.problem.core.integer.any():
            return outcome
        integers = np.flatnonzero(self.problem.core.integer)
        self._solved = self.working
        return self._with_duals(outcome, self.model.solve_with_fixed(integers, outcome.x[integers]))

    def _with_duals(self, outcome: Outcome, solution: LPSolution) -> Outcome:
        if solution.row_duals is None:
            return outcome
        split = len(self.problem.core.row_lower)
        own = solution.row_duals[split:]
        return replace(
            outcome,
            points=self._points(self._solved),
            duals=tuple(own[self._solved.of(number)] for number in range(len(self.problem.families))),
            core_duals=solution.row_duals[:split],
            reduced_costs=solution.reduced_costs,
        )

    # -- feasibility and rays ----------------------------------------------------------------------

    def _repair(self, x: FloatArray, found: tuple[Found, ...]) -> FloatArray | None:
        """A feasible point next to x, or None where no Slater point is known or rows hold on a grid only."""
        if not self._continuum:
            return None
        inner = slater_point(self.problem, self.searches, self._points(self.working), self._scaling, x)
        moved: FloatArray | None = x
        for _ in range(_REPAIRS):
            if inner is None or moved is None or all(each.worst <= 0 for each in found):
                break
            moved = repaired(self.problem, moved, found, inner)
            if moved is not None:
                found = tuple(search.worst(moved) for search in self.searches)
        return None if inner is None else moved

    def _judge_ray(self) -> str:
        """Tell what an unbounded LP means: "bounded" (rows that were missing are added), or how the problem ends."""
        rays = ray_problem(self.problem)
        searches = [search.over(family) for search, family in zip(self.searches, rays.families, strict=True)]
        inner = Exchange(rays, searches, self._remaining())
        for number, points in enumerate(self._points(self.working)):
            inner._add(number, points)
        outcome = inner.run()
        improvement = outcome.bound if self.problem.core.maximize else -outcome.bound
        largest = float(np.abs(self.problem.core.cost).max(initial=0.0))
        if outcome.x is not None and improvement <= _RAY * largest:
            new = [self._add(number, points) for number, points in enumerate(outcome.points)]
            if sum(new):
                return "bounded"
        if outcome.status not in ("optimal", "inaccurate"):
            # The relaxation of an exchange that was cut short always has a ray.
            return outcome.status
        feasible = self._find_any_point()
        return "unbounded" if feasible == "optimal" else feasible

    def _find_any_point(self) -> str:
        """How the same problem without a cost ends: "optimal" if any point satisfies all rows."""
        without_cost = replace(self.problem.core, cost=np.zeros(self.problem.core.columns))
        problem = SemiInfiniteLP(without_cost, self.problem.families)
        return Exchange(problem, self.searches, self._remaining()).run().status

    def _remaining(self) -> ExchangeOptions:
        """Options for an exchange within this one: in silence, and in the time that is left."""
        limit = self.options.time_limit
        if limit is not None:
            limit = max(1e-3, limit - (time.monotonic() - self._started))
        return replace(self.options, time_limit=limit, report=None)


def _first_points(search: Search) -> FloatArray:
    """A few spread scan points to begin with, so that the first LP is seldom unbounded."""
    count = len(search.points)
    wanted = min(count, 16 * search.family.domain.dimension)
    return search.points[np.unique(np.linspace(0, count - 1, wanted).astype(int))]
