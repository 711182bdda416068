"""Proofs by family: by which way a family's rows are known to hold, and how surely."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.convex_sets import ScenarioBody
from osilp_pyomo.index.enclosures.enclosure import NoEnclosureError
from osilp_pyomo.lp.finite import violation_scale
from osilp_pyomo.offline.audit import audit_points
from osilp_pyomo.offline.prepare import reach
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.proof.branch import BranchAndBound, Budget, Outcome
from osilp_pyomo.offline.proof.enclosed_row import EnclosedRow
from osilp_pyomo.offline.proof.lipschitz import LipschitzRow, refuse_wrong_constant
from osilp_pyomo.offline.proof.tail import keeps_tail
from osilp_pyomo.offline.roundings import rounding_at
from osilp_pyomo.offline.rows import TracedRows
from osilp_pyomo.offline.search.scan import Search, Violations

# What a proof aims at, and what it may leave, relative to the size of the row at most of its points.
AIM, ENOUGH = 1e-8, 1e-6
# Boxes times columns that a proof may take by itself, and where it is insisted on.
_WORK, _INSISTED = 6.5e6, 1.6e9
# Points at which the size of a row is measured.
_MEASURED = 257
# Cuts of another proof are taken where they need no more than this part of the work, and kept as long as no more than
# so many times their boxes were needed.
_CUT, _FITS = 20, 2
# Why a proof stayed open.
TOO_FEW, POLE = "the boxes that a proof may take were not enough", "nothing bounds its values, as at a pole"
TOO_FAR = "its numbers overflow far out on its index, which has no end, so that nothing is known there"
BEYOND = "it holds up to {:.0e} on its index, which has no end, and beyond nothing is proved"
ROUNDED = (
    "rounding hides up to {:.2g} of its size, of its terms or of where its conditions switch; write it without large "
    "numbers that cancel"
)
# How families are proved that a search separates for certain; over a product of sets several of these together.
_EXACT = {
    "closed form": "closed form",
    "linear program": "closed form",
    "convex program": "closed form",
    "enumeration": "closed form",
    "sweep": "sweep",
}


@dataclass(frozen=True, eq=False)
class FamilyProof:
    """What is proved of a family.

    ``how`` is "closed form", "cone", "concave", "sweep", "enclosure", "search" or "grid". ``largest`` is what no point
    of the index exceeds the row by (nan where nothing is proved), ``relative`` the same by the size of the row.
    ``violated`` are points that were found to break it, ``open_at`` is a point near which it could not be decided, both
    in the user's coordinates; ``reason`` is why there is no proof. ``cuts`` are where a proof of nearly the same row
    may cut its index to begin with, if that is known.
    """

    name: str
    how: str
    largest: float = np.nan
    relative: float = np.nan
    boxes: int = 0
    work: float = 0.0
    seconds: float = 0.0
    open_at: FloatArray | None = None
    violated: FloatArray | None = None
    reason: str = ""
    cuts: FloatArray | None = None

    @property
    def proved(self) -> bool:
        """Whether no point of the index violates the row by more than a millionth of its size at most points."""
        return self.relative <= ENOUGH and self.violated is None

    @property
    def why_not(self) -> str:
        """Why its rows are not proved; empty where they are."""
        if self.proved:
            return ""
        if self.violated is not None:
            return "points were found that violate it, and exchange could not mend them; see result.violation"
        return self.reason or f"its rows are violated by up to {self.relative:.2g} of their size"


@dataclass(frozen=True)
class ProofOptions:
    """Whether rows are proved ("auto", True or False), until when by the clock, and up to which violation.

    ``aim`` is the relative violation at which a proof of enclosures stops; ``cuts`` are for each family where another
    proof of nearly the same row had its boxes, or None.
    """

    wanted: bool | str = "auto"
    until: float = np.inf
    aim: float = AIM
    cuts: Sequence[FloatArray | None] = ()

    def cuts_of(self, number: int) -> FloatArray | None:
        """Where the index of a family is cut to begin with, if that is known."""
        return self.cuts[number] if number < len(self.cuts) else None

    @property
    def budget(self) -> Budget:
        """How much work all families of a problem may take together."""
        return Budget(_INSISTED if self.wanted is True else _WORK, self.until)


# How a search is called that climbed a concave row.
_CONCAVE = "concave rows"


def prove_families(
    families: Sequence[Family],
    searches: Sequence[Search],
    found: Sequence[Violations],
    x: FloatArray,
    options: ProofOptions,
) -> tuple[FamilyProof, ...]:
    """What is proved of each family at x, from how its search separates it, or by enclosures.

    ``families`` are those of the searches, each over a bounded domain; ``found`` is what the searches found at x.
    """
    proofs: dict[int, FamilyProof] = {}
    budget = options.budget
    for search, each in zip(searches, found, strict=True):
        ways = [_EXACT.get(way) for way in search.separation.split(" and ")]
        exact = ways[0] if None not in ways else None
        if exact is not None:
            worst, relative = _worst_by_member(len(search.families), each)
            for member, number in enumerate(search.numbers.tolist()):
                margin = search.margin + _rounding_of_scenarios(families[number], x)
                # What is not a number stays none: it proves nothing.
                excess = float(np.maximum(0.0, worst[member] + margin))
                size = float(np.maximum(0.0, relative[member]))
                lost = margin / _smallest_size(each, member) if margin else 0.0
                hidden = size <= ENOUGH < size + lost
                size += lost
                reason = ROUNDED.format(size) if hidden else ""
                proofs[number] = FamilyProof(families[number].name, exact, excess, size, reason=reason)
                if hidden and exact == "sweep" and options.wanted is not False:
                    # Rounding decides on which side of a step its numbers are: boxes may tell what is possible there.
                    proofs[number] = prove_by_enclosures(families[number], x, budget, options.aim)
            continue
        for member, number in enumerate(search.numbers.tolist()):
            if search.separation == _CONCAVE:
                proof = prove_concave(families[number], x, each.points[each.members == member])
                if proof is not None:
                    proofs[number] = proof
                    continue
            if options.wanted is False:
                proofs[number] = FamilyProof(families[number].name, "search", reason="no proof was asked for")
                continue
            # What one family leaves of its share, the others may use.
            share = replace(budget, work=budget.work / (len(families) - len(proofs)))
            proofs[number] = prove_by_enclosures(families[number], x, share, options.aim, options.cuts_of(number))
            budget = replace(budget, work=budget.work - proofs[number].work)
    return tuple(proofs[number] for number in range(len(families)))


def _smallest_size(found: Violations, member: int) -> float:
    """The least size of a family's row at the points that a search found."""
    return float(found.scale[found.members == member].min(initial=np.inf))


