"""The stages of a model, compiled: plain arrays and formulas, and what controllers ask of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo.arrivals import Intake
from osilp_pyomo.batches import POINTS, PROJECTED, Batch, Evaluator
from osilp_pyomo.curves import CurveStack
from osilp_pyomo.domains import FloatArray
from osilp_pyomo.errors import DataError
from osilp_pyomo.prices import Price, atomic_price, projected_price
from osilp_pyomo.problem import TermGroup
from osilp_pyomo.resampling import resolve_sample
from osilp_pyomo.results import FamilyMap
from osilp_pyomo.stage_problems import Densities, StageSolver
from osilp_pyomo.templates import Arrivals, Label, StageTemplate, Term

# A column whose value at a place of its own data is this many times that of the grid points around it is narrower
# than the grid can see.
_NARROW = 2.0


class CompiledStages:
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
        return self.intake.tail(self._own)

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

    @cached_property
    def guard_objection(self) -> str | None:
        """Why guards need a null action to be named, or None where 0 is one."""
        for group in self.evaluator.groups:
            if group.sign < 0 or group.equality:
                return f"the row '{group.name}' has a lower limit, which serving nobody does not keep"
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
    def fingerprint(self) -> str:
        """What tells this program from others: formulas, names, test functions and budgets."""
        digest = hashlib.sha256()
        template, evaluator = self.template, self.evaluator
        digest.update(repr((template.maximize, template.decisions, template.integer.tolist())).encode())
        digest.update(repr([(field.label, field.hidden) for field in template.fields]).encode())
        rows = [template.objective]
        rows += [each.terms for each in template.families]
        rows += [each.terms for each in template.rows]
        rows += [each.terms for each in template.own_rows]
        rows += [terms or () for terms in (*template.lower, *template.upper)]
        for terms in rows:
            digest.update(repr([(term.function, repr(term.kernel), len(term.slots)) for term in terms]).encode())
        digest.update(repr([function.text for function in template.functions]).encode())
        for array in (evaluator.total, evaluator.point_total, *evaluator.points):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    # -- data ----------------------------------------------------------------------------------------------

    def arrivals(self, data: Any = None, profiles: Mapping[str, Any] | None = None) -> Arrivals:
        """Arrivals of a frame, or the model's own."""
        if data is None:
            self.intake.refuse_missing(self._own)
            return self._own
        return self.intake.frame(data, profiles)

    def batch(self, data: Any = None, profiles: Mapping[str, Any] | None = None) -> Batch:
        """Arrivals evaluated on the grid and projected."""
        if isinstance(data, Batch):
            return data
        batch = self.evaluator.batch(self.arrivals(data, profiles))
        return batch

    def project(self, data: Any = None, profiles: Mapping[str, Any] | None = None) -> Batch:
        """Arrivals projected on the test functions once, to be replayed often; what they use at points is dropped."""
        return self.evaluator.batch(self.arrivals(data, profiles), keep_points=False)

    def theta(self, batch: Batch) -> FloatArray:
        """Numbers of the data (B, fields); zero for curves, which no function of the decision holds."""
        columns = [value if isinstance(value, np.ndarray) else np.zeros(len(batch)) for value in batch.arrivals.values]
        return np.stack(columns, axis=1) if columns else np.zeros((len(batch), 0))

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
        numbers = [value for value in batch.arrivals.values if isinstance(value, np.ndarray)]
        if not numbers or batch.points is None:
            return
        given = np.stack(numbers, axis=1)
        for group in self.evaluator.groups:
            look = None if group.family is None else self.evaluator.neighbours(group.family)
            if look is None:
                continue
            order, places = look
            inside = (given > places[0]) & (given < places[-1])
            if not inside.any():
                continue
            family = self.template.families[group.family or 0]
            right = np.minimum(np.maximum(np.searchsorted(places, given), 1), len(places) - 1)
            at = np.where(inside, given, places[0])
            first, rows = group.points.start, np.arange(len(batch))[:, None]
            # (B, K, data): the larger of the two grid points beside each place.
            seen = np.maximum(
                np.abs(batch.points[rows, :, first + order[right - 1]]),
                np.abs(batch.points[rows, :, first + order[right]]),
            ).transpose(0, 2, 1)
            peak = np.zeros(seen.shape)
            for term in family.terms:
                if term.function >= 0:
                    peak[:, term.function] += term.values(batch.arrivals, [at])
            peak = np.abs(peak)
            narrow = inside[:, None] & (peak > _NARROW * seen)
            if narrow.any():
                size = np.abs(batch.points[:, :, group.points]).max(axis=2)
                narrow &= peak > 1e-3 * size[:, :, None]
            if narrow.any():
                b, k, place = np.argwhere(narrow)[0]
                raise DataError(
                    f"SemiInfiniteConstraint '{family.name}': at {family.domain.names[0]} = {at[b, place]:.10g} the "
                    f"arrival {batch.arrivals.index[b]!r} uses {peak[b, k, place]:.3g}, and at the grid points "
                    f"beside it {seen[b, k, place]:.3g} at most: it is narrower than the grid can see, so no guard "
                    "could hold. Compile with a finer grid=, or use guard='projected' or 'none'."
                )

    def decision_frame(self, decisions: FloatArray, index: pd.Index) -> pd.DataFrame:
        """Decisions under the user's names, one row an arrival."""
        frame = pd.DataFrame(decisions, index=index)
        frame.columns = pd.Index([label.column for label in self.template.decisions], tupleize_cols=False)
        return frame

    def price_of(self, dual: FloatArray, view: str = PROJECTED) -> Any:
        """A dual as prices on the indices, in the sense of the model: d objective / d right-hand side."""
        prices = {family.name: self._price(number, dual, view) for number, family in enumerate(self.template.families)}
        return next(iter(prices.values())) if len(prices) == 1 else FamilyMap(prices)

    def _price(self, number: int, dual: FloatArray, view: str) -> Price:
        evaluator, family = self.evaluator, self.template.families[number]
        sense = 1.0 if self.template.maximize else -1.0
        templates = tuple(self._priced_group(term) for term in family.terms if term.function >= 0)
        if view == POINTS:
            masses = sense * evaluator.density(dual, POINTS, number)
            kept = masses != 0
            return atomic_price(family.name, family.domain, evaluator.points[number][kept], masses[kept], templates)
        functionals = evaluator.functionals[number]
        duals = np.zeros(len(functionals))
        for group in evaluator.groups:
            if group.family == number:
                duals += sense * group.sign * dual[group.projected] / evaluator.unit[group.projected]
        return projected_price(family.name, functionals, duals / evaluator.masses[number], templates)

    def _priced_group(self, term: Term) -> TermGroup:
        names = tuple(self._data_name(slot) for slot in term.slots)
        group = term.group(self._own, np.arange(len(self._own)))
        label: Label = self.template.decisions[min(term.function, len(self.template.decisions) - 1)]
        return TermGroup(group.kernel, group.slots, group.columns, names, (str(label),))

    def _data_name(self, slot: int | CurveStack) -> str | None:
        """How a number of the data is called; None for curves and hidden constants."""
        if isinstance(slot, CurveStack):
            return None
        field = self.template.fields[slot]
        return None if field.hidden or field.curve is not None else str(field.label)

    def resolve(self, history: Any, budget: FloatArray, dual: FloatArray, view: str) -> Any:
        """Dual and fractions of the sample problem of remembered arrivals."""
        return resolve_sample(self.evaluator, self.solver, history, budget, dual, view)
