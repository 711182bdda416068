"""The loop: sequential quadratic programming over all linear rows that are known, made safe by them.

Each iteration looks for the points of the index that x violates most, adds rows that touch the convex ones there, and
solves a quadratic program by Clarabel: the objective linearised at x, with the Hessian of the Lagrange function (and
what moving worst points add to it), under all rows ever found. Every row is valid for every feasible point, so that
steps which are too long are cut off by the rows that they find. A line search on objective and violations keeps it
from running away. Near the optimum the steps are those of Newton, and a handful of iterations is enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.lp.conic import ConeProgram, ConeSolution, solve_cones
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.offline.convex.lower import Multipliers, SafeBound, safe_bound
from osilp_pyomo.offline.convex.sources import Cuts, Source, near
from osilp_pyomo.offline.curved.terms import CurvedTerm
from osilp_pyomo.offline.search.scan import Violations

# Rows that one look adds for a source at most, and how near to its limit, by its size, a row is added.
_ADDED, _NEAR = 200, 0.05
# A row with less than this share of the largest mass has none.
_CARRIES = 1e-9
# The bracket at which the loop ends, relative to 1 + |objective|, and the violation, relative to the size of a row.
_CLOSED, _KEPT = 2e-10, 1e-9
# What is good enough where rounding allows no more, and iterations without a better bracket after which that is so.
_ENOUGH, _STALLED = 1e-7, 4
# Shares of a step that are tried, and what it must gain of what it promises.
_SHARES, _GAIN = 0.5 ** np.arange(0, 40), 1e-4
# How many shares of a step at which all functions have values are tried, and what counts as a long one.
_TRIED, _LONG = 12, 0.2
# A step that promises less than this share of the objective is near the end: then bounds are worked out.
_SOON = 1e-3
# What is rounding of an objective, relative to 1 + |objective|.
_ROUNDING = 1e-14
# By how much more than what a step promises a bound stays away at a kink.
_AWAY = 1e3
# What Clarabel leaves of a merit's digits.
_SAME = 3e-12
# By how many earlier values of the merit a step is judged: the best steps may go uphill for a while.
_MEMORY = 3
# By what the damping changes after good and bad steps, and its least value beside the Hessian.
_LESS, _MORE, _LEAST = 0.05, 8.0, 1e-13
# Values beyond which a variable is taken to run away.
_FAR = 1e10


@dataclass(frozen=True, eq=False)
class Look:
    """What is seen at an x: the objective with its gradient, and each source's worst rows.

    ``sizes`` are the largest coefficients of rows that touch there.
    """

    x: FloatArray
    value: float
    gradient: FloatArray
    found: tuple[Violations, ...]
    sizes: tuple[float, ...] = ()

    @property
    def violations(self) -> FloatArray:
        """Largest violation of each source; zero where there is none."""
        return np.array([max(0.0, each.worst) for each in self.found])

    @property
    def relative(self) -> float:
        """Largest violation by the size of its row, or by a thousandth of its largest coefficient."""
        sizes = self.sizes or (0.0,) * len(self.found)
        shares = [
            np.max(each.excess / np.maximum(each.scale, 1e-3 * size))
            for each, size in zip(self.found, sizes, strict=True)
        ]
        return max(0.0, *map(float, shares)) if shares else 0.0


@dataclass
class Pool:
    """All rows found, ``matrix @ x <= right``: their sources, points, sides and masses."""

    columns: int
    matrix: FloatArray = field(init=False)
    right: FloatArray = field(init=False)
    source: IntArray = field(init=False)
    sides: FloatArray = field(init=False)
    masses: FloatArray = field(init=False)
    points: list[FloatArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.matrix, self.source = np.zeros((0, self.columns)), np.zeros(0, dtype=np.int64)
        self.right, self.sides, self.masses = np.zeros(0), np.zeros(0), np.zeros(0)

    def add(self, number: int, cuts: Cuts) -> None:
        """Add rows of a source that are finite numbers."""
        good = np.isfinite(cuts.right) & np.all(np.isfinite(cuts.matrix), axis=1)
        count = int(good.sum())
        self.matrix = np.concatenate([self.matrix, cuts.matrix[good]])
        self.right = np.concatenate([self.right, cuts.right[good]])
        self.source = np.concatenate([self.source, np.full(count, number)])
        self.sides = np.concatenate([self.sides, cuts.sides[good]])
        self.masses = np.concatenate([self.masses, np.zeros(count)])
        self.points += list(cuts.points[good])

    def multipliers(self, sources: Sequence[Source], ordinary: FloatArray, keep: bool = False) -> Multipliers:
        """Masses by source, those at one point added up; with ``keep`` rows of sources with kinks as they are."""
        least = _CARRIES * float(self.masses.max(initial=0.0))
        points: list[FloatArray] = []
        masses: list[FloatArray] = []
        rows: list[Cuts | None] = []
        for number, source in enumerate(sources):
            kept = np.flatnonzero((self.source == number) & (self.masses > least))
            at = np.array([self.points[k] for k in kept]).reshape(len(kept), source.dimension)
            if keep and source.kinked:
                points.append(at)
                masses.append(self.masses[kept])
                rows.append(Cuts(self.matrix[kept], self.right[kept], at, self.sides[kept]))
                continue
            merged, place = at[:1], np.zeros(len(at), dtype=np.int64)  # points without coordinates are all the same one
            if at.size:
                merged, place = np.unique(at, axis=0, return_inverse=True)
            points.append(merged)
            masses.append(np.bincount(place.ravel(), self.masses[kept], len(merged)).astype(float))
            rows.append(None)
        return Multipliers(tuple(points), tuple(masses), ordinary, tuple(rows))


@dataclass(frozen=True, eq=False)
class Ended:
    """How the loop ended: where it was last, the best bound with its multipliers, and what was met on the way."""

    status: str
    look: Look | None
    bound: SafeBound | None
    log: tuple[dict[str, Any], ...]


class Newton:
    """The loop for a minimum; ``core`` holds what is linear, and its integers are not seen."""

    def __init__(
        self,
        core: FiniteLP,
        objective: CurvedTerm | None,
        sources: Sequence[Source],
        report: Callable[[dict[str, Any]], None] | None = None,
        until: float = np.inf,
        sense: float = 1.0,
    ) -> None:
        self.core, self.objective, self.sources = core, objective, tuple(sources)
        self.pool = Pool(core.columns)
        self.log: list[dict[str, Any]] = []
        self.report, self.until, self.sense = report, until, sense
        self.kinked = any(source.kinked for source in self.sources)
        self._started = time.monotonic()
        # A point with room in all rows, and the smallest share of a row's size that it has, if one was met.
        self.inner: tuple[FloatArray, float] | None = None
        self._scale = np.ones(core.columns)

    # -- what is seen at an x

    def value(self, x: FloatArray) -> float:
        """The objective."""
        curved = 0.0 if self.objective is None else float(self.objective.values(x, np.zeros((1, 0)))[0])
        return self.core.value(x) + curved

    def gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        """The objective and its gradient."""
        value, gradient = self.core.value(x), self.core.cost.copy()
        if self.objective is not None:
            values, slopes = self.objective.linearised(x, np.zeros((1, 0)))
            value += float(values[0])
            gradient[self.objective.columns] += slopes[0]
        return value, gradient

    def hessian(self, x: FloatArray, multipliers: Multipliers, follow: bool = False) -> FloatArray:
        """The Hessian of the Lagrange function; with what worst points that move add, where those are followed."""
        result = np.zeros((len(x), len(x)))
        if self.objective is not None:
            used = self.objective.columns
            result[np.ix_(used, used)] = self.objective.hessian(x, np.zeros((1, 0)), np.ones(1))
        found = zip(self.sources, multipliers.points, multipliers.masses, multipliers.kept, strict=True)
        for source, points, masses, kept in found:
            # Rows that are kept as they are do not bend.
            if len(points) and kept is None:
                result += source.hessian(x, points, masses)
                if follow:
                    result += source.followed(x, points, masses)
        return (result + result.T) / 2

    def look(self, x: FloatArray, keep: bool = True) -> Look | None:
        """What is seen at x, and rows found there; None where a function has no value."""
        try:
            with np.errstate(all="ignore"):
                value, gradient = self.gradient(x)
                if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
                    return None
                found = tuple(source.worst(x) for source in self.sources)
        except DataError:
            return None
        if not all(np.isfinite(each.worst) for each in found):
            return None
        sizes = []
        if keep:
            for number, (source, each) in enumerate(zip(self.sources, found, strict=True)):
                with np.errstate(all="ignore"):
                    cuts = source.cuts(x, each.points[near(each, _NEAR, _ADDED)])
                self.pool.add(number, cuts)
                sizes.append(float(np.nanmax(np.abs(cuts.matrix), initial=0.0)))
        room = min((float(np.min(-each.excess / np.maximum(each.scale, each.typical))) for each in found), default=1.0)
        if room > 0 and (self.inner is None or room > self.inner[1]):
            self.inner = x, room
        return Look(x, value, gradient, found, tuple(sizes))

    # -- steps

    def _master(self, look: Look, hessian: FloatArray, damping: float) -> ConeSolution:
        """The quadratic program for a step; where it meets trouble, again in units of a unit diagonal."""
        square = hessian + damping * np.diag(1 / self._scale**2)
        found = self._step_in_units(look, square, np.ones(len(look.x)))
        if found.status == "infeasible":
            return found

        def gained(step: FloatArray) -> float:
            return -float(look.gradient @ step + 0.5 * step @ square @ step)

        rising = found.x is not None and not look.violations.any() and gained(found.x) < -_SAME * (1 + abs(look.value))
        if found.x is not None and not rising:
            return found
        unit = np.clip(1 / np.sqrt(np.maximum(np.diagonal(square), 1e-300)), 1e-6 * self._scale, 1e6 * self._scale)
        again = self._step_in_units(look, square, unit, any_point=True)
        if again.x is None or (found.x is not None and gained(again.x) < gained(found.x)):
            return found if found.x is not None else again
        return again

    def _step_in_units(self, look: Look, square: FloatArray, unit: FloatArray, any_point: bool = False) -> ConeSolution:
        """The quadratic program with its variables in given units, and rows of unit length."""
        core, pool, x = self.core, self.pool, look.x
        rows = sparse.vstack([core.matrix, sparse.csr_array(pool.matrix)], format="csr") * unit
        size = np.sqrt((rows * rows).sum(axis=1))
        size = np.where(size > 0, size, 1.0)
        upper = np.concatenate([core.row_upper - core.matrix @ x, pool.right - pool.matrix @ x])
        lower = np.concatenate([core.row_lower - core.matrix @ x, np.full(len(pool.right), -np.inf)])
        program = FiniteLP(
            maximize=False,
            cost=look.gradient * unit,
            column_lower=(core.column_lower - x) / unit,
            column_upper=(core.column_upper - x) / unit,
            matrix=sparse.csr_array(sparse.diags_array(1 / size) @ rows),
            row_lower=lower / size,
            row_upper=upper / size,
        )
        left = None if np.isinf(self.until) else max(1e-3, self.until - time.monotonic())
        scaled = sparse.csr_array(square * unit * unit[:, None])
        found = solve_cones(ConeProgram(program, quadratic=scaled), left, any_point=any_point)
        if found.x is None or found.row_duals is None:
            return found
        return replace(found, x=found.x * unit, row_duals=found.row_duals / size)

    def run(self, start: Look, most: int) -> Ended:
        """Iterate from a start until the bracket is closed, ``most`` iterations from the first one on."""
        self._scale = np.maximum(1.0, np.abs(start.x))
        course = _Course(start, float(np.linalg.norm(start.gradient * self._scale)) or 1.0, len(self.sources))
        multipliers = self.pool.multipliers(self.sources, np.zeros(len(self.core.row_lower)))
        while len(self.log) < most:
            multipliers, status = self._iterate(course, multipliers)
            status = status or course.ended(self.until)
            if status is not None:
                return Ended(status, course.look, course.bound, tuple(self.log))
        return Ended("iteration_limit", course.look, course.bound, tuple(self.log))

    def _iterate(self, course: _Course, multipliers: Multipliers) -> tuple[Multipliers, str | None]:
        """One step; the multipliers at its end, and a status where there was none."""
        look, rows = course.look, len(self.core.row_lower)
        if course.at_kink(self.kinked):
            # A kink has no curvature that a step could follow: the rows around it say all there is to say.
            multipliers = self.pool.multipliers(self.sources, multipliers.ordinary, keep=True)
        with np.errstate(all="ignore"):
            hessian = self.hessian(look.x, multipliers, follow=True)
        if not np.all(np.isfinite(hessian)):
            hessian = np.zeros_like(hessian)
        floor = _LEAST * max(1.0, float(np.abs(np.diagonal(hessian) * self._scale**2).max(initial=0.0)))
        solution = self._master(look, hessian, max(course.damping, floor))
        if solution.x is None or solution.row_duals is None:
            return multipliers, solution.status if solution.status != "unbounded" else "undecided"
        self.pool.masses = np.maximum(-solution.row_duals[rows:], 0.0)
        multipliers = self.pool.multipliers(self.sources, solution.row_duals[:rows])
        course.weights = np.maximum(course.weights, [1.5 * masses.sum() for masses in multipliers.masses])
        step, before = solution.x, len(self.pool.right)
        promised = -float(look.gradient @ step) - 0.5 * float(step @ hessian @ step)
        promised += float(course.weights @ look.violations)
        moved, share = self._moved(course, step, promised)
        bound = None
        if moved is None or promised <= _SOON * (1 + abs(look.value)):
            bound = self.best_bound(moved or look, multipliers)
        course.note(moved, share, promised, bound)
        self._record(course, len(self.pool.right) - before)
        return multipliers, None

    def best_bound(self, look: Look, multipliers: Multipliers) -> SafeBound | None:
        """The best bound from rows that touch at one point, at points moved along the index, or as they were found."""
        best: SafeBound | None = None
        for turn, keep in ((False, False), (True, False), (False, True)):
            if keep and not self.kinked:
                continue
            used = self.pool.multipliers(self.sources, multipliers.ordinary, keep=True) if keep else multipliers
            found = safe_bound(self, look.x, used, turn)
            if found is not None and (best is None or (found.proved, found.value) > (best.proved, best.value)):
                best = found
            if best is not None and best.proved and look.value - best.value <= _CLOSED * (1 + abs(look.value)):
                break
        return best

    def _moved(self, course: _Course, step: FloatArray, promised: float) -> tuple[Look | None, float]:
        """The look at the longest share of a step that lowers the merit enough; None where none does."""
        allowed = course.allowed()
        slack, tried = _SAME * (1 + abs(allowed)), 0
        for share in _SHARES:
            x = course.look.x + share * step
            trial = self.look(np.clip(x, self.core.column_lower, self.core.column_upper))
            if trial is None:
                continue
            tried += 1
            if course.merit(trial) <= allowed - _GAIN * share * promised + slack:
                return trial, float(share)
            if tried > _TRIED:
                break
        return None, 0.0

    def _record(self, course: _Course, added: int) -> None:
        entry = {
            "iteration": len(self.log) + 1,
            "bound": self.sense * (-np.inf if course.bound is None else course.bound.value),
            "violation": float(course.look.violations.max(initial=0.0)),
            "rows": len(self.pool.right),
            "added": added,
            "restarts": 0,
            "seconds": time.monotonic() - self._started,
        }
        self.log.append(entry)
        if self.report is not None:
            self.report(entry)


class _Course:
    """Where the loop is, and how it got on so far."""

    def __init__(self, start: Look, damping: float, sources: int) -> None:
        self.look, self.damping, self.weights = start, damping, np.zeros(sources)
        self.bound: SafeBound | None = None
        self.gap = np.inf
        self._merits: list[tuple[float, FloatArray]] = []
        self._best, self._stalled, self._still = np.inf, 0, 0
        self._stuck = self._flat = self._short = False

    def at_kink(self, kinked: bool) -> bool:
        """Whether the next step should go without curvature of what has kinks: every other one, once steps fail."""
        self._flat = kinked and self._stuck and not self._flat
        return self._flat

    def merit(self, look: Look) -> float:
        """Objective and violations, each at the largest mass that its source ever had."""
        return look.value + float(self.weights @ look.violations)

    def allowed(self) -> float:
        """The largest of the last merits: good steps may go uphill for a while."""
        self._merits = [*self._merits, (self.look.value, self.look.violations)][-_MEMORY:]
        return max(value + float(self.weights @ violations) for value, violations in self._merits)

    def note(self, moved: Look | None, share: float, promised: float, bound: SafeBound | None) -> None:
        """Take a step, and see what it was worth."""
        if moved is None:
            self.damping *= _MORE
        else:
            self.damping *= _LESS if share == 1.0 else 1.0 if share > _LONG else _MORE
            self.look = moved
        size = 1 + abs(self.look.value)
        self.gap = gap = np.inf
        if bound is not None:
            gap = abs(self.look.value - bound.value) / size
            known = self.bound
            if bound.proved:
                self.gap = gap
            # Of two that are proved the higher one, unless this one closes the bracket as well.
            higher = known is None or (bound.proved, bound.value) > (known.proved, known.value)
            if higher or (bound.proved and self.gap <= self._best):
                self.bound = bound
        reached = max(self.gap, self.look.relative)
        # Steps that fail, and bounds that stay away where nothing more is promised, tell of a kink.
        self._stuck = (share < 1.0 and self._short) or (
            bound is not None and gap > _AWAY * (abs(promised) / size + _CLOSED)
        )
        self._short = share < 1.0
        self._stalled = 0 if reached < 0.5 * self._best else self._stalled + 1
        self._best = min(self._best, reached)
        # A step that promises less than rounding is none, whatever the bound says.
        self._still = self._still + 1 if abs(promised) <= _ROUNDING * size and self.look.relative <= _ENOUGH else 0

    def ended(self, until: float) -> str | None:
        """The status with which to end; None to go on."""
        if self.gap <= _CLOSED and self.look.relative <= _KEPT:
            return "optimal"
        if (self._stalled >= _STALLED and self._best <= _ENOUGH) or self._still >= _STALLED:
            return "optimal"
        if time.monotonic() > until:
            return "time_limit"
        return "undecided" if np.abs(self.look.x).max(initial=0.0) > _FAR else None