def _rounding_of_scenarios(family: Family, x: FloatArray) -> float:
    """What rounding may make of a row at scenarios, which are told one by one; zero where there are none."""
    body = family.domain.body
    if not isinstance(body, ScenarioBody):
        return 0.0
    every = np.ones(len(body.scenarios), dtype=bool)
    sides = (rounding_at(family, body.scenarios, side, np.abs(x)).max(initial=0.0) for side in (every, ~every))
    return float(max(sides))


def _worst_by_member(count: int, found: Violations) -> tuple[FloatArray, FloatArray]:
    """Largest excess of each family of a search, by itself and by the size of its row."""
    worst, relative = np.full(count, -np.inf), np.full(count, -np.inf)
    np.maximum.at(worst, found.members, found.excess)
    np.maximum.at(relative, found.members, found.excess / found.scale)
    return worst, relative


def prove_concave(family: Family, x: FloatArray, points: FloatArray) -> FamilyProof | None:
    """Prove rows that are concave over a convex set from their highest known points; None where that fails.

    No tangent plane of a concave function lies below it, so that its maximum is at most that of the plane (the gap of
    Frank and Wolfe). The slopes are enclosed; where a kink leaves them open, the plane says nothing.
    """
    started, body = time.monotonic(), family.domain.body
    if body is None or not len(points):
        return None
    size, largest = row_size(family, x, points), 0.0
    for side in _sides(family, points):
        best = points[int(np.argmax(_excess(family, x, side)(points)))]
        try:
            row = EnclosedRow(family, x, side)
            found = row.enclose(best[:, None], best[:, None], row.opening(1))
        except NoEnclosureError:
            return None
        low, high = found.slopes[:, :, 0]
        if not np.all(np.isfinite([low, high])):
            return None
        slope, spread = (low + high) / 2, (high - low) / 2 * (1 + 1e-12)
        plane = slope @ (body.support(slope[None])[0] - best) + spread @ (body.upper - body.lower)
        largest = float(np.maximum(largest, found.value[1, 0] + np.maximum(plane, 0.0)))
    if not largest <= ENOUGH * size:
        return None
    return FamilyProof(family.name, "concave", largest, largest / size, seconds=time.monotonic() - started)


