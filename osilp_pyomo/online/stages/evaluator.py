"""From arrivals to numbers: what each function of the decision earns, and what it uses of every resource.

A resource is a coordinate of the dual: one for every test function of a semi-infinite row (Phi'a <= Phi'b), or one
for every grid point of it, and one for every ordinary row over all stages. Rows with ``>=`` are turned round, so that
every resource reads "use at most this", and every dual but that of an equality is >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.index.bases import Functionals
from osilp_pyomo.index.choose import FamilyName, as_grid, by_family, place_bases, place_grids
from osilp_pyomo.index.grids import GridPoints, Points
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED, VIEWS, Batch, PerView, concat_batches
from osilp_pyomo.online.stages.points import all_points, ends_and_knots
from osilp_pyomo.online.stages.template import CONSTANT, Arrivals, StageFamily, StageTemplate, Term

# Numbers in one block of arrivals x functions x points: 8 MB, so that a block is made and multiplied in the cache
# of a core or little beyond, and the calls around it are few.
_BLOCK = 2**20
# A dense Phi is faster to multiply single columns by, as long as it stays below this.
_DENSE = 2**22


@dataclass(frozen=True)
class ResourceGroup:
    """Coordinates of the dual that belong to one side of one row."""

    name: str
    sign: int
    equality: bool
    slices: Mapping[str, slice]
    family: int | None


@dataclass(frozen=True, eq=False)
class Resources:
    """What is rationed in one view: budgets, the least price that each can have, and the unit each is divided by."""

    total: FloatArray
    floor: FloatArray
    unit: FloatArray

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.total)


class Evaluator:
    """Turns arrivals into batches; holds the grids, the test functions and the budgets of a program.

    Quadrature weights are divided by their sum, so that nothing depends on the unit of the index. The coordinates of
    further rows are divided by a unit that makes their budgets as large as those of the first, so that nothing
    depends on the units of one row beside another's.
    """

    def __init__(
        self,
        template: StageTemplate,
        grids: Sequence[GridPoints],
        functionals: Sequence[Functionals],
        extra: Sequence[FloatArray],
    ) -> None:
        self.template = template
        self.grids = tuple(grids)
        self.functionals = tuple(functionals)
        self._extra = tuple(extra)
        # The points of the test functions first: those of the grid, or others for Diracs.
        self.points = tuple(map(all_points, functionals, grids, extra))
        # Diracs are values at points, not averages over the index.
        self.masses = tuple(
            1.0 if phi.atomic else float(grid.weights.sum()) for phi, grid in zip(functionals, grids, strict=True)
        )
        self._phi = [
            _padded(phi.matrix, len(points), mass)
            for phi, points, mass in zip(functionals, self.points, self.masses, strict=True)
        ]
        self.groups = self._make_groups()
        totals = self._budgets()
        units = {PROJECTED: self._units(totals[PROJECTED]), POINTWISE: np.ones(len(totals[POINTWISE]))}
        self.resources = {
            view: Resources(totals[view] / units[view], self._floor(view, len(totals[view])), units[view])
            for view in VIEWS
        }
        single = len(self.groups) == 1 and self.groups[0].sign > 0 and self.groups[0].family is not None
        #: Whether there is a single resource group, of one semi-infinite row.
        self.simple = single and not template.rows
        terms = [term for family in template.families for term in family.terms]
        terms += [term for row in template.rows for term in row.terms]
        self.has_fixed = any(term.function == CONSTANT for term in terms)

    @classmethod
    def of(cls, template: StageTemplate, grid: Any, basis: Any) -> Evaluator:
        """With grids and test functions placed on a template's rows: one value for all, or {component: value}."""
        names = [FamilyName(family.name, family.component) for family in template.families]
        domains = [family.domain for family in template.families]
        grids = place_grids(names, domains, grid)
        functionals = place_bases(names, grids, basis)
        extra = [
            np.empty((0, family.domain.dimension))
            if each is not None and isinstance(as_grid(each), Points)
            else ends_and_knots(family, placed.points)
            for each, family, placed in zip(by_family(grid, names, "grid"), template.families, grids, strict=True)
        ]
        return cls(template, grids, functionals, extra)

    # -- resources -------------------------------------------------------------------------------------

    def _make_groups(self) -> tuple[ResourceGroup, ...]:
        """The sides of all rows, one after the other in both views."""
        groups: list[ResourceGroup] = []
        ends = dict.fromkeys(VIEWS, 0)

        def add(name: str, sign: int, equality: bool, sizes: tuple[int, int], family: int | None) -> None:
            at = {}
            for view, size in zip(VIEWS, sizes, strict=True):
                at[view] = slice(ends[view], ends[view] + size)
                ends[view] += size
            groups.append(ResourceGroup(name, sign, equality, at, family))

        for number, family in enumerate(self.template.families):
            for sign in family.sides:
                add(family.name, sign, False, (self._phi[number].shape[1], len(self.points[number])), number)
        for row in self.template.rows:
            sides = [(1, row.upper)] if row.equality else [(1, row.upper), (-1, row.lower)]
            for sign, limit in sides:
                if limit is not None:
                    add(row.name, sign, row.equality, (1, 1), None)
        return tuple(groups)

    def _budgets(self) -> PerView:
        totals = {view: np.zeros(self.groups[-1].slices[view].stop) for view in VIEWS}
        rows = {row.name: row for row in self.template.rows}
        for group in self.groups:
            if group.family is None:
                row = rows[group.name]
                limit = row.upper if group.sign > 0 else row.lower
                assert limit is not None
                for view in VIEWS:
                    totals[view][group.slices[view]] = group.sign * limit
            else:
                values = group.sign * self.limit(group)
                totals[POINTWISE][group.slices[POINTWISE]] = values
                totals[PROJECTED][group.slices[PROJECTED]] = self._phi[group.family].T @ values
        return totals

    def _floor(self, view: str, size: int) -> FloatArray:
        """The least price of each resource: that of an equality is free."""
        floor = np.zeros(size)
        for group in self.groups:
            if group.equality:
                floor[group.slices[view]] = -np.inf
        return floor

    def limit(self, group: ResourceGroup, at: FloatArray | None = None) -> FloatArray:
        """The right-hand side of a group's row at its grid points, or at others."""
        assert group.family is not None
        family = self.template.families[group.family]
        lower, upper = family.limits.limits(self.points[group.family] if at is None else at)
        return upper if group.sign > 0 else lower

    def _units(self, total: FloatArray) -> FloatArray:
        unit = np.ones(len(total))
        sizes = [float(np.sqrt(np.mean(total[group.slices[PROJECTED]] ** 2))) for group in self.groups]
        for group, size in zip(self.groups, sizes, strict=True):
            if size > 0 and sizes[0] > 0:
                unit[group.slices[PROJECTED]] = size / sizes[0]
        return unit

    def rescaled(self, share: float) -> Evaluator:
        """The same with all budgets multiplied."""
        return Evaluator(self.template.rescaled(share), self.grids, self.functionals, self._extra)

    @cached_property
    def neighbours(self) -> list[tuple[Any, FloatArray] | None]:
        """For each family order and places of its grid points on a single axis; None in several dimensions."""
        found: list[tuple[Any, FloatArray] | None] = []
        for points in self.points:
            if points.shape[1] > 1 or len(points) < 2:
                found.append(None)
                continue
            order = np.argsort(points[:, 0], kind="stable")
            found.append((order, points[order, 0]))
        return found

    @cached_property
    def neighbour_lists(self) -> list[tuple[list[int], list[float]] | None]:
        """The same as plain lists, in which a single place is found faster."""
        return [look if look is None else (look[0].tolist(), look[1].tolist()) for look in self.neighbours]

    def idle_objection(self, arrivals: Arrivals) -> str | None:
        """Whether the functions of the decision use something at zero, or its own rows forbid zero."""
        template = self.template
        some = arrivals if template.linear else arrivals.part(slice(0, 200))
        for row in template.own_rows:
            coefficients, constant = template.numbers(row.terms, some)
            nothing = np.zeros((len(some), len(template.decisions)))
            value = (template.values(some, nothing) * coefficients).sum(axis=1) + constant
            if np.any(value > 1e-12) or (row.equality and np.any(np.abs(value) > 1e-12)):
                return f"0 does not satisfy the stage's own row '{row.name}'"
        if template.linear:
            return "an arrival uses something even if nothing is decided for it" if self.has_fixed else None
        if any(isinstance(value, np.ndarray) and np.isnan(value).any() for value in some.values):
            return "the model's own arrivals have no values, so it is not known whether deciding nothing uses nothing"
        some = arrivals.part(slice(0, 20))
        batch = self._evaluate(some, True)
        zero = np.zeros((len(some), len(template.decisions)))
        use = np.abs(np.nan_to_num(self.used(batch, zero, POINTWISE), nan=np.inf))
        size = np.abs(self.resources[POINTWISE].total) + np.abs(batch.fixed[POINTWISE]).max(initial=0.0)
        if np.any(use > 1e-9 * np.where(size > 0, size, 1.0)):
            return "an arrival uses something even if nothing is decided for it"
        return None

    def labels(self) -> list[str]:
        """A name for each projected resource."""
        names = []
        for group in self.groups:
            if group.family is None:
                names.append(group.name)
            else:
                names += [f"{group.name}: {label}" for label in self.functionals[group.family].labels]
        return names

    # -- arrivals --------------------------------------------------------------------------------------

    @cached_property
    def block(self) -> int:
        """How many arrivals are evaluated at a time."""
        width = max(1, len(self.template.functions) * max((len(points) for points in self.points), default=1))
        return max(16, _BLOCK // width)

    def batch(self, arrivals: Arrivals, keep_points: bool = True) -> Batch:
        """Evaluate and project arrivals; without ``keep_points`` block by block, in bounded memory."""
        if keep_points and len(arrivals) == 1 and self._single_terms is not None:
            found = self._evaluate_one(arrivals, *self._single_terms)
            if found is not None:
                return found
        if keep_points or len(arrivals) <= self.block:
            return self._evaluate(arrivals, keep_points)
        return concat_batches([self._evaluate(part, False) for part in self._blocks(arrivals)], arrivals)

    def _blocks(self, arrivals: Arrivals) -> Iterator[Arrivals]:
        return (arrivals.part(slice(start, start + self.block)) for start in range(0, len(arrivals), self.block))

    def batches(self, arrivals: Arrivals) -> Iterator[Batch]:
        """Evaluate and project arrivals, as many at a time as memory allows."""
        return (self.batch(part) for part in self._blocks(arrivals))

    @cached_property
    def _single_terms(self) -> tuple[Term, Term] | None:
        """What the commonest programs earn and use: one linear decision in a fixed box, one row, data that are numbers.

        None for all others.
        """
        template = self.template
        plain = self.simple and not self.has_fixed and template.linear and not template.own_rows
        plain = plain and isinstance(self._phi[0], np.ndarray) and self._same_bounds is not None
        terms = (*template.objective, *template.families[0].terms) if plain else ()
        if len(template.decisions) > 1 or len(terms) != 2 or len(template.objective) != 1:
            return None
        numbers = all(
            isinstance(slot, int) and template.fields[slot].curve is None for each in terms for slot in each.slots
        )
        return terms if numbers and all(each.function != CONSTANT for each in terms) else None

    @cached_property
    def _nothing(self) -> PerView:
        """No fixed use."""
        return {view: np.empty((0, self.resources[view].size)) for view in VIEWS}

    @cached_property
    def _no_own_rows(self) -> tuple[FloatArray, FloatArray]:
        """Coefficients and constants of the own rows of a single arrival that has none."""
        return np.zeros((1, 0, 1)), np.zeros((1, 0))

    @cached_property
    def _axes(self) -> list[FloatArray]:
        """The coordinates (M,) of the points of the only row."""
        return list(self.points[0].T.copy())

    @cached_property
    def _alone(self) -> Batch:
        """A batch of one of the commonest programs, of which each arrival changes but a few entries."""
        assert self._same_bounds is not None
        nothing = np.zeros(1)
        nothing.flags.writeable = False
        one, own = Arrivals((), pd.RangeIndex(1)), (np.zeros((1, 0, 1)), np.zeros((1, 0)))
        return Batch(one, np.zeros((1, 1)), nothing, {}, self._nothing, *self._same_bounds, *own)

    def _evaluate_one(self, arrivals: Arrivals, reward: Term, use: Term) -> Batch | None:
        """A single arrival of the commonest programs without detours; None where something is not finite."""
        with np.errstate(all="ignore"):
            rewards = np.asarray(reward.of_one(arrivals, ()), dtype=float).reshape(1, 1)
            values = np.asarray(use.of_one(arrivals, self._axes), dtype=float)
            if values.shape != (len(self.points[0]),):
                return None
            usage = values @ self._phi[0]
            # What is not finite at any point is not finite against any test function.
            if not math.isfinite(usage.item(0) + rewards.item()):
                return None
        views = {PROJECTED: usage[None, None], POINTWISE: values[None, None]}
        return self._alone.of_another(arrivals, rewards if self.template.maximize else -rewards, views)

    def _evaluate(self, arrivals: Arrivals, keep_points: bool) -> Batch:
        with np.errstate(all="ignore"):
            return self._evaluate_quietly(arrivals, keep_points)

    def without_use(self, arrivals: Arrivals) -> Batch:
        """What arrivals earn and may decide, without what they use: nothing is evaluated on the index."""
        with np.errstate(all="ignore"):
            rewards, earned = self._rewards(arrivals)
            lower, upper = self._bounds(arrivals)
            return Batch(arrivals, rewards, earned, {}, {}, lower, upper, *self._own_rows(arrivals))

    def _rewards(self, arrivals: Arrivals) -> tuple[FloatArray, FloatArray]:
        """What each function of the decision earns (B, K), and what nothing changes (B,)."""
        rewards, earned = self.template.numbers(self.template.objective, arrivals)
        if not self.template.maximize:
            rewards, earned = -rewards, -earned
        if not np.isfinite(rewards.sum() + earned.sum()):
            self._refuse_infinite_reward(rewards, earned, arrivals)
        return rewards, earned

    def _own_rows(self, arrivals: Arrivals) -> tuple[FloatArray, FloatArray]:
        """Coefficients (B, rows, K) and constants (B, rows) of the stages' own rows."""
        count, rows = len(arrivals), self.template.own_rows
        own, own_fixed = np.zeros((count, len(rows), len(self.template.functions))), np.zeros((count, len(rows)))
        for number, row in enumerate(rows):
            own[:, number], own_fixed[:, number] = self.template.numbers(row.terms, arrivals)
        return own, own_fixed

    def _evaluate_quietly(self, arrivals: Arrivals, keep_points: bool) -> Batch:
        template = self.template
        count, functions = len(arrivals), len(template.functions)
        rewards, earned = self._rewards(arrivals)
        lower, upper = self._bounds(arrivals)
        own, own_fixed = self._own_rows(arrivals)
        uses = [
            template.on_points(family, arrivals, points)
            for family, points in zip(template.families, self.points, strict=True)
        ]
        if self.simple and not self.has_fixed:
            values = uses[0][0]
            projected = (values.reshape(count * functions, -1) @ self._phi[0]).reshape(count, functions, -1)
            use, fixed = {PROJECTED: projected, POINTWISE: values}, self._nothing
        else:
            use, fixed = self._assemble(arrivals, uses)
        if not keep_points:
            del use[POINTWISE]
        return Batch(arrivals, rewards, earned, use, fixed, lower, upper, own, own_fixed)

    def _bounds(self, arrivals: Arrivals) -> tuple[FloatArray, FloatArray]:
        """Bounds (B, n) of the decisions, whole ones for integers."""
        if self._same_bounds is not None:
            lower, upper = self._same_bounds
            if len(arrivals) == 1:
                return lower, upper
            return np.repeat(lower, len(arrivals), axis=0), np.repeat(upper, len(arrivals), axis=0)
        return self._find_bounds(arrivals)

    @cached_property
    def _same_bounds(self) -> tuple[FloatArray, FloatArray] | None:
        """The bounds where no data change them."""
        sides = (*self.template.lower, *self.template.upper)
        if any(term.slots for terms in sides if terms is not None for term in terms):
            return None
        return self._find_bounds(Arrivals((), pd.RangeIndex(1)))

    @cached_property
    def bounded_box(self) -> bool:
        """Whether all decisions have finite bounds that no data change."""
        same = self._same_bounds
        return same is not None and bool(np.all(np.isfinite(same)))

    def _find_bounds(self, arrivals: Arrivals) -> tuple[FloatArray, FloatArray]:
        template = self.template
        lower = template.limits(template.lower, -np.inf, arrivals)
        upper = template.limits(template.upper, np.inf, arrivals)
        if template.integer.any():
            lower = np.where(template.integer, np.ceil(lower - 1e-9), lower)
            upper = np.where(template.integer, np.floor(upper + 1e-9), upper)
        if template.options:
            upper = np.minimum(upper, 1.0)
        bad = ~(lower <= upper)
        if bad.any():
            arrival, decision = np.argwhere(bad)[0]
            raise DataError(
                f"Variable '{template.decisions[decision]}': for the arrival {arrivals.name(arrival)!r} its bounds "
                f"are [{lower[arrival, decision]:g}, {upper[arrival, decision]:g}], which hold no number."
            )
        return lower, upper

    def _refuse_infinite_reward(self, rewards: FloatArray, earned: FloatArray, arrivals: Arrivals) -> None:
        bad = ~(np.isfinite(rewards).all(axis=1) & np.isfinite(earned))
        if bad.any():
            raise DataError(
                f"Objective: a coefficient for the arrival {arrivals.name(int(np.argmax(bad)))!r} is not a finite "
                "number; keep the objective finite for its data."
            )

    def _assemble(
        self, arrivals: Arrivals, uses: list[tuple[FloatArray, FloatArray | None]]
    ) -> tuple[dict[str, FloatArray], PerView]:
        """Put the resources of several rows side by side: what functions of the decision use, and what is fixed."""
        count, functions = len(arrivals), len(self.template.functions)
        use = {view: np.zeros((count, functions, self.resources[view].size)) for view in VIEWS}
        fixed = {view: np.zeros((count, self.resources[view].size)) for view in VIEWS}
        rows = {row.name: self.template.numbers(row.terms, arrivals) for row in self.template.rows}
        for group in self.groups:
            at = group.slices
            if group.family is None:
                values, constant = rows[group.name]
                for view in VIEWS:
                    use[view][:, :, at[view]] = group.sign * values[:, :, None]
                    fixed[view][:, at[view]] = group.sign * constant[:, None]
                continue
            values, constants = uses[group.family]
            phi = self._phi[group.family]
            use[POINTWISE][:, :, at[POINTWISE]] = group.sign * values
            projected = (values.reshape(count * functions, -1) @ phi).reshape(count, functions, -1)
            use[PROJECTED][:, :, at[PROJECTED]] = group.sign * projected
            if constants is not None:
                fixed[POINTWISE][:, at[POINTWISE]] = group.sign * constants
                fixed[PROJECTED][:, at[PROJECTED]] = group.sign * (constants @ phi)
        use[PROJECTED] /= self.resources[PROJECTED].unit
        fixed[PROJECTED] /= self.resources[PROJECTED].unit
        return use, fixed if self.has_fixed else self._nothing

    # -- use of a decision --------------------------------------------------------------------------------

    def used(self, batch: Batch, x: FloatArray, which: str = PROJECTED) -> FloatArray:
        """Use (B, R or M) of the resources by decisions x (B, n)."""
        usage, fixed = batch.use[which], batch.fixed[which]
        values = self.template.values(batch.arrivals, x)
        result = np.einsum("bk,bkr->br", values, usage)
        if len(fixed):
            result = result + fixed
        for group in self.groups:
            if group.family is not None and self.template.families[group.family].mixed:
                mixed = group.sign * self.mixed_use(batch.arrivals, x, group.family, self.points[group.family])
                if which == POINTWISE:
                    result[:, group.slices[POINTWISE]] += mixed
                else:
                    result[:, group.slices[PROJECTED]] += (
                        mixed @ self._phi[group.family] / self.resources[PROJECTED].unit[group.slices[PROJECTED]]
                    )
        return result

    def total_use(self, batch: Batch, x: FloatArray) -> FloatArray:
        """Use (M,) of all resources at points by decisions x (B, n) together."""
        if any(family.mixed for family in self.template.families):
            return self.used(batch, x, POINTWISE).sum(axis=0)
        usage, fixed = batch.use[POINTWISE], batch.fixed[POINTWISE]
        values = self.template.values(batch.arrivals, x)
        result: FloatArray = values.ravel() @ usage.reshape(values.size, -1)
        return result + fixed.sum(axis=0) if len(fixed) else result

    def own_excess(self, batch: Batch, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By how much decisions x (B, n) break the stages' own rows (B, rows), and the size of those rows' terms."""
        values = self.template.values(batch.arrivals, x)
        activity = np.einsum("brk,bk->br", batch.own, values) + batch.own_fixed
        size = np.einsum("brk,bk->br", np.abs(batch.own), np.abs(values)) + np.abs(batch.own_fixed)
        return np.where([row.equality for row in self.template.own_rows], np.abs(activity), activity), size

    def mixed_use(self, arrivals: Arrivals, x: FloatArray, family: int, points: FloatArray) -> FloatArray:
        """What terms that mix index and decision use at points (B, M)."""
        coordinates = [points[None, :, axis] for axis in range(points.shape[1])]
        coordinates += [x[:, j][:, None] for j in range(x.shape[1])]
        result = np.zeros((len(arrivals), len(points)))
        for term in self.template.families[family].mixed:
            with np.errstate(all="ignore"):
                result += term.kernel(arrivals.filled(term.slots), coordinates)
        return result

    def phi(self, family: int) -> Any:
        """A family's test functions at its points, quadrature weights included (M, q)."""
        return self._phi[family]

    def project(self, values: FloatArray, family: int) -> FloatArray:
        """A function given at a family's grid points, against its test functions."""
        return np.asarray(self._phi[family].T @ values).ravel()

    def density(self, dual: FloatArray, which: str, family: int) -> FloatArray:
        """The price on a family's grid points that a dual stands for, signs included."""
        result = np.zeros(len(self.points[family]))
        for group in self.groups:
            if group.family == family:
                if which == POINTWISE:
                    result += group.sign * dual[group.slices[POINTWISE]]
                else:
                    own = dual[group.slices[PROJECTED]] / self.resources[PROJECTED].unit[group.slices[PROJECTED]]
                    result += group.sign * np.asarray(self._phi[family] @ own).ravel()
        return result

    def reach(self, batch: Batch) -> FloatArray:
        """How far each function of the decision can go (B, K)."""
        low, high = batch.lower, batch.upper
        span = np.where(np.isfinite(high - low) & (high > low), high - low, 1.0)
        if self.template.linear:
            return span
        start = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - 1.0, 0.0))
        with np.errstate(all="ignore"):
            first, last = (self.template.values(batch.arrivals, each) for each in (start, start + span))
            size = np.abs(last - first)
        return np.where(np.isfinite(size), size, 1.0)

    def reward(self, batch: Batch, x: FloatArray) -> FloatArray:
        """What decisions x earn (B,), in the model's own sense."""
        values = self.template.values(batch.arrivals, x)
        if values.shape[1] == 1:
            total = (values * batch.rewards)[:, 0] + batch.earned
        else:
            total = (values * batch.rewards).sum(axis=1) + batch.earned
        return total if self.template.maximize else -total

    def at_points(self, family: StageFamily, arrivals: Arrivals, x: FloatArray, points: FloatArray) -> FloatArray:
        """Total use of a family by all arrivals at any points, for audits; block by block."""
        return self.all_at_points(family, arrivals, [x], points)[0]

    def all_at_points(
        self, family: StageFamily, arrivals: Arrivals, decisions: Sequence[FloatArray], points: FloatArray
    ) -> FloatArray:
        """Total use (S, M) of a family at any points by the same arrivals under S ways to decide them."""
        total = np.zeros((len(decisions), len(points)))
        values = np.stack([self.template.values(arrivals, x) for x in decisions])
        number = self.template.families.index(family)
        step = max(1, _BLOCK // max(1, len(points) * values.shape[2]))
        for start in range(0, len(arrivals), step):
            at = slice(start, start + step)
            some = arrivals.part(at)
            use, constants = self.template.on_points(family, some, points)
            total += values[:, at].reshape(len(values), -1) @ use.reshape(-1, len(points))
            if constants is not None:
                total += constants.sum(axis=0)
            if family.mixed:
                total += [self.mixed_use(some, x[at], number, points).sum(axis=0) for x in decisions]
        return total


def _padded(matrix: Any, points: int, mass: float) -> Any:
    """Phi with weights that sum to 1, and rows of zeros for points that only guards look at."""
    dense = matrix.shape[1] * points <= _DENSE
    if dense and not isinstance(matrix, np.ndarray):
        matrix = matrix.toarray()
    if isinstance(matrix, np.ndarray):
        # By columns: a single arrival is multiplied by one test function after the other.
        result = np.zeros((points, matrix.shape[1]), order="F")
        result[: len(matrix)] = matrix / mass
        return result
    padded = (matrix / mass).tocsr()
    padded.resize((points, matrix.shape[1]))
    return padded
