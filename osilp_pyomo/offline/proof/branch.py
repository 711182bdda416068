"""Branch and bound over the index: prove that a function is nowhere above a tolerance, or find where it is.

All boxes of one size are looked at together. Where the function is found above the tolerance, its maximum is looked for
instead, to the same accuracy. A box is done with where an upper bound of the function on it is at most the tolerance;
where the function rises towards a neighbour, to whom it is left; where the row's condition fails all over it. What
remains is cut in two: along the axis that matters most, or, where a condition of the row both holds and fails in the
box, into a copy that looks at the one side and a copy that looks at the other. On such a side the condition's own
functions s are at most zero, so that ``h - mu s`` is a bound of h for every mu >= 0; mu is chosen so that its slope
vanishes, and so is the slope with which a kink is opened.

(Branch and bound with interval bounds is Moore's and Skelboe's; the multipliers are those of Lagrange's bound. Nothing
here is relaxed or sampled: a box is dropped only by a bound that holds on all of it.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from osilp_pyomo._arrays import BoolArray, FloatArray, IntArray
from osilp_pyomo.index.enclosures.enclosure import FAILS, HOLDS, OPEN, Condition, Enclosure, Key, Opening
from osilp_pyomo.offline.proof.bounds import mean_value_bound, second_order_bound
from osilp_pyomo.offline.proof.enclosed_row import EnclosedRow, Expansion, expansion_of
from osilp_pyomo.offline.proof.lipschitz import LipschitzRow
from osilp_pyomo.offline.roundings import points_beside

# Boxes along each axis to begin with, by dimension.
_FIRST = {1: 32, 2: 8, 3: 4}
_FIRST_OTHER = 2
# Boxes to begin with at most, where they are cut at knots and switch points.
_CUTS = 4096
# A side that is longer than this stands for one without an end.
_FAR = 1e8
# Sweeps over the slopes of kinks and the multipliers of conditions.
_SWEEPS = 12
# Kinks that are opened with a slope of their own.
_TILTED = 6
# Conditions undecided in a box that are taken at once; with more of them the box is cut first.
_TAKEN_AT_ONCE = 2
# A box is so small, relative to the domain, that its conditions are taken however many there are.
_SMALL = 1e-3
# Places of a violation that are told.
_TOLD = 64


@dataclass(frozen=True)
class Budget:
    """How long a proof may take: boxes times columns at most, and until when by the clock."""

    work: float = np.inf
    until: float = np.inf

    def spent(self, work: float) -> bool:
        """Whether there is nothing left."""
        return work >= self.work or time.monotonic() >= self.until


@dataclass
class Outcome:
    """How a proof ended.

    ``largest`` is above every value of the function, ``relative`` the same by its size; ``boxes`` were looked at;
    ``violated`` (k, d) are points above the tolerance, the highest first; ``open_low`` and ``open_high`` (d, n) are
    boxes that were not decided; ``unbounded`` says that in one of them, between neighbouring numbers, nothing bounds
    the function; ``rounded`` that at some number the rounding of its terms hides whether it is above the tolerance.
    """

    largest: float = -np.inf
    relative: float = -np.inf
    boxes: int = 0
    work: float = 0.0
    violated: FloatArray | None = None
    open_low: FloatArray | None = None
    open_high: FloatArray | None = None
    unbounded: bool = False
    rounded: bool = False
    #: Along an index of one dimension the ends of all boxes.
    ends: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def proved(self) -> bool:
        """Whether every box was decided."""
        return self.violated is None and self.open_low is None


@dataclass
class _Boxes:
    """Boxes with the side of each condition that they look at, and a bound of the function there, if any is known."""

    low: FloatArray
    high: FloatArray
    taken: IntArray
    bound: FloatArray

    @property
    def count(self) -> int:
        return self.low.shape[1]

    def pick(self, kept: BoolArray | IntArray | slice) -> _Boxes:
        return _Boxes(self.low[:, kept], self.high[:, kept], self.taken[:, kept], self.bound[kept])

    @staticmethod
    def join(parts: Sequence[_Boxes]) -> _Boxes:
        rows = max(len(part.taken) for part in parts)
        taken = [np.pad(part.taken, ((0, rows - len(part.taken)), (0, 0))) for part in parts]
        return _Boxes(
            np.concatenate([part.low for part in parts], axis=1),
            np.concatenate([part.high for part in parts], axis=1),
            np.concatenate(taken, axis=1),
            np.concatenate([part.bound for part in parts]),
        )


@dataclass
class _Look:
    """What one look at boxes left of them: those open, and what matters for cutting them."""

    boxes: _Boxes
    matter: FloatArray
    undecided: BoolArray = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))


def first_boxes(low: FloatArray, high: FloatArray, cuts: Sequence[FloatArray]) -> _Boxes:
    """Boxes that cover the domain, cut at places where the function may change."""
    dimension = len(low)
    count = _FIRST.get(dimension, _FIRST_OTHER)
    edges = []
    for axis in range(dimension):
        places = cuts[axis][(cuts[axis] > low[axis]) & (cuts[axis] < high[axis])]
        most = max(8, int(_CUTS ** (1 / dimension)) - count)
        if len(places) > most:
            places = places[np.unique(np.linspace(0, len(places) - 1, most).astype(int))]
        even = np.linspace(low[axis], high[axis], count + 1)
        if high[axis] - low[axis] > _FAR:
            even = _powers(low[axis], high[axis])
        edges.append(np.unique(np.concatenate([[low[axis], high[axis]], even, places])))
    boxes_low = np.array(np.meshgrid(*(edge[:-1] for edge in edges), indexing="ij")).reshape(dimension, -1)
    boxes_high = np.array(np.meshgrid(*(edge[1:] for edge in edges), indexing="ij")).reshape(dimension, -1)
    count = boxes_low.shape[1]
    return _Boxes(boxes_low, boxes_high, np.zeros((0, count), dtype=np.int8), np.full(count, np.inf))


def _powers(low: float, high: float) -> FloatArray:
    """Edges along a side that is very long: powers of two from its near end, or from zero, on."""
    origin = float(np.clip(0.0, low, high))
    steps = 2.0 ** np.concatenate([np.arange(-4, 16), np.arange(16, 1000, 8)]) * max(1.0, abs(origin))
    edges = np.concatenate([origin - steps, [origin], origin + steps])
    return edges[(edges > low) & (edges < high)]


class BranchAndBound:
    """A proof for one function over one domain.

    ``tolerance`` and ``enough`` are what the function may be above zero, relative to ``size``: what is aimed at, and
    what counts too after a tenth of the budget. ``values`` are those of the function at points, minus infinity outside
    of its domain. Where nothing tells over boxes which of them belong to the domain, it is proved over all of them, by
    its values ``everywhere``: a box is left to a neighbour that may lie outside.
    """

    def __init__(
        self,
        row: EnclosedRow | LipschitzRow,
        low: FloatArray,
        high: FloatArray,
        size: float,
        tolerance: float,
        enough: float,
        values: Callable[[FloatArray], FloatArray],
        budget: Budget,
        cuts: Sequence[FloatArray] = (),
        everywhere: Callable[[FloatArray], FloatArray] | None = None,
    ) -> None:
        self.row = row
        self.low, self.high = low, high
        self.size, self.tolerance, self.enough = size, tolerance, enough
        self.values = values
        self.everywhere = everywhere or values
        self.budget = budget
        self.cuts = cuts or [np.empty(0)] * len(low)
        self.width = (high - low)[:, None]
        # Far out, where a row grows with its index, it is measured by its own size there.
        self.far = bool(np.any(self.width > _FAR))
        self.outcome = Outcome()
        self.best = -np.inf
        self.found: list[tuple[FloatArray, FloatArray]] = []
        self.poles: list[_Boxes] = []

    def _allowed(self, scale: FloatArray) -> FloatArray:
        """What a bound may be for a box to be done with: the tolerance, or what the function is known to reach."""
        return np.maximum(self.tolerance * scale, self.best + self.enough * self.size / 10)

    def run(self) -> Outcome:
        """Look at boxes until none is open, a violation is found, or the budget is spent."""
        outcome, row = self.outcome, self.row
        boxes = first_boxes(self.low, self.high, self.cuts)
        while boxes.count:
            if len(self.low) == 1:
                outcome.ends = np.unique(np.concatenate([outcome.ends, boxes.low[0], boxes.high[0]]))
            looks = []
            for start in range(0, boxes.count, row.block):
                part = boxes.pick(slice(start, start + row.block))
                if self.budget.spent(outcome.work):
                    # What was not looked at keeps the bound of the larger box that it is a part of.
                    looks.append(_Look(part, part.high - part.low))
                    continue
                outcome.boxes += part.count
                outcome.work += row.work(part.count)
                look = self._look(part)
                if look.boxes.count:
                    looks.append(look)
            if not looks:
                break
            if outcome.work > self.budget.work / 10:
                self.tolerance = self.enough
            self._note_violated(looks)
            if self.budget.spent(outcome.work):
                self._stop(looks)
                break
            boxes = self._cut(looks)
        if self.poles:
            outcome.unbounded = True
            self._stop([_Look(part, part.low) for part in self.poles])
        if self.found:
            points, values = (np.concatenate(parts) for parts in zip(*self.found, strict=True))
            outcome.violated = points[np.argsort(-values, kind="stable")][:_TOLD]
        return outcome

    def _stop(self, looks: Sequence[_Look]) -> None:
        boxes = _Boxes.join([look.boxes for look in looks])
        self._note(boxes.bound, self._scale(boxes))
        order = np.argsort(-boxes.bound, kind="stable")
        self.outcome.open_low, self.outcome.open_high = boxes.low[:, order], boxes.high[:, order]

    # -- one look ----------------------------------------------------------------------------------

    def _look(self, boxes: _Boxes) -> _Look:
        row, opening = self.row, self.row.opening(2, taken=boxes.taken)
        found = row.enclose(boxes.low, boxes.high, opening)
        restricted = Opening(len(self.low))
        inside = row.inside(boxes.low, boxes.high, restricted)
        bound, scale = np.fmin(found.value[1], boxes.bound), self._scale(boxes)
        live = ~(bound <= self._allowed(scale))
        self._note(bound[~live], scale[~live])
        certain = np.ones(boxes.count, dtype=bool)
        if inside is not None:
            live &= ~np.broadcast_to(inside.fails, (1, boxes.count))[0]
            certain &= np.broadcast_to(inside.holds, (1, boxes.count))[0]
        live &= ~self._impossible(boxes, opening.conditions)
        certain &= ~boxes.taken.any(axis=0)
        if certain.any():
            live &= ~self._left_to_neighbours(boxes, found, certain & live)
        kept = np.flatnonzero(live)
        if not len(kept):
            return _Look(boxes.pick(kept), boxes.low[:, kept])
        bound = self._refined(boxes, found, (opening, restricted), inside, bound, kept, scale)
        open_now = ~(bound <= self._allowed(scale[kept]))
        self._note(bound[~open_now], scale[kept][~open_now])
        kept, bound = kept[open_now], bound[open_now]
        picked = boxes.pick(kept)
        picked.bound = bound
        steep = np.abs(found.slopes[:, :, kept]).max(axis=0)
        undecided = np.zeros((1 + max(opening.conditions, default=-1), len(kept)), dtype=bool)
        for number, each in opening.conditions.items():
            undecided[number] = np.broadcast_to(~(each.holds | each.fails), (1, boxes.count))[0][kept]
        wide = picked.high - picked.low
        return _Look(
            picked,
            np.where(np.isfinite(steep), steep, np.nan) * wide,
            undecided,
        )

    def _note(self, bounds: FloatArray, scale: FloatArray) -> None:
        """Boxes that are done with, by their bound."""
        if len(bounds):
            for name, largest in (("largest", float(bounds.max())), ("relative", float((bounds / scale).max()))):
                known = getattr(self.outcome, name)
                setattr(self.outcome, name, max(known, np.inf if np.isnan(largest) else largest))

    def _scale(self, boxes: _Boxes) -> FloatArray:
        """What the function is measured by in each box."""
        if not self.far:
            return np.full(boxes.count, self.size)
        return np.maximum(self.size, 1e-3 * self.row.smallest_terms(boxes.low, boxes.high))

    def _impossible(self, boxes: _Boxes, conditions: Mapping[int, Condition]) -> BoolArray:
        """Boxes on a side of a condition that none of their points is on."""
        result = np.zeros(boxes.count, dtype=bool)
        for side, condition in self._taken(boxes, conditions):
            result |= (side == HOLDS) & np.broadcast_to(condition.fails, (1, boxes.count))[0]
            result |= (side == FAILS) & np.broadcast_to(condition.holds, (1, boxes.count))[0]
        return result

    @staticmethod
    def _taken(boxes: _Boxes, conditions: Mapping[int, Condition]) -> Iterator[tuple[IntArray, Condition]]:
        """The sides that boxes look at of each condition."""
        return ((boxes.taken[number], each) for number, each in conditions.items() if number < len(boxes.taken))

    def _left_to_neighbours(self, boxes: _Boxes, found: Expansion, asked: BoolArray) -> BoolArray:
        """Boxes on which the function rises towards a neighbour; at the domain's edge they shrink to that face."""
        left = np.zeros(boxes.count, dtype=bool)
        for axis in range(len(self.low)):
            thick = asked & (boxes.low[axis] < boxes.high[axis])
            up, down = thick & (found.slopes[0, axis] > 0), thick & (found.slopes[1, axis] < 0)
            left |= (up & (boxes.high[axis] < self.high[axis])) | (down & (boxes.low[axis] > self.low[axis]))
            up &= ~left & np.isfinite(self.high[axis])
            down &= ~left & np.isfinite(self.low[axis])
            boxes.low[axis] = np.where(up, boxes.high[axis], boxes.low[axis])
            boxes.high[axis] = np.where(down, boxes.low[axis], boxes.high[axis])
        return left

    def _refined(
        self,
        boxes: _Boxes,
        found: Expansion,
        openings: tuple[Opening, Opening],
        inside: Condition | None,
        bound: FloatArray,
        kept: IntArray,
        scale: FloatArray,
    ) -> FloatArray:
        """Bounds of first and second order on the boxes that are kept; openings are the row's and its condition's."""
        row, (opening, restricted) = self.row, openings
        if opening.smooth and len(kept) < boxes.count:
            # Nothing was chosen that would have to be chosen again.
            boxes, found, bound, scale = boxes.pick(kept), found.take(kept), bound[kept], scale[kept]
            restricted = Opening(len(self.low))
            inside = row.inside(boxes.low, boxes.high, restricted)
            opening = row.opening(2, taken=boxes.taken)
            kept = np.arange(len(kept))
        centre = _middle(boxes.low, boxes.high)
        at = row.opening(1, taken=boxes.taken, replay=None if opening.smooth else opening)
        thin = row.enclose(centre, centre, at)
        down, up = boxes.low - centre, boxes.high - centre
        with np.errstate(all="ignore"):
            bound = np.fmin(bound, mean_value_bound(thin.value[1], found.slopes, down, up))
            plain = second_order_bound(thin.base[1], thin.base_slopes, found.bends, down, up) + found.rest[1]
        bound = np.fmin(bound, plain)
        rest = kept[~(bound[kept] <= self._allowed(scale[kept]))]
        if len(rest):
            thin_inside = None
            if inside is not None:
                thin_inside = row.inside(centre, centre, Opening(len(self.low), 1, replay=restricted))
            functions = self._functions(boxes, opening, at, inside, thin_inside)
            kinks = [key for key, straddles in opening.straddled.items() if straddles]
            if functions or kinks:
                chosen = self._chosen(boxes.pick(rest), centre[:, rest], [each.pick(rest) for each in functions], kinks)
                bound[rest] = np.fmin(bound[rest], chosen)
        return bound[kept]

    # -- kinks and conditions ----------------------------------------------------------------------

    def _functions(
        self, boxes: _Boxes, opening: Opening, at: Opening, inside: Condition | None, thin_inside: Condition | None
    ) -> list[_Restriction]:
        """Functions that are at most zero on the part of each box that is looked at."""
        result = []
        pairs = zip(self._taken(boxes, opening.conditions), self._taken(boxes, at.conditions), strict=True)
        for (side, over), (_, thin) in pairs:
            result += _restrictions(over.when, thin.when, side == HOLDS, len(self.low))
            result += _restrictions(over.unless, thin.unless, side == FAILS, len(self.low))
        if inside is not None and thin_inside is not None and inside.when:
            certain = np.broadcast_to(inside.holds, (1, boxes.count))[0]
            result += _restrictions(inside.when, thin_inside.when, ~certain, len(self.low))
        return [each for each in result if each.active.any()]

    def _chosen(
        self, boxes: _Boxes, centre: FloatArray, functions: Sequence[_Restriction], kinks: Sequence[Key]
    ) -> FloatArray:
        """Second-order bound with the slopes of kinks and the multipliers of conditions that flatten it."""
        row = self.row
        kinks = kinks[:_TILTED]
        count = boxes.count
        self.outcome.work += row.work(count, 3 + 2 * len(kinks))

        def base_at(tilts: dict[Key, FloatArray], order: int) -> tuple[Expansion, Expansion]:
            over = row.opening(order, taken=boxes.taken, tilts=tilts)
            found = row.enclose(boxes.low, boxes.high, over)
            return found, row.enclose(centre, centre, row.opening(1, taken=boxes.taken, replay=over))

        even = {key: np.full(count, 0.5) for key in kinks}
        _, thin = base_at(even, 1)
        weight = (boxes.high - boxes.low) / 2
        # An infinite slope chooses nothing; what is chosen decides how good a bound is, not whether it is one.
        slope = _mean_slope(thin)
        moves = []
        for key in kinks:
            _, moved = base_at({**even, key: np.ones(count)}, 1)
            moves.append((_mean_slope(moved) - slope) * 2)
        shares = [even[key] for key in kinks]
        multipliers = [np.zeros(count) for _ in functions]
        for _ in range(_SWEEPS if len(kinks) + len(functions) > 1 else 1):
            for place, move in enumerate(moves):
                shares[place], slope = _flattened(slope, move, shares[place], 0.0, 1.0, weight)
            for place, each in enumerate(functions):
                reach = np.where(each.active, np.inf, 0.0)
                multipliers[place], slope = _flattened(slope, -each.slope, multipliers[place], 0.0, reach, weight)
        found, thin = base_at(dict(zip(kinks, shares, strict=True)), 2)
        down, up = boxes.low - centre, boxes.high - centre
        centre_value, slopes, bends, rest = thin.base[1], thin.base_slopes, found.bends, found.rest[1]
        with np.errstate(all="ignore"):
            for each, mu in zip(functions, multipliers, strict=True):
                centre_value = centre_value + _times(mu, -each.thin.base[0])
                slopes = np.stack(
                    [slopes[0] - mu * each.thin.base_slopes[1], slopes[1] - mu * each.thin.base_slopes[0]]
                )
                bends = np.stack([bends[0] - mu * each.over.bends[1], bends[1] - mu * each.over.bends[0]])
                rest = rest + _times(mu, -each.over.rest[0])
            margin = 1e-13 * (np.abs(centre_value) + np.abs(rest))
            return second_order_bound(centre_value, slopes, bends, down, up) + rest + margin

    # -- cutting -----------------------------------------------------------------------------------

    def _note_violated(self, looks: Sequence[_Look]) -> None:
        """Where the function is above the tolerance in the middle of an open box; its maximum is then looked for."""
        boxes = _Boxes.join([look.boxes for look in looks])
        points = _middle(boxes.low, boxes.high).T
        self._note_above(points, self.values(points), self._scale(boxes))

    def _note_above(self, points: FloatArray, values: FloatArray, scale: FloatArray) -> None:
        """Points at which the function is above the tolerance."""
        above = np.flatnonzero(values > self.tolerance * scale)
        if len(above):
            above = above[np.argsort(-values[above], kind="stable")][:_TOLD]
            self.found.append((points[above], values[above]))
            self.best = max(self.best, float(values[above[0]]))

    def _cut(self, looks: Sequence[_Look]) -> _Boxes:
        """Each open box in two: by a condition that it is on both sides of, or along an axis."""
        parts = []
        for look in looks:
            boxes, undecided = look.boxes, look.undecided.copy()
            rows = len(undecided)
            taken = np.pad(boxes.taken, ((0, max(0, rows - len(boxes.taken))), (0, 0)))
            if rows:
                undecided &= taken[:rows] == OPEN
                count = undecided.sum(axis=0)
                small = ((boxes.high - boxes.low) / self.width).max(axis=0) < _SMALL
                take = (count > 0) & ((count <= _TAKEN_AT_ONCE) | small)
            else:
                take = np.zeros(boxes.count, dtype=bool)
            whole = _Boxes(boxes.low, boxes.high, taken, boxes.bound)
            if take.any():
                chosen = whole.pick(take)
                number = undecided[:, take].argmax(axis=0)
                for side in (HOLDS, FAILS):
                    copy = _Boxes(chosen.low.copy(), chosen.high.copy(), chosen.taken.copy(), chosen.bound)
                    copy.taken[number, np.arange(copy.count)] = side
                    parts.append(copy)
            if not take.all():
                parts += self._halves(whole.pick(~take), look.matter[:, ~take])
        return _Boxes.join(parts)

    def _halves(self, boxes: _Boxes, matter: FloatArray) -> list[_Boxes]:
        wide = boxes.high - boxes.low
        unit = wide / np.where(np.isfinite(self.width), self.width, 1.0)
        # Where nothing is known of the slopes the longest side is cut; no side is left long for ever.
        known = np.where(
            np.isfinite(matter), matter, np.nanmax(np.where(np.isfinite(matter), matter, 0.0), initial=0.0)
        )
        score = known + 1e-3 * known.max(axis=0) * unit / np.maximum(unit.max(axis=0), 1e-300)
        score = np.where(known.max(axis=0) > 0, score, unit)
        axis = np.where(wide > 0, score, -1.0).argmax(axis=0)
        each = np.arange(boxes.count)
        low, high = boxes.low[axis, each], boxes.high[axis, each]
        middle = _middle(low, high)
        if self.far:
            with np.errstate(all="ignore"):
                powers = np.sign(low) * np.sqrt(np.abs(low)) * np.sqrt(np.abs(high))
                ratio = np.maximum(low / high, high / low)
            middle = np.where((np.sign(low) == np.sign(high)) & (ratio > 16), powers, middle)
        # Between two neighbouring numbers there is nothing left to look at but themselves.
        neighbours = (middle <= low) | (middle >= high)
        first = _Boxes(boxes.low.copy(), boxes.high.copy(), boxes.taken, boxes.bound)
        second = _Boxes(boxes.low.copy(), boxes.high.copy(), boxes.taken, boxes.bound)
        first.high[axis, each] = np.where(neighbours, low, middle)
        second.low[axis, each] = np.where(neighbours, high, middle)
        done = wide.max(axis=0) == 0
        if done.any():
            self._note_points(boxes.pick(done))
            first, second = first.pick(~done), second.pick(~done)
        return [first, second]

    def _note_points(self, points: _Boxes) -> None:
        """Boxes that are single points: there the row's own functions say what it is, up to their rounding."""
        values = self.everywhere(points.low.T)
        # Where no bound is known, there may be a pole beside it.
        known = np.isfinite(points.bound) & ~np.isnan(values)
        scale = self._scale(points)
        if known.any():
            self._note_known(points.pick(known), values[known], scale[known])
        self._note_above(points.low.T, self.values(points.low.T), scale)
        self.poles += [points.pick(~known)] if not known.all() else []

    def _note_known(self, points: _Boxes, values: FloatArray, scale: FloatArray) -> None:
        """Points with a bound, which holds on both sides of a condition that rounding decides; with their values."""
        at = points.low.T
        self.outcome.work += self.row.work(points.count)
        bound = np.fmin(points.bound, values + self.row.rounding(at))
        outside = np.flatnonzero(np.isneginf(values))
        if len(outside):
            # What lies outside by the rounding of its condition does so for certain if what is right beside it does.
            bound[outside] = np.where(self._fails_beside(at[outside]), -np.inf, points.bound[outside])
        self._note(bound, scale)
        self.outcome.rounded |= bool(np.any((bound > self.enough * scale) & (values <= self.enough * scale)))

    def _fails_beside(self, points: FloatArray) -> BoolArray:
        """Whether the row's condition fails at points, or right beside them; it does where there is none."""
        result = np.zeros(len(points), dtype=bool)
        for each in (points, *points_beside(points, self.low, self.high)):
            at = np.ascontiguousarray(each.T)
            inside = self.row.inside(at, at, Opening(len(self.low), 0))
            if inside is None:
                return ~result
            result |= np.broadcast_to(inside.fails, (1, len(points)))[0]
        return result


