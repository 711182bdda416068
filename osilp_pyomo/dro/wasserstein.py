"""Wasserstein balls: distributions that a sample becomes when its probability is moved a little.

In general the rows of the worst case hold for every place that probability may be moved to. Where the loss is affine in
the random vector, piece by piece, finitely many rows or rows over a norm's ball say the same exactly (Mohajerin
Esfahani and Kuhn, 2018, corollary 5.1): probability moves to an end of the support, or along the piece's gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from numpy.typing import ArrayLike
from pyomo.contrib.pyros.uncertainty_sets import AxisAlignedEllipsoidalSet, BoxSet, CardinalitySet

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.dro.ambiguity import Ambiguity, Loss, number_or_data, price_atoms, refuse_negative
from osilp_pyomo.dro.losses import (
    PiecesAtPoints,
    SumOfMaxima,
    TermShape,
    at_a_point,
    difference,
    multiplied,
    separable,
    shapes_of_terms,
)
from osilp_pyomo.dro.reweighting import probabilities
from osilp_pyomo.dro.supports import Region, Support, event_region
from osilp_pyomo.errors import OptionError
from osilp_pyomo.index.convex_sets import Body, BoxBody, ProductBody
from osilp_pyomo.index.transport_sets import TransportBody
from osilp_pyomo.model.arrays.expressions import Vector
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint
from osilp_pyomo.model.sets import SetOfEachFamily, body_of, is_uncertainty_set, labelled, same_set
from osilp_pyomo.offline.results import Result

# A share of a sample's probability that is rounding.
_NO_PART = 1e-12


class Wasserstein(Ambiguity):
    """All distributions on a support within a Wasserstein distance (of type 1) of a sample.

    Parameters
    ----------
    samples : array
        n numbers, or an array (n, d).
    radius : float, Param or Expression of data, optional
        The distance: how far probability is moved on average.
    support : as for :class:`Moments`, optional
        Everywhere if not given.
    norm : 1, 2 or "inf"
        How far two vectors are apart.
    weights : array, optional
        Probabilities of the samples; equal if not given.
    price : expression, optional
        Instead of a radius: no distance is ruled out, and this is taken from the expectation for each unit of it. With
        a variable as the price, a target that the worst case must keep, and the price minimized, this is robust
        satisficing (Long, Sim and Zhou, 2023).

    Notes
    -----
    The worst expectation is the smallest ``radius q + sum_i w_i s_i`` with ``s_i >= loss(xi) - q |xi - xi_i|`` for all
    xi of the support, and q >= 0 (Mohajerin Esfahani and Kuhn, 2018, theorem 4.2).

    Examples
    --------
    >>> Wasserstein([1.0, 2.0, 4.0], radius=0.1)
    Wasserstein ball of radius 0.1 around 3 samples
    """

    def __init__(
        self,
        samples: ArrayLike,
        radius: Any = None,
        support: Any = None,
        *,
        norm: Any = 1,
        weights: ArrayLike | None = None,
        price: Any = None,
    ) -> None:
        points = np.array(samples, dtype=float)
        self.samples = points.reshape(-1, 1) if points.ndim == 1 else points
        if self.samples.ndim != 2 or not len(self.samples) or not np.all(np.isfinite(self.samples)):
            raise OptionError(
                f"Wasserstein: samples must be finite numbers or rows of them (got shape {points.shape})."
            )
        if (radius is None) == (price is None):
            raise OptionError("Wasserstein: give either the radius of the ball, or the price of a unit of distance.")
        radius = 0.0 if radius is None else number_or_data(radius, "radius of a Wasserstein ball")
        if isinstance(radius, float):
            refuse_negative("radius of a Wasserstein ball", radius)
        if norm not in (1, 2, "inf", np.inf):
            raise OptionError(f"Wasserstein: norm must be 1, 2 or 'inf' (got {norm!r}).")
        self.radius, self.price, self.norm = radius, price, "inf" if norm == np.inf else norm
        if support is None:
            support = (None, None) if points.ndim == 1 else [(None, None)] * self.samples.shape[1]
        self.support = Support(support, "Wasserstein")
        if self.support.dimension != self.samples.shape[1]:
            raise OptionError(
                f"Wasserstein: the support has {self.support.dimension} dimensions, the samples have "
                f"{self.samples.shape[1]}."
            )
        if not self.support.contains(self.samples):
            raise OptionError("Wasserstein: a sample lies outside of the support; widen the support, or leave it out.")
        self.weights = probabilities(weights, len(self.samples), "Wasserstein")

    def __repr__(self) -> str:
        if self.price is not None:
            return f"Wasserstein distance from {len(self.samples)} samples at a price"
        shown = f"{self.radius:g}" if isinstance(self.radius, float) else str(self.radius)
        return f"Wasserstein ball of radius {shown} around {len(self.samples)} samples"

    @cached_property
    def moved(self) -> Any:
        """Where probability may be moved to, and how far: an uncertainty set for each sample.

        Its vectors are those of the support with one more entry, at least their distance from the sample and at most
        the longest within the support. Decision
        rules over it know the sample and how far it was moved (event-wise affine recourse: Chen, Sim and Xiong, 2020);
        the sample is the first index of the rules and of the rows over it.
        """
        names = [f"xi[{k}]" for k in range(self.samples.shape[1])]
        return labelled(TransportSets(self.samples, self.support, self.norm, ended=True), [*names, "distance"])

    def example(self) -> Any:
        return self._vector(self.samples[0])

    def _vector(self, point: FloatArray) -> Any:
        numbers = point.tolist()
        return Vector(numbers) if self.support.vector else numbers[0]

    def _levels(self, block: Any) -> Any:
        """The price of moving probability, the level of each sample, and the value of the dual."""
        block.price = pyo.Var(bounds=(0, None))
        block.level = pyo.Var(range(len(self.samples)))
        if self.price is not None:
            block.priced = pyo.Constraint(expr=block.price <= self.price)
            return sum(float(w) * block.level[i] for i, w in enumerate(self.weights))
        return self.radius * block.price + sum(float(w) * block.level[i] for i, w in enumerate(self.weights))

    def write(self, block: Any, loss: Loss, pieces: int) -> Any:
        value = self._levels(block)
        shapes = shapes_of_terms(block, loss, self.samples.shape[1], self.support.vector)
        block.sums = sums = any(isinstance(piece, SumOfMaxima) for piece in loss(block.parent_block(), self.example()))
        still = self.price is None and isinstance(self.radius, float) and self.radius == 0
        block.way = "samples" if still else self._way(shapes, sums)
        if sums and block.way in ("everywhere", "whole space", "transport"):
            loss, pieces = self._multiplied(block, loss)
            block.sums = False
        if block.way == "samples":
            # Nothing is moved.
            self._write_samples(block, loss, pieces)
        elif block.way == "ends":
            self._write_ends(block, loss, pieces)
        elif block.way == "entries":
            assert shapes is not None
            self._write_entries(block, loss, shapes)
        elif block.way == "whole space":
            self._write_whole_space(block, loss, pieces)
        elif block.way == "transport":
            self._write_transport(block, loss, pieces)
        else:
            region = Region(self.support, "xi")
            rule = self._rule(loss)
            block.rows = region.constraint(block, range(len(self.samples)), range(pieces), rule=rule)
        return value

    def _write_samples(self, block: Any, loss: Loss, pieces: int) -> None:
        """A level for each sample, above all pieces there."""

        def rule(b: Any, sample: int, piece: int) -> Any:
            pieces_there = found(b.parent_block(), sample, partial(self._vector, self.samples[sample]))
            return b.level[sample] >= at_a_point(b, pieces_there[piece])

        with PiecesAtPoints(loss) as found:
            block.rows = pyo.Constraint(range(len(self.samples)), range(pieces), rule=rule)

    def write_event(self, block: Any, event: Any) -> Any:
        value = self._levels(block)
        block.way = "event"
        block.rest = pyo.Constraint(range(len(self.samples)), rule=lambda b, i: b.level[i] >= 0)
        region = event_region(event, self.support)
        if region is not None:
            rule = self._rule(lambda m, xi: [1.0])
            block.event = region.constraint(block, range(len(self.samples)), range(1), rule=rule)
        return value

    def _rule(self, loss: Loss) -> Callable[..., Any]:
        def rule(b: Any, sample: int, piece: int, xi: Any) -> Any:
            worst = loss(b.parent_block(), xi)[piece]
            return b.level[sample] + self._distance(xi, self.samples[sample]) * b.price >= worst

        return rule

    def _distance(self, xi: Any, sample: FloatArray) -> Any:
        gaps = [entry - float(at) for entry, at in zip(self.support.entries(xi), sample, strict=True)]
        if len(gaps) == 1:
            return abs(gaps[0])
        if self.norm == 2:
            return pyo.sqrt(sum(gap**2 for gap in gaps))
        if self.norm == 1:
            return sum(abs(gap) for gap in gaps)
        largest = abs(gaps[0])
        for gap in gaps[1:]:
            largest = pyo.Expr_if(IF=largest >= abs(gap), THEN=largest, ELSE=abs(gap))
        return largest

    # -- losses affine in the random vector -----------------------------------------------------------

    def _way(self, shapes: list[list[TermShape]] | None, sums: bool) -> str:
        """Which finite or exact form fits the support and the loss; "everywhere" if none does."""
        if shapes is None:
            return "everywhere"
        bounds = [(None, None) if is_uncertainty_set(each) else each.bounds() for each in self.support.sets]
        sets = any(is_uncertainty_set(each) for each in self.support.sets)
        if any(is_uncertainty_set(each) and not body_of(each, "support").convex for each in self.support.sets):
            return "everywhere"
        if len(bounds) == 1 and not sets:
            return "ends"
        if sums and not sets and self.norm == 1 and separable(shapes):
            return "entries"
        if not sets and all(low is None and high is None for low, high in bounds):
            return "whole space"
        return "transport"

    def _write_ends(self, block: Any, loss: Loss, pieces: int) -> None:
        """An interval: probability stays, or moves to an end; to an end that is infinite only at a limited slope."""
        low, high = self.support.sets[0].bounds()
        ends = [float(end) for end in (low, high) if end is not None]
        block.places = {
            (i, place): point
            for i, (at,) in enumerate(self.samples.tolist())
            for place, point in enumerate([at, *ends])
        }

        def rows(b: Any, sample: int, piece: int, place: int) -> Any:
            point = b.places[sample, place]
            distance = abs(point - float(self.samples[sample, 0]))
            pieces_there = found(b.parent_block(), point, lambda: Vector([point]) if self.support.vector else point)
            return b.level[sample] + distance * b.price >= at_a_point(b, pieces_there[piece])

        def slope(b: Any, piece: int, side: int) -> Any:
            one, zero = (Vector([at]) if self.support.vector else at for at in (float(side), 0.0))
            parent = b.parent_block()
            return at_a_point(b, difference(loss(parent, one)[piece], loss(parent, zero)[piece])) <= b.price

        with PiecesAtPoints(loss) as found:
            block.rows = pyo.Constraint(range(len(self.samples)), range(pieces), range(1 + len(ends)), rule=rows)
        sides = [side for side, end in ((-1, low), (1, high)) if end is None]
        if sides:
            block.slope = pyo.Constraint(range(pieces), sides, rule=slope)

    def _multiplied(self, block: Any, loss: Loss) -> tuple[Loss, int]:
        """A loss with its sums of maxima multiplied out, and its number of pieces."""

        def pieces(m: Any, xi: Any) -> list[Any]:
            return multiplied(loss(m, xi), "Wasserstein")

        return pieces, len(pieces(block.parent_block(), self.example()))

    def _write_entries(self, block: Any, loss: Loss, shapes: list[list[TermShape]]) -> None:
        """Sums of maxima of single entries, moved in the norm 1 within a box: each entry is moved for itself.

        A convex function of one entry less the price of moving it is largest where the entry is, or at an end.
        """
        ends = list(zip(*(each.tolist() for each in self.support.ends()), strict=True))
        block.part = pyo.VarList()
        block.moved, block.rows = pyo.ConstraintList(), pyo.ConstraintList()
        block.slope = pyo.ConstraintList()
        block.atoms_at, block.ways_out = [], []
        parent = block.parent_block()

        def at(vector: FloatArray, piece: int, terms: list[int]) -> list[Any]:
            """Some terms of a piece at a vector."""
            whole = loss(parent, self._vector(vector))[piece]
            own = whole.terms if isinstance(whole, SumOfMaxima) else ((whole,),)
            return [list(own[k]) for k in terms]

        for piece, terms in enumerate(shapes):
            still = [k for k, term in enumerate(terms) if len(term.entries) != 1]
            for number, sample in enumerate(self.samples):
                total = _at_least(block, at(sample, piece, still))
                for entry, (low, high) in enumerate(ends):
                    alone = [k for k, term in enumerate(terms) if term.entries == {entry}]
                    shared = [k for k in still if entry in terms[k].entries]
                    if not alone and not shared:
                        continue
                    part = block.part.add()
                    total = total + part
                    for place in dict.fromkeys(
                        [float(sample[entry]), *(end for end in (low, high) if np.isfinite(end))]
                    ):
                        vector = sample.copy()
                        vector[entry] = place
                        value = _at_least(block, at(vector, piece, alone))
                        value = value + sum(
                            new[0] - old[0]
                            for new, old in zip(at(vector, piece, shared), at(sample, piece, shared), strict=True)
                        )
                        row = block.moved.add(part + abs(place - float(sample[entry])) * block.price >= value)
                        block.atoms_at.append((number, piece, entry, place, row))
                row = block.rows.add(block.level[number] >= total)
                block.atoms_at.append((number, piece, None, None, row))
            for entry, (low, high) in enumerate(ends):
                touched = [k for k, term in enumerate(terms) if entry in term.entries]
                for side in (side for side, end in ((-1.0, low), (1.0, high)) if touched and not np.isfinite(end)):
                    zero, one = np.zeros((2, len(ends)))
                    one[entry] = side
                    steep = [
                        [new - old for new, old in zip(far, here, strict=True)]
                        for far, here in zip(at(one, piece, touched), at(zero, piece, touched), strict=True)
                    ]
                    row = block.slope.add(_at_least(block, steep) <= block.price)
                    block.ways_out.append((entry, side, row))

    def _write_whole_space(self, block: Any, loss: Loss, pieces: int) -> None:
        """Rows at the samples, and a gradient that is at most the price along every vector of length 1."""
        dimension = self.samples.shape[1]
        zero = Vector([0.0] * dimension)

        def slope(b: Any, piece: int, direction: Any) -> Any:
            parent = b.parent_block()
            return loss(parent, Vector(direction))[piece] - loss(parent, zero)[piece] <= b.price

        self._write_samples(block, loss, pieces)
        block.slope = SemiInfiniteConstraint(range(pieces), unit_ball(self.norm, dimension), rule=slope)

    def _write_transport(self, block: Any, loss: Loss, pieces: int) -> None:
        """Any other convex support: rows affine in the vector and in a bound on how far each sample is moved."""
        known: dict[tuple[int, ...], list[Any]] = {}

        sets = TransportSets(self.samples, self.support, self.norm)

        def rows(b: Any, sample: int, piece: int, both: Any) -> Any:
            # All samples have the same pieces of the same vector.
            key = tuple(map(id, both))
            if key not in known:
                known.clear()
                known[key] = [both, loss(b.parent_block(), Vector(both[:-1]))]
            return b.level[sample] + both[-1] * b.price >= known[key][1][piece]

        block.rows = SemiInfiniteConstraint(range(len(self.samples)), range(pieces), sets, rule=rows)

    # -- the worst distribution ----------------------------------------------------------------------------

    def atoms(self, result: Result, block: Any) -> pd.DataFrame:
        names = ["xi"] if not self.support.vector else [f"xi[{k}]" for k in range(self.samples.shape[1])]
        if block.way == "event":
            return self._event_atoms(result, block, names)
        if block.way == "everywhere":
            return price_atoms(result, block, ["sample", "piece"])
        if block.way == "transport":
            return self._transport_atoms(result, block, names)
        if block.way == "entries":
            return self._atoms_by_entry(result, block, names)
        rows = []
        for index, row in block.rows.items():
            sample, piece = index[:2]
            at = [block.places[sample, index[2]]] if block.way == "ends" else self.samples[sample].tolist()
            rows.append([*at, sample, piece, abs(result.dual(row))])
        frame = pd.DataFrame(rows, columns=[*names, "sample", "piece", "probability"])
        frame = frame.astype({"sample": int, "piece": int})
        return frame if block.component("slope") is None else self._shifted(result, block, frame, names)

    def _shifted(self, result: Result, block: Any, frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
        """Atoms moved along the gradient of their piece, as far as the dual of its slope says.

        A piece without probability is approached only, by ever less of it ever farther out; what is moved so, and what
        the slopes of sums of maxima move, is kept as ``attrs["escaping"]``.
        """
        frame[names] = frame[names].astype(float)
        escaping = np.zeros(len(names))
        pieces = sorted(set(frame["piece"]))
        for piece in pieces:
            if block.way == "ends":
                sides = [side for each, side in block.slope if each == piece]
                way = np.array([sum(side * abs(result.dual(block.slope[piece, side])) for side in sides)])
            else:
                price = result.prices[block.slope[piece]]
                way = np.abs(price.masses) @ price.points if len(price.points) else np.zeros(len(names))
            mine = frame["piece"] == piece
            mass = float(frame.loc[mine, "probability"].sum())
            if mass > 0 and not block.sums:
                frame.loc[mine, names] += way / mass
            else:
                escaping += way
        frame.attrs["escaping"] = escaping
        return frame

    def _atoms_by_entry(self, result: Result, block: Any, names: list[str]) -> pd.DataFrame:
        """Atoms of entries that are moved for themselves, put together so that each entry has its own probabilities.

        Many distributions do; here the largest part of what is left of each entry goes together, again and again. What
        is moved without end is kept as ``attrs["escaping"]``.
        """
        rows: list[list[Any]] = []
        parts: dict[tuple[int, int], dict[int, list[list[float]]]] = {}
        masses: dict[tuple[int, int], float] = {}
        for sample, piece, entry, place, row in block.atoms_at:
            mass = abs(result.dual(row))
            if entry is None:
                masses[sample, piece] = mass
            elif mass > 0:
                parts.setdefault((sample, piece), {}).setdefault(entry, []).append([place, mass])
        for (sample, piece), mass in masses.items():
            entries = parts.get((sample, piece), {})
            left = mass
            while left > _NO_PART * max(mass, _NO_PART):
                point, share = self.samples[sample].copy(), left
                chosen = {entry: max(each, key=lambda pair: pair[1]) for entry, each in entries.items()}
                share = min([left, *(pair[1] for pair in chosen.values() if pair[1] > 0)])
                for entry, pair in chosen.items():
                    point[entry] = pair[0]
                    pair[1] = max(0.0, pair[1] - share)
                rows.append([*point.tolist(), sample, piece, share])
                left -= share
        frame = pd.DataFrame(rows, columns=[*names, "sample", "piece", "probability"])
        frame = frame.astype({"sample": int, "piece": int})
        frame.attrs["escaping"] = escaping = np.zeros(len(names))
        for entry, side, row in block.ways_out:
            escaping[entry] += side * abs(result.dual(row))
        return frame

    def _transport_atoms(self, result: Result, block: Any, names: list[str]) -> pd.DataFrame:
        frames = []
        for (sample, piece), family in block.rows.items():
            price = result.prices[family]
            frame = pd.DataFrame(price.points[:, : len(names)], columns=names)
            frames.append(frame.assign(sample=sample, piece=piece, probability=np.abs(price.masses)))
        return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)

    def _event_atoms(self, result: Result, block: Any, names: list[str]) -> pd.DataFrame:
        """What was moved into the event, and what is left of each sample where it was."""
        rows = [
            [*point, sample, 1, abs(result.dual(block.rest[sample]))]
            for sample, point in enumerate(self.samples.tolist())
        ]
        rest = pd.DataFrame(rows, columns=[*names, "sample", "piece", "probability"])
        if block.component("event") is None:
            return rest
        moved = price_atoms(result, block, ["sample", "piece"])
        return pd.concat([frame for frame in (moved, rest) if len(frame)], ignore_index=True)


class BySample(Wasserstein):
    """A Wasserstein ball for a loss that knows the sample and how far its probability was moved."""

    @property
    def example_scenario(self) -> tuple[Any, ...]:
        return (0,)

    def __init__(self, ball: Wasserstein) -> None:
        self.__dict__.update(ball.__dict__)
        self.__dict__["moved"] = ball.moved

    def example(self) -> Any:
        return Vector([*self.samples[0].tolist(), 0.0])

    def write(self, block: Any, loss: Loss, pieces: int) -> Any:
        value = self._levels(block)
        still = self.price is None and isinstance(self.radius, float) and self.radius == 0
        block.way, block.sums = "samples" if still else "transport", False
        if any(isinstance(piece, SumOfMaxima) for piece in loss(block.parent_block(), self.example(), 0)):
            raise OptionError(
                "Wasserstein: a loss that knows the sample cannot be a SumOfMaxima; write the largest of all its sums "
                "as a list of pieces."
            )

        def here(b: Any, sample: int, piece: int) -> Any:
            place = Vector([*self.samples[sample].tolist(), 0.0])
            return b.level[sample] >= loss(b.parent_block(), place, sample)[piece]

        def anywhere(b: Any, sample: int, piece: int, both: Any) -> Any:
            worst = loss(b.parent_block(), Vector(both), sample)[piece]
            return b.level[sample] + both[-1] * b.price >= worst

        samples = range(len(self.samples))
        if still:
            block.rows = pyo.Constraint(samples, range(pieces), rule=here)
        else:
            block.rows = SemiInfiniteConstraint(samples, range(pieces), self.moved, rule=anywhere)
        return value


def _at_least(block: Any, terms: list[list[Any]]) -> Any:
    """The sum of the largest of some terms, at one vector."""
    return at_a_point(block, SumOfMaxima(*terms)) if terms else 0


def unit_ball(norm: Any, dimension: int) -> Any:
    """Vectors of length at most 1, as an uncertainty set."""
    ones = [1.0] * dimension
    if norm == 2:
        return AxisAlignedEllipsoidalSet([0.0] * dimension, ones)
    if norm == 1:
        return CardinalitySet([0.0] * dimension, ones, 1.0, ones)
    return BoxSet([(-1.0, 1.0)] * dimension)


class TransportSets(SetOfEachFamily):
    """For each sample the vectors of a support with at least their distance from it."""

    def __init__(self, samples: FloatArray, support: Support, norm: Any, ended: bool = False) -> None:
        self._samples, self._norm, self._ended = samples, norm, ended
        self._given = support.sets[0] if len(support.sets) == 1 and is_uncertainty_set(support.sets[0]) else None
        ends: list[tuple[float, float]] = []
        parts: list[Body | None] = []
        for each in support.sets:
            if is_uncertainty_set(each):
                body = body_of(each, "support")
                parts.append(body)
                ends += list(zip(body.lower.tolist(), body.upper.tolist(), strict=True))
            else:
                low, high = (end if end is not None else sign * np.inf
                             for end, sign in zip(each.bounds(), (-1, 1), strict=True))  # fmt: skip
                parts.append(None)
                ends.append((low, high))
        self._lower, self._upper = np.array(ends, dtype=float).T
        self._support = self._joined(parts)
        self._bodies: dict[int, TransportBody] = {}

    def _joined(self, parts: list[Body | None]) -> Body | None:
        """The support as one convex set; None where it is a box, bounded or not."""
        if all(part is None for part in parts):
            return None
        boxes, start = [], 0
        for part in parts:
            size = 1 if part is None else part.dimension
            at = slice(start, start + size)
            boxes.append(part or BoxBody(self._lower[at], self._upper[at]))
            start += size
        return boxes[0] if len(boxes) == 1 else ProductBody(tuple(boxes))

    @property
    def type(self) -> str:
        """How PyROS calls it."""
        return "transport"

    @property
    def dim(self) -> int:
        """Entries of a vector, and one for the distance."""
        return self._samples.shape[1] + 1

    @property
    def parameter_bounds(self) -> list[tuple[float, float]]:
        """Bounds that hold for every sample."""
        bodies = [self.body_for(number) for number in range(len(self._samples))]
        lower, upper = np.min([each.lower for each in bodies], axis=0), np.max([each.upper for each in bodies], axis=0)
        return list(zip(lower.tolist(), upper.tolist(), strict=True))

    def holds_vectors_of(self, other: Any) -> bool:
        """Whether its vectors, but for the distance, are those of another set: of the support."""
        return self._given is not None and same_set(self._given, other)

    def body_for(self, index: Any) -> Body:
        """The set of a sample, the first entry of a family's index; of any where only the kind of set matters."""
        number = 0 if index is None else next(iter(index), None) if isinstance(index, tuple) else index
        if number.__class__ is not int or not 0 <= number < len(self._samples):
            raise OptionError(
                f"Wasserstein: rows and rules over .moved have the sample as their first index, 0 to "
                f"{len(self._samples) - 1} (got {number!r})."
            )
        if number not in self._bodies:
            sample = self._samples[number]
            self._bodies[number] = TransportBody(
                sample, self._lower, self._upper, self._norm, self._support, self._ended
            )
        return self._bodies[number]
