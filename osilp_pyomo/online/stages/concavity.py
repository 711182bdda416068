"""Curvature: is what a stage earns concave, and what it uses convex, in the decision?

Rules of disciplined convex programming settle it where they can, from the ranges of data (``within=``) and decisions.
Whatever they leave open is tried out at sampled decisions; a pair whose middle is on the wrong side refuses the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import CurvatureError
from osilp_pyomo.index.curves.stack import CurveStack
from osilp_pyomo.index.nodes import AFFINE, CONCAVE, CONVEX, DATA, UNKNOWN, Traits
from osilp_pyomo.online.stages.batch import POINTWISE, PROJECTED, Batch
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.template import Arrivals, Field, StageTemplate

# Arrivals, pairs of decisions and points of the index that are tried.
_ARRIVALS, _PAIRS, _POINTS = 1000, 48, 25


# -- a whole stage --------------------------------------------------------------------------------------------


def function_curvatures(template: StageTemplate, lower: FloatArray, upper: FloatArray) -> list[str]:
    """Curvature of each function of the decision by the rules, for decisions within bounds."""
    axes = {axis: Traits(AFFINE, float(lower[axis]), float(upper[axis])) for axis in range(len(template.decisions))}
    found = []
    for function in template.functions:
        if function.formula is None:
            found.append(AFFINE)
            continue
        slots = [_data_traits(template.fields[field]) for field in function.slots]
        found.append(function.formula.traits(slots, axes).kind)
    return found


def _data_traits(field: Field) -> Traits:
    return Traits(DATA, field.allowed.lower, field.allowed.upper)


def check_curvature(evaluator: Evaluator, own: Arrivals) -> str:
    """Refuse stages that are not concave in what they earn or not convex in what they use; say how it was settled."""
    template = evaluator.template
    if template.linear:
        return "linear"
    arrivals = _examples(template, own)
    batch = evaluator.batch(arrivals)
    low = np.where(np.isfinite(batch.lower), batch.lower, np.where(np.isfinite(batch.upper), batch.upper - 10, -10.0))
    high = np.where(np.isfinite(batch.upper), batch.upper, low + 20.0)
    rng = np.random.default_rng(20260)
    for _ in range(_PAIRS):
        shares = rng.random((2, *low.shape))
        _try_pair(evaluator, batch, low + shares[0] * (high - low), low + shares[1] * (high - low), rng)
    kinds = function_curvatures(template, batch.lower.min(axis=0), batch.upper.max(axis=0))
    mixed = any(family.mixed for family in template.families)
    if not mixed and UNKNOWN not in kinds and _signs_agree(template, batch, kinds):
        return "concave and convex by the rules of convex programming, with the signs of the data at hand"
    return f"concave and convex as far as {_PAIRS * len(arrivals)} pairs of decisions show"


def _examples(template: StageTemplate, own: Arrivals) -> Arrivals:
    """Some of the model's own arrivals; data without values get numbers of their range."""
    some = own.part(slice(0, None, max(1, len(own) // _ARRIVALS)))
    rng = np.random.default_rng(7)
    values: list[Any] = []
    for field, value in zip(template.fields, some.values, strict=True):
        if isinstance(value, CurveStack):
            values.append(value)
            continue
        low = field.allowed.lower if np.isfinite(field.allowed.lower) else min(0.1, field.allowed.upper)
        high = field.allowed.upper if np.isfinite(field.allowed.upper) else low + 1.0
        values.append(np.where(np.isnan(value), rng.uniform(low, high, len(value)), value))
    return Arrivals(tuple(values), some.index)


def _signs_agree(template: StageTemplate, batch: Batch, kinds: list[str]) -> bool:
    for k, kind in enumerate(kinds):
        if kind == AFFINE:
            continue
        earns, uses = (
            batch.rewards[:, k],
            batch.use[POINTWISE][:, k] if POINTWISE in batch.use else batch.use[PROJECTED][:, k],
        )
        good_earning = earns >= 0 if kind == CONCAVE else earns <= 0
        good_using = uses >= 0 if kind == CONVEX else uses <= 0
        own = batch.own[:, :, k]
        good_own = own >= 0 if kind == CONVEX else own <= 0
        if not (np.all(good_earning) and np.all(good_using) and np.all(good_own)):
            return False
    return True


def _try_pair(evaluator: Evaluator, batch: Batch, x: FloatArray, y: FloatArray, rng: np.random.Generator) -> None:
    template, middle = evaluator.template, (x + y) / 2
    ends, centre = [template.values(batch.arrivals, each) for each in (x, y)], template.values(batch.arrivals, middle)
    sense = "concave" if template.maximize else "convex"
    mean = (ends[0] + ends[1]) / 2

    def refuse(what: str, kind: str, arrival: int) -> None:
        raise CurvatureError(
            f"{what} is not {kind} in the decision: for the arrival {batch.arrivals.name(arrival)!r} it fails between "
            f"{_text(template, x[arrival])} and {_text(template, y[arrival])}; online stages must earn concavely and "
            "use convexly."
        )

    with np.errstate(all="ignore"):
        parts = (mean - centre) * batch.rewards
        wrong = parts.sum(axis=1) > 1e-9 * (np.abs(mean) * np.abs(batch.rewards)).sum(axis=1)
        if wrong.any():
            refuse("The objective", sense, int(np.argmax(wrong)))
        for number, row in enumerate(template.own_rows):
            bend = ((centre - mean) * batch.own[:, number]).sum(axis=1)
            size = 1e-9 * (np.abs(mean) * np.abs(batch.own[:, number])).sum(axis=1)
            wrong = np.abs(bend) > size if row.equality else bend > size
            if wrong.any():
                refuse(
                    f"The stage's own row '{row.name}'", "linear" if row.equality else "convex", int(np.argmax(wrong))
                )
        assert POINTWISE in batch.use
        for group in evaluator.groups:
            count = group.slices[POINTWISE].stop - group.slices[POINTWISE].start
            some = rng.choice(count, min(_POINTS, count), replace=False)
            use = batch.use[POINTWISE][:, :, group.slices[POINTWISE]][:, :, some]
            bend = np.einsum("bk,bkm->bm", centre - mean, use)
            size = np.einsum("bk,bkm->bm", np.abs(mean) + np.abs(centre), np.abs(use))
            if group.family is not None and template.families[group.family].mixed:
                at = evaluator.points[group.family][some]
                uses = [evaluator.mixed_use(batch.arrivals, each, group.family, at) for each in (x, y, middle)]
                bend = bend + group.sign * (uses[2] - (uses[0] + uses[1]) / 2)
                size = size + np.abs(uses[0]) + np.abs(uses[1])
            wrong = bend > 1e-9 * size if not group.equality else np.abs(bend) > 1e-9 * size
            if wrong.any():
                kind = "linear" if group.equality else "convex" if group.sign > 0 else "concave"
                refuse(f"The row '{group.name}'", kind, int(np.argwhere(wrong)[0][0]))


def _text(template: StageTemplate, x: FloatArray) -> str:
    return ", ".join(f"{label} = {value:.4g}" for label, value in zip(template.decisions, x, strict=True))