@dataclass(frozen=True, eq=False)
class _Restriction:
    """A function that is at most zero where it is active: over the boxes, at their middles, and its slope there."""

    over: Expansion
    thin: Expansion
    active: BoolArray

    @property
    def slope(self) -> FloatArray:
        return np.nan_to_num(self.thin.base_slopes.mean(axis=0), nan=0.0, posinf=0.0, neginf=0.0)

    def pick(self, kept: IntArray) -> _Restriction:
        return _Restriction(self.over.take(kept), self.thin.take(kept), self.active[kept])


def _restrictions(
    over: Sequence[Enclosure] | None, thin: Sequence[Enclosure] | None, active: BoolArray, dimension: int
) -> list[_Restriction]:
    boxes = len(active)
    if not over or not thin or not active.any():
        return []
    result = []
    for one, other in zip(over, thin, strict=True):
        across = expansion_of(one, dimension, boxes)
        # What is below zero all over a box restricts nothing there.
        result.append(_Restriction(across, expansion_of(other, dimension, boxes), active & ~(across.value[1] <= 0)))
    return result


def _times(mu: FloatArray, value: FloatArray) -> FloatArray:
    """A product that is nothing where the multiplier is, also of what is infinite."""
    return np.where(mu > 0, mu * value, 0.0)


def _mean_slope(found: Expansion) -> FloatArray:
    """The middle of the enclosed slopes; zero where they are not bounded."""
    bounded = np.isfinite(found.base_slopes).all(axis=0)
    return np.where(bounded, found.base_slopes, 0.0).mean(axis=0)


def _flattened(
    slope: FloatArray, move: FloatArray, now: FloatArray, least: float, most: FloatArray | float, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The best factor of one direction, within limits, to make a slope small; and the slope with it."""
    scaled = weight * weight
    size = (scaled * move * move).sum(axis=0)
    with np.errstate(all="ignore"):
        step = -(scaled * slope * move).sum(axis=0) / size
    step = np.where(np.isfinite(step), step, 0.0)
    new = np.clip(now + step, least, most)
    return new, slope + (new - now) * move


def _middle(low: FloatArray, high: FloatArray) -> FloatArray:
    """The middle of boxes."""
    return low + (high - low) / 2
