"""Linear arrivals, all known at once, as a semi-infinite LP in arrays: the offline problem without a Pyomo model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.formula import Formula
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.offline.assemble import Subject
from osilp_pyomo.offline.prepare import with_switch_points
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP, as_affine
from osilp_pyomo.offline.rows import TermGroup, TracedRows
from osilp_pyomo.online.stages.evaluator import Evaluator, ResourceGroup
from osilp_pyomo.online.stages.template import CONSTANT, Arrivals, Multiplied, StageFamily, StageTemplate


class DecisionNames(Sequence[str]):
    """Names of decisions, made one by one: "x @ 17"."""

    def __init__(self, template: StageTemplate, index: Any) -> None:
        self._labels = [str(label) for label in template.decisions]
        self._index = index

    def __len__(self) -> int:
        return len(self._labels) * len(self._index)

    def __getitem__(self, k: Any) -> Any:
        arrival, decision = divmod(range(len(self))[k], len(self._labels))
        return f"{self._labels[decision]} @ {self._index[arrival]}"


def stage_lp(evaluator: Evaluator, arrivals: Arrivals, counts: FloatArray) -> SemiInfiniteLP:
    """The problem of all arrivals: T n columns, the stages' own rows, rows over all stages, and the families.

    ``counts`` says how often each arrival comes; its columns are then the sums over all that are equal.
    """
    template = evaluator.template
    count, width = len(arrivals), len(template.decisions)
    names = DecisionNames(template, arrivals.index)
    cost, earned = template.numbers(template.objective, arrivals)
    matrix, lower, upper, row_names = _ordinary_rows(template, arrivals, counts)
    core = FiniteLP(
        maximize=template.maximize,
        cost=cost.ravel(),
        offset=template.offset + float(earned @ counts),
        column_lower=(counts[:, None] * template.limits(template.lower, -np.inf, arrivals)).ravel(),
        column_upper=(counts[:, None] * template.limits(template.upper, np.inf, arrivals)).ravel(),
        integer=np.tile(template.integer, count),
        matrix=matrix,
        row_lower=lower,
        row_upper=upper,
        column_names=names,
        row_names=row_names,
    )
    columns = np.arange(count, dtype=np.int64) * width
    return SemiInfiniteLP(
        core, tuple(_family(template, family, arrivals, counts, columns, names) for family in template.families)
    )


def _family(
    template: StageTemplate,
    family: StageFamily,
    arrivals: Arrivals,
    counts: FloatArray,
    columns: Any,
    names: Sequence[str],
) -> Family:
    groups = [
        term.group(
            arrivals,
            columns + term.function,
            template.data_names(term),
            (template.decisions[term.function].name,),
        )
        for term in family.terms
        if term.function != CONSTANT
    ]
    moved = []
    for term in family.terms:
        if term.function == CONSTANT:
            group = term.group(arrivals, np.zeros(len(arrivals), dtype=np.int64))
            formula = None if group.formula is None else group.formula.weighted()
            slots = (*group.slots, -counts)
            moved.append(replace(group, kernel=Multiplied(group.kernel), slots=slots, formula=formula))
    limits = [None if side is None else (*side, *moved) for side in (family.limits.lower, family.limits.upper)]
    rows = TracedRows(_merged(groups), *limits)
    return as_affine(Family(family.name, with_switch_points(family.domain, rows), rows, names))


def _merged(groups: list[TermGroup]) -> list[TermGroup]:
    """Groups that each hold a column once: the rest of the package adds up blocks by assigning them."""
    by_column: dict[int, list[TermGroup]] = {}
    for group in groups:
        by_column.setdefault(int(group.columns[0]), []).append(group)
    result = []
    for same in by_column.values():
        if len(same) == 1:
            result.append(same[0])
            continue
        sizes = [len(group.slots) for group in same]
        slots = tuple(slot for group in same for slot in group.slots)
        kernel = _Summed(tuple(group.kernel for group in same), tuple(sizes))
        ends = np.cumsum([0, *sizes]).tolist()
        switches = tuple(
            _Part(switch, first, last)
            for group, first, last in zip(same, ends[:-1], ends[1:], strict=True)
            for switch in group.switches
        )
        parameters = tuple(name for group in same for name in group.parameters)
        known = [group.formula for group in same if group.formula is not None]
        formula = Formula.sum_of(known) if len(known) == len(same) else None
        result.append(TermGroup(kernel, slots, same[0].columns, parameters, same[0].variables, switches, formula))
    return result


class _Part:
    """A function of some of the slots only."""

    def __init__(self, kernel: Any, first: int, last: int) -> None:
        self.kernel, self.first, self.last = kernel, first, last

    def __call__(self, slots: Sequence[Any], coordinates: Sequence[Any]) -> Any:
        return self.kernel(slots[self.first : self.last], coordinates)


class _Summed:
    """The sum of kernels whose slots stand one after the other."""

    def __init__(self, kernels: tuple[Any, ...], sizes: tuple[int, ...]) -> None:
        self.kernels, self.sizes = kernels, sizes

    def __call__(self, slots: Sequence[Any], coordinates: Sequence[Any]) -> Any:
        total, first = 0.0, 0
        for kernel, size in zip(self.kernels, self.sizes, strict=True):
            total = total + kernel(slots[first : first + size], coordinates)
            first += size
        return total


def _ordinary_rows(template: StageTemplate, arrivals: Arrivals, counts: FloatArray) -> tuple[Any, Any, Any, list[str]]:
    count, width = len(arrivals), len(template.decisions)
    blocks: list[Any] = []
    lower: list[Any] = []
    upper: list[Any] = []
    names: list[str] = []
    for row in template.rows:
        coefficients, constants = template.numbers(row.terms, arrivals)
        blocks.append(sparse.csr_array(coefficients.reshape(1, -1)))
        constant = float(constants @ counts)
        lower.append([-np.inf if row.lower is None else row.lower - constant])
        upper.append([np.inf if row.upper is None else row.upper - constant])
        names.append(row.name)
    places = np.arange(count * width).reshape(count, width)
    for each in template.own_rows:
        coefficients, constants = template.numbers(each.terms, arrivals)
        own = np.repeat(np.arange(count), width)
        blocks.append(sparse.csr_array((coefficients.ravel(), (own, places.ravel())), shape=(count, count * width)))
        lower.append(-counts * constants if each.equality else np.full(count, -np.inf))
        upper.append(-counts * constants)
        names += [f"{each.name} @ {name}" for name in arrivals.index]
    if not blocks:
        return sparse.csr_array((0, count * width)), np.empty(0), np.empty(0), []
    matrix = sparse.csr_array(sparse.vstack(blocks))
    matrix.eliminate_zeros()
    return matrix, np.concatenate(lower), np.concatenate(upper), names


def stage_subject(template: StageTemplate, variables: Iterable[str] | None = None) -> Subject:
    """What a result about stages speaks of; without names of variables, of no values."""
    return Subject(
        template.maximize,
        {family.name: "traced" for family in template.families},
        template.indices,
        lambda number, point: template.families[number].domain.label(point),
        lambda number, point: template.families[number].domain.label(point),
        variables,
        dict.fromkeys(row.name for row in template.rows),
    )


def ordinary_duals(evaluator: Evaluator, dual_of: Callable[[int, ResourceGroup], float]) -> FloatArray:
    """Duals of the ordinary rows in the sense of the model; ``dual_of`` gives that of each side of one."""
    sense = 1.0 if evaluator.template.maximize else -1.0
    duals = dict.fromkeys((row.name for row in evaluator.template.rows), 0.0)
    for number, group in enumerate(evaluator.groups):
        if group.family is None:
            duals[group.name] += sense * group.sign * dual_of(number, group)
    return np.array(list(duals.values()))
