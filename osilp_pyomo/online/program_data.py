"""The stages of a model, compiled: plain arrays and formulas, and what controllers ask of them."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import BoolArray, FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.offline.prices import Price, atomic_price, projected_price
from osilp_pyomo.offline.results import FamilyMap
from osilp_pyomo.offline.rows import TermGroup
from osilp_pyomo.online.needs import needs_something
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED, VIEWS, Batch, PerView
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.index_guard import IndexGuard
from osilp_pyomo.online.stages.intake import Intake
from osilp_pyomo.online.stages.linear import Densities, StageSolver
from osilp_pyomo.online.stages.template import Arrivals, StageFamily, StageTemplate, Term

# A column whose value at a place of its own data is this many times that of the grid points around it is narrower
# than the grid can see.
_NARROW = 2.0


class ProgramData:
    """Everything about a program that controllers need; it can be pickled."""

    def __init__(
        self,
        template: StageTemplate,
        own: Arrivals,
        horizon: int,
        evaluator: Evaluator,
        solver: StageSolver,
        curvature: str,
    ) -> None:
        self.template = template
        self.horizon = horizon
        self.evaluator = evaluator
        self.solver = solver
        self.curvature = curvature
        self.intake = Intake(template.fields)
        self._own = own

    @property
    def data(self) -> pd.DataFrame:
        """The model's own arrivals, one row each; curves are in :attr:`profiles`."""
        return self.intake.to_frame(self._own)

    @property
    def profiles(self) -> dict[Any, FloatArray | None]:
        """Curves of the model's own arrivals: for each Profile an array (arrivals, points)."""
        return {
            field.label.column: value.array
            for field, value in zip(self.template.fields, self._own.values, strict=True)
            if isinstance(value, CurveStack) and not field.hidden
        }

    @property
    def stage_solver(self) -> str:
        """How the problem of a stage is solved."""
        return self.solver.name

    @property
    def no_arrivals(self) -> Arrivals:
        """None of the model's own arrivals, in their form."""
        return self._own.part(slice(0, 0))

    @cached_property
    def used(self) -> set[int]:
        """Numbers of the fields that rows, bounds or functions of the decision depend on."""
        template = self.template
        slots = [term.slots for family in template.families for term in family.terms]
        slots += [term.slots for family in template.families for term in family.mixed]
        rows = [row.terms for row in template.rows] + [row.terms for row in template.own_rows]
        rows += [terms or () for terms in (*template.lower, *template.upper)]
        slots += [term.slots for terms in rows for term in terms]
        slots += [function.slots for function in template.functions]
        return {slot for each in slots for slot in each if isinstance(slot, int)}

    def first_data(self, name: str) -> Any:
        """What the model's first arrival brings under a name, as a step takes it; 1 where it has no value."""
        numbers = self.intake.by_name[name]
        fields = [self.template.fields[number] for number in numbers]
        values = [np.nan_to_num(float(self._own.values[number][0]), nan=1.0) for number in numbers]
        if not fields[0].label.key:
            return values[0]
        keys = [field.label.key if len(field.label.key) > 1 else field.label.key[0] for field in fields]
        return dict(zip(keys, values, strict=True))

    # -- what guards can keep --------------------------------------------------------------------------------

    def needs(self, view: str) -> BoolArray:
        """Which resources need something, as rows with a lower limit do."""
        return needs_something(self.evaluator.resources[view].total, self.budget_sizes[view])

    @property
    def default_guard(self) -> str:
        """The guard of a controller when none is named."""
        return "pointwise" if self.guard_objection is None and self.null_objection is None else "none"

    @cached_property
    def guard_objection(self) -> str | None:
        """Why no guard can keep the rows, whatever the null action is; None where one can."""
        for group in self.evaluator.groups:
            if group.equality:
                return f"the row '{group.name}' is an equality over all arrivals, which holds at the end or not at all"
        needing = self.needs(POINTWISE)
        for group in self.evaluator.groups:
            if not needing[group.slices[POINTWISE]].any():
                continue
            why = (
                f"the row '{group.name}' needs something from the beginning, and what can still come is not known, for"
            )
            if not self.template.linear:
                return f"{why} the stages are not linear"
            for label, terms in zip(self.template.decisions, self.template.upper, strict=True):
                if terms is None:
                    return f"{why} the decision '{label}' has no upper bound"
        return None

    @cached_property
    def null_objection(self) -> str | None:
        """Why guards need a null action to be named; None where 0 is one, or stages must serve and can be."""
        return None if self.must_serve is not None else self.idle_objection

    @cached_property
    def must_serve(self) -> str | None:
        """Why linear stages must decide something for every arrival; None where 0 is allowed."""
        if not self.template.linear or self.evaluator.has_fixed or self.idle_objection is None:
            return None
        return self.idle_objection

    def null_use(self, null: FloatArray) -> str | None:
        """A row of which a null action uses something for the model's own arrivals; None where it uses nothing."""
        some = self._own.part(slice(0, 50))
        if not self._has_values(some):
            return None
        batch = self.evaluator.batch(some)
        use = self.evaluator.used(batch, np.tile(null, (len(some), 1)), POINTWISE)
        if len(batch.fixed[POINTWISE]):
            use = use - batch.fixed[POINTWISE]
        largest = use.max(axis=0)
        for group in self.evaluator.groups:
            at = group.slices[POINTWISE]
            if np.any(largest[at] > 1e-9 * self.budget_sizes[POINTWISE][at]):
                return group.name
        return None

    @staticmethod
    def _has_values(arrivals: Arrivals) -> bool:
        """Whether all data of arrivals are there."""
        known = all(not np.isnan(value).any() for value in arrivals.values if isinstance(value, np.ndarray))
        return known and not any(value.missing for value in arrivals.values if isinstance(value, CurveStack))

    @cached_property
    def idle_objection(self) -> str | None:
        """Why 0 is not allowed for an arrival, or uses something; None where it is no decision at all."""
        template = self.template
        for label, low, high in zip(template.decisions, template.lower, template.upper, strict=True):
            for terms, wrong in ((low, lambda value: value > 0), (high, lambda value: value < 0)):
                if terms is not None and any(term.slots for term in terms):
                    values = template.numbers(terms, self._own)[1]
                    if np.any(wrong(values)):
                        return f"0 is not always allowed for {label}"
                elif terms is not None and wrong(sum(float(np.asarray(term.kernel((), ()))) for term in terms)):
                    return f"0 is not allowed for {label}"
        return self.evaluator.idle_objection(self._own)

    @cached_property
    def budget_sizes(self) -> PerView:
        """What rounding of budgets is measured by: the largest of a row; for a row without any, what arrivals use."""
        evaluator = self.evaluator
        sizes = {view: np.ones(evaluator.resources[view].size) for view in VIEWS}
        some = self._own.part(slice(0, 50))
        known = self._has_values(some)
        for group in evaluator.groups:
            for view in VIEWS:
                at = group.slices[view]
                largest = float(np.abs(evaluator.resources[view].total[at]).max())
                if largest == 0.0 and known:
                    largest = float(np.abs(evaluator.batch(some).use[view][:, :, at]).max())
                sizes[view][at] = largest if largest > 0.0 else 1.0
        return sizes

    @cached_property
    def index_guard(self) -> IndexGuard:
        """What a pointwise guard knows of the rows between its points."""
        return IndexGuard(self.evaluator)

    @cached_property
    def fingerprint(self) -> str:
        """What tells this program from others: formulas, names, test functions and budgets."""
        resources = self.evaluator.resources
        return self._digest([resources[view].total for view in VIEWS])

    @cached_property
    def projection(self) -> str:
        """What tells programs from each other that evaluate and project the same arrivals otherwise."""
        return self._digest([self.evaluator.resources[PROJECTED].unit])

    def _digest(self, numbers: list[FloatArray]) -> str:
        """A digest of formulas, names, test functions and points, and of some numbers."""
        digest = hashlib.sha256()
        template, evaluator = self.template, self.evaluator
        digest.update(repr((template.maximize, template.decisions, template.integer.tolist())).encode())
        for field in template.fields:
            digest.update(repr((field.label, field.hidden, field.default, field.allowed)).encode())
            if field.curve is not None:
                digest.update(repr((field.curve.kind, field.curve.outside)).encode())
                for knots in field.curve.knots or ():
                    digest.update(np.ascontiguousarray(knots).tobytes())
        rows = [template.objective]
        rows += [each.terms for each in template.families]
        rows += [each.terms for each in template.rows]
        rows += [each.terms for each in template.own_rows]
        rows += [terms or () for terms in (*template.lower, *template.upper)]
        for terms in rows:
            for term in terms:
                fields = [slot if isinstance(slot, int) else "a curve of all" for slot in term.slots]
                digest.update(repr((term.function, repr(term.kernel), fields)).encode())
        for number, family in enumerate(template.families):
            slots: list[Any] = [slot for term in family.terms for slot in term.slots]
            for slot in (*slots, *(slot for mixed in family.mixed for slot in mixed.slots)):
                if isinstance(slot, CurveStack):
                    # A curve that all stages share is data of the program.
                    points = evaluator.points[number]
                    values = slot(*(points[None, :, axis] for axis in range(points.shape[1])))
                    digest.update(np.ascontiguousarray(values).tobytes())
        digest.update(repr([function.text for function in template.functions]).encode())
        arrays = [*numbers, *evaluator.points]
        for number in range(len(template.families)):
            phi = evaluator.phi(number)
            arrays += [phi] if isinstance(phi, np.ndarray) else [phi.data, phi.indices, phi.indptr]
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    # -- data ----------------------------------------------------------------------------------------------

    def arrivals(self, data: Any = None, profiles: Mapping[str, Any] | None = None) -> Arrivals:
        """Arrivals of a frame, or the model's own."""
        if data is None and profiles is not None:
            if any(field.curve is None and not field.hidden for field in self.template.fields):
                raise DataError("profiles= comes beside data=, the numbers of the same arrivals; give both.")
            first = next(iter(profiles.values()), ()) if isinstance(profiles, Mapping) else ()
            data = pd.DataFrame(index=pd.RangeIndex(len(first) if np.ndim(first) else 0))
        if isinstance(data, Arrivals):
            return data
        if data is None:
            self.intake.refuse_missing(self._own)
            return self._own
        return self.intake.frame(data, profiles)

    def batch(self, data: Any = None, profiles: Mapping[str, Any] | None = None) -> Batch:
        """Arrivals evaluated on the grid and projected."""
        if isinstance(data, Batch):
            return data
        return self.evaluator.batch(self.arrivals(data, profiles))

    def project(self, data: Any = None, profiles: Mapping[str, Any] | None = None) -> Batch:
        """Arrivals projected on the test functions once, to be replayed often; what they use at points is dropped."""
        batch = self.evaluator.batch(self.arrivals(data, profiles), keep_points=False)
        return replace(batch, projection=self.projection)

    def theta(self, batch: Batch) -> FloatArray:
        """Numbers of the data (B, fields); zero for curves, which no function of the decision holds."""
        if len(batch) == 1:
            numbers = [value.item() if isinstance(value, np.ndarray) else 0.0 for value in batch.arrivals.values]
            return np.array([numbers])
        columns = [value if isinstance(value, np.ndarray) else np.zeros(len(batch)) for value in batch.arrivals.values]
        return np.stack(columns, axis=1) if columns else np.zeros((len(batch), 0))

    def densities(self, dual: FloatArray, view: str) -> Densities:
        """The price on the grid points of families whose terms mix index and decision."""
        return [
            (number, (self.evaluator.points[number], self.evaluator.density(dual, view, number)))
            for number, family in enumerate(self.template.families)
            if family.mixed
        ]

    def refuse_narrow(self, batch: Batch) -> None:
        """Refuse arrivals whose use is a peak between two points of the guard's grid.

        Looked for where the data themselves are places of the index: a kernel peaks at its centre.
        """
        if not self._numbers or POINTWISE not in batch.use:
            return
        if len(batch) == 1 and not self._maybe_narrow(batch):
            return
        given = np.array([batch.arrivals.values[number] for number in self._numbers]).T
        for group in self.evaluator.groups:
            look = None if group.family is None else self.evaluator.neighbours[group.family]
            if look is None:
                continue
            order, places = look
            right = places.searchsorted(given)
            inside = (right > 0) & (right < len(places))
            if not inside.any():
                continue
            right[~inside] = 1
            at = np.where(inside, given, places[0])
            family = self.template.families[group.family or 0]
            rows = np.arange(len(batch))[:, None]
            beside = batch.use[POINTWISE][:, :, group.slices[POINTWISE]]
            for k in range(beside.shape[1]):
                left_use, right_use = beside[rows, k, order[right - 1]], beside[rows, k, order[right]]
                seen = np.maximum(np.abs(left_use), np.abs(right_use))
                terms = [term.values(batch.arrivals, [at]) for term in family.terms if term.function == k]
                peak = np.abs(sum(terms)) if terms else seen
                narrow = inside & (peak > _NARROW * seen)
                if narrow.any():
                    self._refuse_if_narrow(batch, family, beside[:, k], at, peak, seen, narrow)

    def _maybe_narrow(self, batch: Batch) -> bool:
        """The same question about a single arrival on plain numbers, which is faster; in doubt, yes."""
        assert POINTWISE in batch.use
        for group in self.evaluator.groups:
            look = None if group.family is None else self.evaluator.neighbour_lists[group.family]
            if look is None:
                continue
            family = self.template.families[group.family or 0]
            if len(family.terms) > 1 or family.terms[0].function < 0:
                return True
            order, places = look
            given = [batch.arrivals.values[number].item(0) for number in self._numbers]
            inside = [value for value in given if places[0] < value < places[-1]]
            if not inside:
                continue
            use = batch.use[POINTWISE][0, family.terms[0].function, group.slices[POINTWISE]]
            peaks = np.asarray(family.terms[0].values(batch.arrivals, [np.array([inside])])).ravel().tolist()
            for value, peak in zip(inside, peaks if len(peaks) > 1 else peaks * len(inside), strict=True):
                right = bisect_left(places, value)
                if abs(peak) > _NARROW * max(abs(use.item(order[right - 1])), abs(use.item(order[right]))):
                    return True
        return False

    def _refuse_if_narrow(
        self,
        batch: Batch,
        family: StageFamily,
        use: FloatArray,
        at: FloatArray,
        peak: FloatArray,
        seen: FloatArray,
        narrow: Any,
    ) -> None:
        """Refuse a peak between grid points, unless it is nothing beside the rest of its column."""
        narrow = narrow & (peak > 1e-3 * np.abs(use).max(axis=1)[:, None])
        # Where the row does not hold there is nothing to see.
        narrow &= family.domain.contains(at.reshape(-1, 1)).reshape(at.shape)
        if narrow.any():
            b, place = np.argwhere(narrow)[0]
            raise DataError(
                f"SemiInfiniteConstraint '{family.name}': at {family.domain.names[0]} = {at[b, place]:.10g} the "
                f"arrival {batch.arrivals.name(b)!r} uses {peak[b, place]:.3g}, and at the grid points beside it "
                f"{seen[b, place]:.3g} at most: it is narrower than the grid can see, so no guard could hold. Compile "
                "with a finer grid=, or use guard='projected' or 'none'."
            )

    @cached_property
    def _numbers(self) -> list[int]:
        """Fields that are numbers."""
        return [number for number, field in enumerate(self.template.fields) if field.curve is None]

    def price_of(self, dual: FloatArray, view: str = PROJECTED) -> Any:
        """A dual as prices on the indices, in the sense of the model: d objective / d right-hand side."""
        prices = {family.name: self._price(number, dual, view) for number, family in enumerate(self.template.families)}
        return next(iter(prices.values())) if len(prices) == 1 else FamilyMap(prices)

    def price_on(self, number: int, dual: FloatArray) -> Price:
        """A dual of the test functions as the price of one family."""
        return self._price(number, dual, PROJECTED)

    def _price(self, number: int, dual: FloatArray, view: str) -> Price:
        evaluator, family = self.evaluator, self.template.families[number]
        sense = 1.0 if self.template.maximize else -1.0
        templates = tuple(self._priced_group(term) for term in family.terms if term.function >= 0)
        if view == POINTWISE:
            masses = sense * evaluator.density(dual, POINTWISE, number)
            kept = masses != 0
            return atomic_price(family.name, family.domain, evaluator.points[number][kept], masses[kept], templates)
        functionals = evaluator.functionals[number]
        duals = np.zeros(len(functionals))
        for group in evaluator.groups:
            if group.family == number:
                duals += (
                    sense
                    * group.sign
                    * dual[group.slices[PROJECTED]]
                    / evaluator.resources[PROJECTED].unit[group.slices[PROJECTED]]
                )
        return projected_price(family.name, functionals, duals / evaluator.masses[number], templates)

    def _priced_group(self, term: Term) -> TermGroup:
        label = self.template.functions[term.function].text
        names = self.template.data_names(term)
        return term.group(self._own, np.arange(len(self._own)), names, (label,))
