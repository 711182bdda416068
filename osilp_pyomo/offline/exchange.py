"""Exchange: solve a semi-infinite LP by adding the rows that its last answer violates.

One warm HiGHS model holds a finite working set of rows. Each iteration solves it, looks for the
local maxima of every family's excess, adds them, and drops rows that have long been slack. The
LP's value is a bound throughout, because it knows only some of the rows. At the end the answer is
moved towards a Slater point, just far enough to satisfy every row that the search can find, so that
[bound, objective] is a bracket of the optimum.

This loop serves the continuum and a finite grid alike; only the search differs. (The method is the
outer approximation of Blankenship and Falk, 1976, with many points per iteration; the bracket follows
from convexity: lambda = v / (v + s) of the way to a point with slack s removes a violation v.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, pairwise
from operator import is_
from typing import Any

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo._options import AUTO
from osilp_pyomo.errors import SolverError
from osilp_pyomo.lp.finite import RowBlock
from osilp_pyomo.lp.highs import HighsModel, LPSolution
from osilp_pyomo.lp.models import lp_model
from osilp_pyomo.lp.scaling import example_rows, scaling_for
from osilp_pyomo.offline.conflicts import Conflict, LabelledRows, crossed_bounds, find_conflict
from osilp_pyomo.offline.interior import ray_problem, repair_towards, slater_point
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP, allow_calls
from osilp_pyomo.offline.roundings import rounding_within_bounds
from osilp_pyomo.offline.rows import TimeUpError
from osilp_pyomo.offline.search.clusters import cluster_means
from osilp_pyomo.offline.search.scan import Search, Violations
from osilp_pyomo.offline.warmth import HeldExchange, Warmth

# Rows added for one family in one iteration at most.
_ADDED = 200
# What share of its time limit a solve may take longer where a slow rule was stopped, to finish with what is known.
_GRACE = 0.5
# Binding rows within these distances, in widths of the domain, may straddle one binding point.
_CLUSTER_RADII = (0.15, 0.01)
# So many iterations without less violation, at a violation this small, are the limit of rounding; whether the
# answer is good enough is for the bracket and the audit to say.
_STALLED, _ROUNDING = 15, 1e-6
# A relative violation at a limit that is worth repairing, and a bracket, relative to 1 + |objective|, that is closed.
_NEARLY, _CLOSED = 1e-6, 1e-9
# Rows that were slack more often than this, one time after the other, are not held for the next problem.
_HELD = 0
# A move towards a Slater point can uncover a violation that was hidden beside a larger one.
_REPAIRS = 3
# A direction that improves the objective by more than this share of its largest cost, over a unit box, is a ray.
_RAY = 1e-7
# Numbers, zeros among them, of the rows in which a conflict is looked for: 160 MB.
_MOST_DENSE = 20_000_000
# Unbounded LPs in a row, each with rows that should have bounded it, before the question is left open.
_MOST_RAYS = 20
# Boxes, in the units of the LP, that hold its columns where it has no ray and is called unbounded all the same.
_BOXES = (1e3, 1e6, 1e9)


@dataclass(frozen=True)
class ExchangeOptions:
    """When to stop.

    ``tolerance`` is the violation that counts as none, relative to the size of the row's terms. A row that was slack
    more than ``patience`` times in a row while the bound moved is dropped. ``solver`` is how the LPs are solved,
    ``keep_tiny`` keeps coefficients that HiGHS takes for rounding, and ``proof`` says whether answers are proved.
    ``warmth`` is where a solve leaves what the next one of nearly the same problem begins with (``warmth.py``).
    """

    tolerance: float = 1e-9
    iteration_limit: int = 500
    time_limit: float | None = None
    report: Callable[[dict[str, Any]], None] | None = None
    patience: float = 6
    solver: str = AUTO
    keep_tiny: bool = False
    proof: bool | str = AUTO
    warmth: Warmth | None = None

    def remaining_since(self, started: float) -> ExchangeOptions:
        """Options for auxiliary solves: no progress reports, and the time limit that remains (possibly negative)."""
        left = None if self.time_limit is None else self.time_limit - (time.monotonic() - started)
        return replace(self, time_limit=left, report=None)


@dataclass(frozen=True, eq=False)
class ExchangeOutcome:
    """How an exchange ended; arrays are None where there is no answer.

    ``points`` and ``duals`` hold the working set of each family and its row duals (None for a model
    with integers), ``found`` what each search found at x, ``separation`` how each family was looked at.
    """

    status: str
    objective: float
    bound: float
    x: FloatArray | None = None
    repaired: bool = False
    found: tuple[Violations, ...] = ()
    points: tuple[FloatArray, ...] = ()
    duals: tuple[FloatArray, ...] | None = None
    core_duals: FloatArray | None = None
    reduced_costs: FloatArray | None = None
    log: tuple[dict[str, Any], ...] = ()
    memory: int = 0
    separation: tuple[str, ...] = ()


@dataclass
class _WorkingSet:
    """Which point each row of the HiGHS model beyond the ordinary ones stands for."""

    family: list[int] = field(default_factory=list)
    point: list[FloatArray] = field(default_factory=list)
    slack: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def by_family(self, families: int) -> list[IntArray]:
        """For each family its rows, by their place here."""
        owners = np.array(self.family, dtype=np.int64)
        order = np.argsort(owners, kind="stable")
        ends = np.searchsorted(owners[order], np.arange(families + 1)).tolist()
        return [order[first:last] for first, last in pairwise(ends)]

    def points(self, rows: IntArray, dimension: int) -> FloatArray:
        return np.array([self.point[k] for k in rows.tolist()]).reshape(-1, dimension)

    def copy(self) -> _WorkingSet:
        return _WorkingSet(list(self.family), list(self.point), self.slack.copy())

    def keep(self, kept: IntArray) -> None:
        self.family = [self.family[k] for k in kept]
        self.point = [self.point[k] for k in kept]
        self.slack = self.slack[kept]


class Exchange:
    """A warm LP and the searches that feed it; ``run`` may be called again after a search has learned."""

    def __init__(
        self,
        problem: SemiInfiniteLP,
        searches: Sequence[Search],
        options: ExchangeOptions,
        held: HeldExchange | None = None,
    ) -> None:
        """Begin with the rows that each search begins with, or with those that another exchange ended with."""
        self.problem = problem
        self.searches = tuple(searches)
        self.options = options
        # Which search separates each family, and the place of the family in it.
        self._place = {
            int(number): (search, member) for search in searches for member, number in enumerate(search.numbers)
        }
        examples = [search.examples(example_rows(problem.core)) for search in searches]
        self._scaling = scaling_for(problem.core, examples)
        keep_tiny = options.keep_tiny or not all(family.user_domain.bounded for family in problem.families)
        self.model = lp_model(problem.core, self._scaling, options.solver, often=True, keep_tiny=keep_tiny)
        self.working = _WorkingSet()
        self.log: list[dict[str, Any]] = []
        # On a grid, rows at other points would not belong to the problem.
        self._continuum = all(search.covers_continuum for search in searches)
        self._started = time.monotonic()
        self._held_bytes = 0  # by the rows, at most so far
        self._tolerance = options.tolerance
        self._solved = self.working  # the rows that the last solution has duals for
        self._known: set[tuple[int, bytes]] = set()
        # Without a cost nothing can be unbounded, and what a box does to integers could not be seen in the answer.
        self._boxes = iter(_BOXES if problem.core.cost.any() and not problem.core.integer.any() else ())
        self._held = False
        self._relaxed = False
        # What tells that the problem is unbounded: a ray with its families and searches, and a point.
        self.ray: tuple[SemiInfiniteLP, tuple[Search, ...], FloatArray] | None = None
        self.witness: FloatArray | None = None
        # A Slater point of these very families, if one is known.
        self._inner = held.inner if held is not None and all(map(is_, held.families, problem.families)) else None
        if held is None or not self._take_up(held):
            for search in self.searches:
                self._add(search, *search.beginning())

    def _take_up(self, held: HeldExchange) -> bool:
        """Add the rows of another exchange in their order, and begin where its LP ended; False if there are none."""
        places: dict[int, FloatArray] = {}
        for number, family in enumerate(self.problem.families):
            mine = [k for k, owner in enumerate(held.owners) if owner == number]
            if mine:
                points = held.families[number].domain.moved_to(family.domain, np.array([held.points[k] for k in mine]))
                inside = family.domain.contains(points)
                places.update((k, point) for k, point, in_it in zip(mine, points, inside, strict=True) if in_it)
        kept = sorted(places)
        # Rows of one search that follow each other are evaluated together.
        for _, run in groupby(kept, lambda k: id(self._place[held.owners[k]][0])):
            rows = list(run)
            search = self._place[held.owners[rows[0]]][0]
            members = np.array([self._place[held.owners[k]][1] for k in rows])
            self._add(search, members, np.array([places[k] for k in rows]))
        if len(self.working.family) == len(held.owners):
            self.model.start_from(held.start)
        return bool(kept)

    def held(self) -> HeldExchange:
        """What another exchange can begin with."""
        # Those that were binding not long ago: with all others each LP takes longer than a few iterations more.
        kept = np.flatnonzero(self.working.slack <= _HELD)
        first = len(self.problem.core.row_lower)
        start = self.model.start(np.concatenate([np.arange(first), first + kept]))
        return HeldExchange(
            self.problem.families,
            self.searches,
            tuple(self.working.family[k] for k in kept.tolist()),
            tuple(self.working.point[k] for k in kept.tolist()),
            start,
            self._inner,
        )

    def add_points(self, number: int, points: FloatArray) -> int:
        """Add the rows of one family at points; return how many were new."""
        search, member = self._place[number]
        return self._add(search, np.full(len(points), member), points)

    @property
    def _memory(self) -> int:
        """Bytes that rows and searches took at most."""
        return self._held_bytes + sum(search.memory for search in self.searches)

    def _separation(self) -> tuple[str, ...]:
        return tuple(self._place[number][0].separation for number in range(len(self.problem.families)))

    def tighten(self, factor: float) -> bool:
        """Ask for less violation in the next run; False where rounding forbids it."""
        self._tolerance *= factor
        return self._tolerance > 1e-15

    def run_on(self, outcome: ExchangeOutcome) -> ExchangeOutcome:
        """Exchange further after an outcome, with rows or points that are new; where that gives no answer, keep it."""
        again = self.run()
        if again.x is None and again.status in ("time_limit", "iteration_limit"):
            return replace(outcome, status=again.status)
        return again

    def run(self, iterations: int | None = None) -> ExchangeOutcome:
        """Exchange until nothing is violated, or a limit is met (by default that of the options)."""
        most = self.options.iteration_limit if iterations is None else iterations
        best_bound, status, solution = np.nan, "iteration_limit", None
        # Rows that the relaxation needs cost linear programs, and not one with integers each.
        self._relax()
        smallest, stalled = np.inf, 0
        found: tuple[Violations, ...] = ()
        checked_rays = 0
        while len(self.log) < most:
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
            if current.status == "solver_error" and self._hold_columns():
                continue
            if current.status == "infeasible" and self._held:
                # The box may be what cannot be satisfied together with the rows.
                if self._hold_columns():
                    continue
                feasible = self._find_any_point()
                return self._without_answer("infeasible" if feasible == "infeasible" else "infeasible_or_unbounded")
            if current.status == "infeasible_or_unbounded" and self._relax():
                continue
            if current.status == "time_limit" and solution is None and current.x is not None:
                # The best integer point so far; whether it keeps all rows is for the audit to say.
                return self._finish(current.status, current, ())
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
            found = self._searched(current.x)
            if len(found) < len(self.searches):
                return self._finish("time_limit", solution, ())
            violated = [max(0.0, each.worst) for each in found]
            added = sum(map(self._add_violated, self.searches, found))
            if added and solution.row_duals is not None and self._continuum:
                self._add_centroids(solution)
            self._record(solution, violated, added)
            relative = max((each.relative for each in found), default=0.0)
            stalled = 0 if relative < 0.9 * smallest else stalled + 1
            smallest = min(smallest, relative)
            if not added or (stalled >= _STALLED and relative <= _ROUNDING):
                if self.model.strained:
                    if self._hold_columns():
                        stalled = 0
                        continue
                    return self._without_answer("infeasible_or_unbounded")
                # Rows that are in the LP and violated all the same are beyond HiGHS.
                enforced = all(each.relative_to_typical <= _ROUNDING for each in found)
                status = "optimal" if enforced else "inaccurate"
                break
            moved = not abs(solution.objective - best_bound) <= 1e-12 + 1e-10 * abs(best_bound)
            best_bound = solution.objective
            if solution.row_duals is not None:
                self._drop_slack(solution, moved)
            if self.out_of_time:
                status = "time_limit"
                break
        if solution is None:
            return self._without_answer(status)
        return self._finish(status, solution, found)

    def _searched(self, x: FloatArray) -> tuple[Violations, ...]:
        """What each search finds at x; those that time is left for."""
        found: list[Violations] = []
        for search in self.searches:
            if found and self.out_of_time:
                break
            try:
                found.append(search.worst(x))
            except TimeUpError:
                # Some time more, to finish with what is known.
                allow_calls(self.problem.families, time.monotonic() + _GRACE * (self.options.time_limit or 0.0))
                break
        return tuple(found)

    def _relax(self) -> bool:
        """Add the rows that the problem without its integers needs, once; False where there is nothing to relax.

        HiGHS does not tell whether an integer problem is infeasible or unbounded where its relaxation, with the few
        rows that are known yet, is unbounded.
        """
        core = self.problem.core
        if not core.integer.any() or self._relaxed:
            return False
        self._relaxed = True
        relaxed = SemiInfiniteLP(replace(core, integer=np.zeros(core.columns, dtype=bool)), self.problem.families)
        inner = Exchange(relaxed, self.searches, self.remaining())
        for number, points in enumerate(self._points(self.working)):
            inner.add_points(number, points)
        if inner.run().x is not None:
            # What binds there is enough: with all rows branch and bound takes longer.
            inner.working.keep(np.flatnonzero(inner.working.slack == 0))
        return sum(self.add_points(number, points) for number, points in enumerate(inner._points(inner.working))) > 0

    # -- rows ------------------------------------------------------------------------------------

    def _add(self, search: Search, members: IntArray, points: FloatArray) -> int:
        """Add the rows of some families of a search at one point each; return how many were new."""
        numbers = search.numbers[members].tolist()
        # Compared exactly: the two sides of a jump are neighbouring numbers.
        keys = [(number, point.tobytes()) for number, point in zip(numbers, points, strict=True)]
        new = np.array([k for k, key in enumerate(keys) if key not in self._known], dtype=np.int64)
        if not len(new):
            return 0
        rows = search.rows(members[new], points[new])
        self.model.add_rows(rows.columns, rows.matrix, rows.lower, rows.upper)
        self._known.update(keys[k] for k in new)
        self.working.family += [numbers[k] for k in new]
        self.working.point += list(points[new])
        self.working.slack = np.concatenate([self.working.slack, np.zeros(len(new), dtype=np.int64)])
        self._held_bytes = max(self._held_bytes, len(self.working.family) * max(1, len(rows.columns)) * 12)
        return len(new)

    def _add_violated(self, search: Search, found: Violations) -> int:
        violated = np.flatnonzero(found.excess > self._tolerance * found.scale)[: _ADDED * len(search.families)]
        if not len(violated):
            return 0
        kept = violated[search.distinct(found.points[violated])]
        return self._add(search, found.members[kept], found.points[kept])

    def _add_centroids(self, solution: LPSolution) -> None:
        """Add the dual-weighted mean of binding rows that stand close together.

        Such rows straddle one binding point of the continuum. Their duals share its price so that
        the dual equations hold; expanded around the mean, those equations say that the point is the
        mean up to the square of the distance. Without this step the distance only halves each time.
        """
        assert solution.row_duals is not None
        duals = solution.row_duals[len(self.problem.core.row_lower) :]
        for family, mine, number in self._binding_boxes():
            mine = mine[np.abs(duals[mine]) > 1e-9 * np.abs(duals[mine]).max(initial=0.0)]
            if len(mine) < 2:
                continue
            points = np.array([self._solved.point[k] for k in mine])
            for radius in _CLUSTER_RADII:
                means, _, counts = cluster_means(points, duals[mine], family.domain.width, radius)
                means = means[counts > 1]
                means = means[family.domain.contains(means)]
                self.add_points(number, means)

    def _binding_boxes(self) -> Iterator[tuple[Family, IntArray, int]]:
        """Families over boxes with their rows; over other sets rows do not bind at means of points."""
        boxes = [number for number, family in enumerate(self.problem.families) if family.domain.body is None]
        rows = self._solved.by_family(len(self.problem.families)) if boxes else []
        for number in boxes:
            yield self.problem.families[number], rows[number], number

    def _drop_slack(self, solution: LPSolution, moved: bool) -> None:
        assert solution.row_duals is not None
        duals = solution.row_duals[len(self.problem.core.row_lower) :]
        binding = np.ones(len(self.working.slack), dtype=bool)
        binding[: len(duals)] = np.abs(duals) > 0
        self.working.slack = np.where(binding, 0, self.working.slack + moved)
        old = self.working.slack > self.options.patience
        if old.any():
            self.model.delete_rows(np.flatnonzero(old) + len(self.problem.core.row_lower))
            for k in np.flatnonzero(old):
                self._known.discard((self.working.family[k], self.working.point[k].tobytes()))
            self.working.keep(np.flatnonzero(~old))

    def _points(self, rows: _WorkingSet) -> tuple[FloatArray, ...]:
        families = self.problem.families
        places = rows.by_family(len(families))
        return tuple(rows.points(mine, family.domain.dimension) for mine, family in zip(places, families, strict=True))

    def _blocks(self) -> Iterator[tuple[IntArray, RowBlock]]:
        """The rows that are in the LP, search by search, with their places in the working set."""
        places = self.working.by_family(len(self.problem.families))
        for search in self.searches:
            rows = np.concatenate([places[number] for number in search.numbers])
            members = np.repeat(np.arange(len(search.numbers)), [len(places[number]) for number in search.numbers])
            if len(rows):
                dimension = search.families[0].domain.dimension
                yield rows, search.rows(members, self.working.points(rows, dimension))

    # -- endings ---------------------------------------------------------------------------------

    @property
    def out_of_time(self) -> bool:
        """Whether the time limit is met."""
        limit = self.options.time_limit
        return limit is not None and time.monotonic() - self._started > limit

    def _record(self, solution: LPSolution, violated: list[float], added: int) -> None:
        record = {
            "iteration": len(self.log) + 1,
            "bound": self._bound(solution),
            "violation": max(violated, default=0.0),
            "rows": len(self.working.family),
            "added": added,
            "restarts": self.model.restarts,
            "seconds": time.monotonic() - self._started,
        }
        self.log.append(record)
        if self.options.report is not None:
            self.options.report(record)

    def _bound(self, solution: LPSolution) -> float:
        """What no point can beat: the LP's value, unless only the box of ``_hold_columns`` keeps it from falling."""
        if not self.model.strained:
            return solution.bound
        return np.inf if self.problem.core.maximize else -np.inf

    def _without_answer(self, status: str) -> ExchangeOutcome:
        value = np.nan
        if status == "unbounded":
            value = np.inf if self.problem.core.maximize else -np.inf
        return ExchangeOutcome(status, value, value, log=tuple(self.log), memory=self._memory)

    def conflict(self) -> Conflict:
        """What cannot hold together of the rows that are in the LP, after a run that found them infeasible."""
        core, labelled, size = self.problem.core, [], 0
        if (crossed := crossed_bounds(core)) is not None:
            return crossed
        for places, block in self._blocks():
            size += block.matrix.size
            if size > _MOST_DENSE:
                return Conflict.too_large(size)
            families = [self.problem.families[self.working.family[k]] for k in places]
            points = [self.working.point[k][None] for k in places]
            pairs = list(zip(families, points, strict=True))
            labels = [family.user_domain.label(family.user_points(point)[0]) for family, point in pairs]
            sizes = np.array([1 / family.user_masses(point, np.ones(1))[0] for family, point in pairs])
            names = [family.name for family in families]
            labelled.append(LabelledRows("row", names, labels, block, sizes, partial(_rounding_of, families, points)))
        return find_conflict(core, labelled, self._scaling, self.remaining().time_limit)

    def _finish(self, status: str, solution: LPSolution, found: tuple[Violations, ...]) -> ExchangeOutcome:
        assert solution.x is not None
        core = self.problem.core
        x, moved = solution.x, None
        near = status in ("time_limit", "iteration_limit") and bool(found) and max(e.relative for e in found) <= _NEARLY
        if (status == "optimal" or near) and any(each.worst > 0 for each in found):
            moved = self._repair(x, found)
            if moved is not None:
                x = moved
                found = tuple(search.worst(x) for search in self.searches)
        value, bound = core.value(x), self._bound(solution)
        if near and all(each.worst <= 0 for each in found) and abs(value - bound) <= _CLOSED * (1 + abs(value)):
            # It was stopped where nothing was left to do.
            status = "optimal"
        outcome = ExchangeOutcome(
            status,
            value,
            bound,
            x,
            moved is not None,
            found,
            self._points(self._solved),
            log=tuple(self.log),
            memory=self._memory,
            separation=self._separation(),
        )
        return self._with_duals(outcome, solution)

    def with_prices(self, outcome: ExchangeOutcome) -> ExchangeOutcome:
        """Add prices to an outcome, with its integers fixed at their values; the model cannot be used afterwards."""
        if outcome.x is None or not self.problem.core.integer.any():
            return outcome
        integers = np.flatnonzero(self.problem.core.integer)
        self._solved = self.working
        assert isinstance(self.model, HighsModel)
        return self._with_duals(outcome, self.model.solve_with_fixed(integers, outcome.x[integers]))

    def _with_duals(self, outcome: ExchangeOutcome, solution: LPSolution) -> ExchangeOutcome:
        if solution.row_duals is None:
            return outcome
        split = len(self.problem.core.row_lower)
        own = solution.row_duals[split:]
        return replace(
            outcome,
            points=self._points(self._solved),
            duals=tuple(own[mine] for mine in self._solved.by_family(len(self.problem.families))),
            core_duals=solution.row_duals[:split],
            reduced_costs=solution.reduced_costs,
        )

    # -- feasibility and rays ----------------------------------------------------------------------

    def _repair(self, x: FloatArray, found: tuple[Violations, ...]) -> FloatArray | None:
        """A feasible point next to x, or None where no Slater point is known or rows hold on a grid only."""
        if not self._continuum:
            return None
        rows = [block for _, block in self._blocks()]
        inner = self._inner = slater_point(self.problem, self.searches, rows, self._scaling, x, self._inner)
        moved: FloatArray | None = x
        for _ in range(_REPAIRS):
            if inner is None or moved is None or all(each.worst <= 0 for each in found):
                break
            moved = repair_towards(self.problem.core, self.searches, moved, found, inner)
            if moved is not None:
                found = tuple(search.worst(moved) for search in self.searches)
        return None if inner is None else moved

    def _judge_ray(self) -> str:
        """Tell what an unbounded LP means: "bounded" (rows that were missing are added), or how the problem ends."""
        rays = ray_problem(self.problem)
        searches = [search.on_families(rays.families) for search in self.searches]
        inner = Exchange(rays, searches, self.remaining())
        for number, points in enumerate(self._points(self.working)):
            inner.add_points(number, points)
        outcome = inner.run()
        improvement = outcome.bound if self.problem.core.maximize else -outcome.bound
        largest = float(np.abs(self.problem.core.cost).max(initial=0.0))
        if outcome.x is not None and improvement <= _RAY * largest:
            # No direction improves the objective: rows were missing, or the last digits of those that are there make
            # HiGHS see a ray. (Where an objective is tight at a single point of the index, no other rows bound it.)
            new = [self.add_points(number, points) for number, points in enumerate(outcome.points)]
            return "bounded" if sum(new) or self._hold_columns() else "infeasible_or_unbounded"
        if outcome.status not in ("optimal", "inaccurate"):
            # The relaxation of an exchange that was cut short always has a ray.
            return outcome.status
        self.ray = rays, tuple(searches), outcome.x if outcome.x is not None else np.zeros(0)
        feasible = self._find_any_point()
        return "unbounded" if feasible == "optimal" else feasible

    def _hold_columns(self) -> bool:
        """Hold columns without bounds in the next larger box; False where there is none, or nothing to hold."""
        core = self.problem.core
        size = next(self._boxes, None)
        if size is None or (np.isfinite(core.column_lower).all() and np.isfinite(core.column_upper).all()):
            return False
        assert isinstance(self.model, HighsModel)  # a wide model has bounds for every column
        self.model.hold_columns(size)
        self._held = True
        return True

    def _find_any_point(self) -> str:
        """How the problem with all costs set to zero ends: "optimal" if any point satisfies all rows."""
        without_cost = replace(self.problem.core, cost=np.zeros(self.problem.core.columns))
        problem = SemiInfiniteLP(without_cost, self.problem.families)
        inner = Exchange(problem, self.searches, self.remaining())
        ended = inner.run()
        status, self.witness = ended.status, ended.x
        # Where no point does, these rows tell why.
        for number, points in enumerate(inner._points(inner.working)):
            self.add_points(number, points)
        return status

    def remaining(self) -> ExchangeOptions:
        """Options for an exchange within this one: no progress reports, and the time that is left."""
        left = self.options.remaining_since(self._started)
        return left if left.time_limit is None else replace(left, time_limit=max(1e-3, left.time_limit))


def _rounding_of(
    families: Sequence[Family], points: Sequence[FloatArray], rows: IntArray, above: BoolArray, reach: FloatArray
) -> FloatArray:
    """What rounding may make of some rows, each of a family at a point, for variables up to their reach."""
    lost = [
        rounding_within_bounds(families[row], points[row], side, reach)
        for row, side in zip(rows.tolist(), above[:, None], strict=True)
    ]
    return np.concatenate(lost)