def prove_by_enclosures(
    family: Family, x: FloatArray, budget: Budget, aim: float = AIM, cuts: FloatArray | None = None
) -> FamilyProof:
    """Prove that x keeps a family's rows over their whole index, or find points where it does not.

    ``cuts`` are where boxes along an index of one dimension end to begin with.
    """
    started = time.monotonic()
    points = family.user_points(audit_points(family.domain, len(family.rows.columns), None))
    family = family.as_declared
    rows, domain = family.rows, family.domain
    sampled = not isinstance(rows, TracedRows)
    if sampled and (family.lipschitz is None or not domain.bounded):
        missing = "it has no lipschitz=" if family.lipschitz is None else "its index has no end"
        return FamilyProof(family.name, "search", reason=f"its rule is called at points, not traced, and {missing}")
    size = row_size(family, x, points[:: max(1, len(points) // _MEASURED)])
    worst: Outcome | None = None
    far = reach(family)
    if far == 0:
        return FamilyProof(family.name, "search", reason=TOO_FAR, seconds=time.monotonic() - started)
    low, high = np.maximum(domain.lower, -far), np.minimum(domain.upper, far)
    boxes, spent, beyond = 0, 0.0, True
    marks, ends = domain.marks, np.empty(0)
    if cuts is not None and domain.dimension == 1 and len(cuts) * len(rows.columns) < budget.work / _CUT:
        marks = (np.union1d(marks[0], cuts),)
    sides = _sides(family, points)
    for side in sides:
        values = _excess(family, x, side)
        try:
            row: EnclosedRow | LipschitzRow
            if sampled:
                refuse_wrong_constant(family, points)
                row, aim = LipschitzRow(family, x, values), ENOUGH
            else:
                row = EnclosedRow(family, x, side)
            left = replace(budget, work=budget.work - spent)
            everywhere = None
            if not sampled and domain.inside is not None and (domain.region is None or not domain.region.exact):
                everywhere = _excess(family, x, side, everywhere=True)
            search = BranchAndBound(row, low, high, size, aim, ENOUGH, values, left, marks, everywhere)
            outcome = search.run()
            ends = np.union1d(ends, outcome.ends)
            if isinstance(row, EnclosedRow) and outcome.proved and not keeps_tail(row, domain, low, high, aim * size):
                beyond = False
        except NoEnclosureError as error:
            return FamilyProof(family.name, "search", reason=str(error), seconds=time.monotonic() - started)
        boxes, spent = boxes + outcome.boxes, spent + outcome.work
        if worst is None or outcome.relative > worst.relative or outcome.violated is not None:
            worst = outcome
        if outcome.violated is not None:
            break
    if worst is None:
        return FamilyProof(family.name, "search", reason="its limits are infinite wherever it was called")
    open_at = None
    if worst.open_low is not None and worst.open_high is not None:
        open_at = (worst.open_low[:, 0] + worst.open_high[:, 0]) / 2
    reason = "" if open_at is None else POLE if worst.unbounded else TOO_FEW
    if worst.rounded and not worst.relative <= ENOUGH:
        reason = reason or ROUNDED.format(worst.relative)
    if not beyond:
        worst.largest = worst.relative = np.inf
        reason = reason or BEYOND.format(far)
    return FamilyProof(
        family.name,
        "enclosure",
        max(0.0, worst.largest),
        max(0.0, worst.relative),
        boxes,
        spent,
        time.monotonic() - started,
        open_at,
        worst.violated,
        reason,
        _next_cuts(cuts, ends, boxes / len(sides)),
    )


def _next_cuts(cuts: FloatArray | None, ends: FloatArray, boxes: float) -> FloatArray | None:
    """Where a next proof may begin: where this one ended, or as this one did while that serves."""
    if cuts is None:
        return ends if len(ends) else None
    # Cuts only ever get more: where they do not fit any more, the next proof finds its own.
    return cuts if boxes <= _FITS * len(cuts) else None


def _sides(family: Family, points: FloatArray) -> list[float]:
    """Sides on which a family has limits: 1 above, -1 below."""
    if isinstance(family.rows, TracedRows):
        return [side for side, limit in ((1.0, family.rows.upper), (-1.0, family.rows.lower)) if limit is not None]
    lower, upper = family.rows.limits(points[:: max(1, len(points) // _MEASURED)])
    return [side for side, limit in ((1.0, upper), (-1.0, lower)) if np.isfinite(limit).any()]


def row_size(family: Family, x: FloatArray, points: FloatArray) -> float:
    """Size of a row at most of some points; what its violations are measured by."""
    used = family.used_by(x)
    return float(np.median(violation_scale(*used.activity_and_size(points, x), *family.limits(points))))


def _excess(family: Family, x: FloatArray, side: float, everywhere: bool = False) -> Callable[[FloatArray], FloatArray]:
    """Excess over one limit at points by the row's own functions; minus infinity outside of the domain.

    ``everywhere`` counts all points of its box as inside.
    """
    used = family.used_by(x)

    def values(points: FloatArray) -> FloatArray:
        result = np.full(len(points), -np.inf)
        inside = np.ones(len(points), dtype=bool) if everywhere else family.domain.contains(points)
        if inside.any():
            at = points[inside]
            lower, upper = family.rows.limits(at)
            activity = np.zeros(len(at))
            with np.errstate(all="ignore"):
                for columns, part, block in used.rows.blocks(at):
                    activity[part] += x[columns] @ block
                result[inside] = side * (activity - (upper if side > 0 else lower))
        return result

    return values
