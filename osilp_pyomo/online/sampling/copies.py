"""Copies of the arrivals of a sample: moved a little, so that it tells of places between those that were seen.

Three hundred requests at three hundred places are a rough picture of where requests come. A kernel density is a better
one: each arrival is copied, and its data are moved by a normal vector of the sample's own covariance and of Scott's
width, N^(-1 / (d + 4)), reflected at the ends of what was seen (Scott 1992), or of a narrower one where that is clearly
likelier, as for places in clusters. Only data that say what is used are moved,
so that a reward that stands beside them keeps its value. Data that repeat, whole numbers and curves stay as they are.

Stages that choose among options are decided by an LP whose vertices are all or nothing: equal requests would all take
the same option. So each option of each copy earns a hundred thousandth more or less, at random; arrivals that are
decided are treated alike, and options that earn the same are taken in the shares of the sample's LP.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

from osilp_pyomo._arrays import FloatArray, IntArray
from osilp_pyomo.errors import OsilpError
from osilp_pyomo.online.program_data import ProgramData
from osilp_pyomo.online.sampling.sample import Sample, at_levels, taken
from osilp_pyomo.online.stages.batch import POINTWISE, Batch
from osilp_pyomo.online.stages.template import ANYTHING, Arrivals, StageTemplate

# A sample has at least so many columns, if need be by so many copies, and no more numbers than fit into so much memory.
_LEAST, _COPIES, _NUMBERS = 600, 20, 2**23
# Data of more dimensions than this are not moved: their density cannot be told from so few arrivals.
_DIMENSIONS = 4
# Data of which fewer than this share are different are kinds, not places.
_DIFFERENT = 0.9
# By which share the rewards of options differ at random.
TIE_BREAK = 1e-5
# From so many rows, and by so many of them, widths are compared; how often a width may be halved; and by how much the
# mean logarithm of the density must grow.
_FEW, _PROBES, _HALVINGS, _CLEARLY = 8, 128, 5, 0.25


def breaks_ties(template: StageTemplate) -> bool:
    """Whether rewards are moved a little, because the shares of an LP cannot be taken on ties."""
    return template.linear and bool(template.own_rows)


def moved_copies(
    program: ProgramData, sample: Sample, move: bool, guard: str, keep_points: bool, key: tuple[int, ...]
) -> Sample:
    """The sample with copies of its arrivals, which are moved where data are places; the same for the same ``key``."""
    if not len(sample):
        return sample
    width = program.evaluator.resources[POINTWISE].size * len(program.template.functions)
    most = max(1, _NUMBERS // max(1, width * len(sample)))
    copies = min(most, _COPIES, -(-_LEAST // len(sample)))
    random = np.random.default_rng([20, *key])
    fields = _places(program.template, sample) if move else []
    if fields and len(sample) * width <= _NUMBERS:
        sample = _moved(program, sample, fields, copies, guard, keep_points, random)
    elif breaks_ties(program.template):
        sample = _copied(sample, copies)
    if breaks_ties(program.template):
        return _with_ties_broken(sample, copies, random)
    return sample


def _copied(sample: Sample, copies: int) -> Sample:
    found = sample.take(np.tile(np.arange(len(sample)), copies))
    return replace(found, weights=found.weights / copies)


def _with_ties_broken(sample: Sample, copies: int, random: np.random.Generator) -> Sample:
    """Rewards a little more or less: copies of an arrival are spread evenly, in another order for each option."""
    rewards = sample.batch.rewards
    if len(sample) % copies:
        draws = random.uniform(size=rewards.shape)
    else:
        ranks = random.uniform(size=(copies, len(sample) // copies, rewards.shape[1])).argsort(axis=0)
        draws = ((ranks + random.uniform(size=ranks.shape)) / copies).reshape(rewards.shape)
    batch = sample.batch
    broken = Batch(
        batch.arrivals, rewards * (1 + TIE_BREAK * (draws - 0.5)), batch.earned, batch.use, batch.fixed, batch.lower,
        batch.upper, batch.own, batch.own_fixed,
    )  # fmt: skip
    return replace(sample, batch=broken)


# -- which data are places ---------------------------------------------------------------------------------


def _places(template: StageTemplate, sample: Sample) -> list[int]:
    """Numbers of the fields that say what is used, and whose values are places rather than kinds; maybe none."""
    used = [term.slots for family in template.families for term in family.terms]
    used += [term.slots for family in template.families for term in family.mixed]
    used += [term.slots for row in template.rows for term in row.terms]
    slots = {slot for each in used for slot in each if isinstance(slot, int)}
    if any(template.fields[slot].curve is not None for slot in slots):
        return []
    found = [slot for slot in sorted(slots) if _is_place(template, sample, slot)]
    return found if len(found) <= _DIMENSIONS else []


def _is_place(template: StageTemplate, sample: Sample, slot: int) -> bool:
    field, values = template.fields[slot], sample.batch.arrivals.values[slot]
    if field.hidden or len(field.allowed.intervals) != 1 or field.allowed.intervals[0].step != 0:
        return False
    different = len(np.unique(values))
    return different > 1 and different >= _DIFFERENT * sample.met and not np.all(values == np.round(values))


# -- moving --------------------------------------------------------------------------------------------------


def _moved(
    program: ProgramData,
    sample: Sample,
    fields: list[int],
    copies: int,
    guard: str,
    keep_points: bool,
    random: np.random.Generator,
) -> Sample:
    """Copies whose data are moved, evaluated anew; the sample itself where that cannot be."""
    places = np.tile(np.arange(len(sample)), copies)
    data = np.stack([sample.batch.arrivals.values[slot] for slot in fields], axis=1)
    moved = moved_data(data, sample.weights, places, random)
    for column, slot in enumerate(fields):
        allowed = program.template.fields[slot].allowed
        if allowed is not ANYTHING:
            moved[:, column] = np.where(allowed.bad(moved[:, column]), data[places, column], moved[:, column])
    values = [value[places] if isinstance(value, np.ndarray) else None for value in sample.batch.arrivals.values]
    for column, slot in enumerate(fields):
        values[slot] = moved[:, column]
    if any(value is None for value in values):
        return sample
    try:
        batch = program.evaluator.batch(Arrivals(tuple(values), pd.RangeIndex(len(places))), keep_points=keep_points)
        if guard == POINTWISE and keep_points:
            batch = program.index_guard.lifted(batch)
        if sample.levels is not None:
            # What a forecast was multiplied by is not in its data.
            batch = at_levels(batch, sample.levels[places])
    except OsilpError:
        # Data that lie between those of arrivals need not be those of one: a stay that ends before it begins.
        return sample
    weights = sample.weights[places] / copies
    # Nor is an arrival that uses nothing, where the one that it is a copy of does.
    kept = _uses_something(batch) | ~_uses_something(sample.batch)[places]
    if kept.all():
        return Sample(taken(batch, slice(None)), weights, np.full(len(places), -1), sample.met)
    return Sample(taken(batch, kept), weights[kept], np.full(int(kept.sum()), -1), sample.met)


def _uses_something(batch: Batch) -> IntArray:
    return np.any([np.any(use != 0, axis=(1, 2)) for use in batch.use.values()], axis=0)


def _narrower(data: FloatArray, share: FloatArray, width: float) -> float:
    """By what a width of kernels is multiplied: 1, unless a narrower one is clearly likelier.

    Data in clusters spread much less than their variance says. Widths are compared by the likelihood of some rows
    under the density of all others; equal rows, which would be the likelier the narrower the kernel, are left out.
    """
    if len(data) < _FEW:
        return 1.0
    rows = np.unique(np.linspace(0, len(data) - 1, min(len(data), _PROBES)).astype(int))
    squares = cdist(data[rows], data, "sqeuclidean") / width**2
    squares[squares <= 1e-12] = np.inf
    factors = 0.5 ** np.arange(_HALVINGS + 1)
    dense = np.stack([np.exp(-squares / (2 * each**2)) @ share / each ** data.shape[1] for each in factors])
    # A little of the wide one is in each, so that no single row far from all others decides.
    gains = np.log(0.9 * dense + 0.1 * dense[0] + 1e-300) - np.log(dense[0] + 1e-300)
    mean, error = gains.mean(axis=1), gains.std(axis=1) / np.sqrt(len(rows))
    clear = (mean > _CLEARLY) & (mean > 3 * error)
    return float(factors[np.argmax(np.where(clear, mean, 0.0))])


def moved_data(data: FloatArray, weights: FloatArray, places: IntArray, random: np.random.Generator) -> FloatArray:
    """Rows of ``data`` (N, d) at some places, moved as a kernel density of the sample says.

    Examples
    --------
    >>> data = np.array([[0.0], [1.0], [4.0]])
    >>> moved = moved_data(data, np.ones(3), np.array([0, 1, 2, 0]), np.random.default_rng(0))
    >>> bool(moved.min() >= 0 and moved.max() <= 4), moved.shape
    (True, (4, 1))
    """
    share = weights / weights.sum()
    centred = data - share @ data
    covariance = (centred * share[:, None]).T @ centred
    # Data that depend on each other linearly have no Cholesky factor but for a little noise.
    noise = 1e-12 * np.diag(covariance).copy() + 1e-300
    factor = np.linalg.cholesky(covariance + np.diag(noise))
    effective = 1.0 / float(share @ share)
    width = effective ** (-1.0 / (data.shape[1] + 4))
    width *= _narrower(np.linalg.solve(factor, centred.T).T, share, width)
    moved = data[places] + width * random.normal(size=(len(places), data.shape[1])) @ factor.T
    low, span = data.min(axis=0), np.ptp(data, axis=0)
    span = np.where(span > 0, span, 1.0)
    turned = np.mod((moved - low) / span, 2.0)
    return np.clip(low + span * np.minimum(turned, 2.0 - turned), low, data.max(axis=0))
