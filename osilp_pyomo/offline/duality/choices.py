"""Rows with sums of maxima: one row for every way to choose a function in each term, of which few are written.

Such a family stands over a :class:`~osilp_pyomo.index.choice_sets.ChoiceBody`. For each choice its row is affine or
quadratic over a convex set, and duality takes it exactly. A program begins with few choices; at its answer others that
are violated are looked for, and added, until there are none (the working set grows as in exchange, by choices and not
by points).

That none is left out is proved. Where the function of the answer is strictly convex in the vector, what a choice
reaches without the set is a quadratic function of a sum over its terms; over a bounded set that is not, it is a
piecewise linear one. So all choices but few are left behind by a bound on what their remaining terms can still add, and
each of the few is a small cone program of its own, whose multipliers bound it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.choice_sets import ChoiceBody
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.lp.programs import solve_program
from osilp_pyomo.offline.duality.builder import ConeBuilder
from osilp_pyomo.offline.duality.quadratic import (
    CurvedSide,
    QuadraticRow,
    Quadratics,
    has_quadratic_terms,
    quadratic_row,
    sides_over,
    somewhere,
    usual_place,
)
from osilp_pyomo.offline.duality.sides import Atoms, Duals, Side
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.proof.certify import FamilyProof
from osilp_pyomo.offline.rows import TracedRows

# Up to so many choices in all are written at once.
_FEW = 16
# Partial choices that are looked at together when it is proved that none is left out.
_MOST_PARTIAL = 4_000_000
# Choices whose small program is solved at most for one proof.
_MOST_PROGRAMS = 2_000
# A violation of this share of a row's size is none, and choices that cannot reach the second are left behind.
_NONE, _LEFT_BEHIND = 1e-9, 1e-12
# Functions whose least curvature is below this share of the largest count as flat somewhere.
_FLAT = 1e-8
# Choices that are added in one round, places that a search begins at, and steps of each.
_ADDED, _STARTS, _STEPS = 24, 24, 6

Choice = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ChosenSide(Side):
    """One limit of the row of one choice."""

    side: Side
    marks: FloatArray

    def atoms(self, duals: Duals) -> Atoms:
        points, masses = self.side.atoms(duals)
        return np.column_stack([points, np.tile(self.marks, (len(points), 1))]), masses

    def proved(self, found: FloatArray) -> tuple[float, float]:
        return self.side.proved(found)


@dataclass(eq=False)
class ChoiceFamily:
    """A family over choices, and those of them that are written."""

    family: Family
    body: ChoiceBody
    domain: Domain
    working: list[Choice] = field(default_factory=list)
    _read: dict[bytes, QuadraticRow | None] = field(default_factory=dict)

    @classmethod
    def of(cls, family: Family) -> ChoiceFamily | None:
        """The family with a few choices to begin with; None where duality does not take its rows."""
        body, rows = family.domain.body, family.rows
        if not isinstance(body, ChoiceBody) or not body.inner.convex or not isinstance(rows, TracedRows):
            return None
        if not has_quadratic_terms(rows) or (rows.lower is None) == (rows.upper is None):
            return None
        made = cls(family, body, body.inner_domain(family.domain.names))
        row = made._whole(somewhere(made.domain))
        if row is None or np.any(row.body.hessian[:, body.own :, body.own :]):
            return None
        if math.prod(body.counts) <= _FEW:
            made.working = [tuple(map(int, choice)) for choice in np.ndindex(*body.counts)]
        else:
            most = max(body.counts)
            made.working = list(dict.fromkeys(tuple(min(k, n - 1) for n in body.counts) for k in range(most)))
        return made

    # -- rows --------------------------------------------------------------------------------------------

    @property
    def sign(self) -> float:
        """1 for an upper limit, -1 for a lower one."""
        assert isinstance(self.family.rows, TracedRows)
        return 1.0 if self.family.rows.upper is not None else -1.0

    def _whole(self, around: FloatArray) -> QuadraticRow | None:
        """The row around a vector and no choice."""
        key = around.tobytes()
        if key not in self._read:
            nothing = np.zeros(self.body.dimension - self.body.own)
            self._read[key] = quadratic_row(self.family, np.concatenate([around, nothing]))
        return self._read[key]

    def _at(self, around: FloatArray, choice: Choice) -> QuadraticRow | None:
        """The row of a choice around a vector."""
        row = self._whole(around)
        marks = self.body.marks(np.array([choice]))[0]
        if row is None:
            return None
        lower, upper = (None if each is None else self._chosen(each, marks) for each in (row.lower, row.upper))
        return QuadraticRow(row.columns, self._chosen(row.body, marks), lower, upper)

    def _chosen(self, whole: Quadratics, marks: FloatArray) -> Quadratics:
        own = self.body.own
        return Quadratics(
            whole.constant + whole.linear[:, own:] @ marks,
            whole.linear[:, :own] + whole.hessian[:, :own, own:] @ marks,
            whole.hessian[:, :own, :own],
        )

    @cached_property
    def _usual(self) -> tuple[FloatArray, FloatArray]:
        around = somewhere(self.domain)
        row = self._at(around, tuple([0] * len(self.body.counts)))
        assert row is not None
        return usual_place(row, around)

    def sides(self, choice: Choice, core: FiniteLP) -> tuple[CurvedSide, ...] | None:
        """The row of a choice as duality takes it."""
        return sides_over(self.domain, lambda around: self._at(around, choice), core, self._usual)

    def add_to(self, builder: ConeBuilder, core: FiniteLP) -> tuple[Side, ...]:
        """The rows of all choices that are written, added to a program."""
        added: list[Side] = []
        for choice in self.working:
            marks = self.body.marks(np.array([choice]))[0]
            added += [ChosenSide(each.add_to(builder), marks) for each in self.sides(choice, core) or ()]
        return tuple(added)

    # -- what is violated ----------------------------------------------------------------------------------

    def learn(self, x: FloatArray, near: FloatArray) -> bool:
        """Add choices that are violated at x, looked for from some vectors; whether there were any."""
        look = _Look(self, x)
        found: dict[Choice, float] = {}
        starts = np.concatenate([near[:, : self.body.own], self.body.inner.cloud(_STARTS, seed=7)])
        seen: set[Choice] = set(self.working)
        for choice in look.largest(starts):
            for _ in range(_STEPS):
                if choice in seen or len(seen) - len(self.working) > _STARTS * _STEPS:
                    break
                seen.add(choice)
                excess, vector = look.worst(choice)
                if excess > look.nothing:
                    found[choice] = excess
                (choice,) = look.largest(vector[None])
        if not found:
            found = {choice: excess for choice, excess in look.rest(seen).items() if excess > look.nothing}
        self.working += sorted(found, key=lambda choice: -found[choice])[:_ADDED]
        return bool(found)

    def proof(self, x: FloatArray, of_working: FamilyProof) -> FamilyProof:
        """What is proved of all choices, given what is of those that are written."""
        look = _Look(self, x)
        try:
            others = look.rest(set(self.working))
        except TooManyChoicesError as error:
            return FamilyProof(of_working.name, "cone", reason=str(error))
        left_behind = look.least if len(self.working) + len(others) < look.total else 0.0
        largest = max([of_working.largest, left_behind, *others.values()])
        return FamilyProof(of_working.name, "cone", largest, max(of_working.relative, largest / look.size))


class TooManyChoicesError(Exception):
    """More choices stay possible than are looked at one by one."""


class _Look:
    """The row of every choice at an answer, as functions of the vector alone."""

    def __init__(self, chosen: ChoiceFamily, x: FloatArray) -> None:
        self.chosen, self.body, self.x = chosen, chosen.body, x
        self.around = somewhere(chosen.domain)
        self.function = self._slack(self.around)
        self.size = float(np.median(chosen.family.scale(self.body.cloud(64, seed=5), x)))
        self.nothing, self.least = _NONE * self.size, _LEFT_BEHIND * self.size
        self.total = math.prod(self.body.counts)

    def _slack(self, around: FloatArray) -> Quadratics:
        """What is left to the limit, as one function of the vector and the choice."""
        row = self.chosen._whole(around)
        assert row is not None
        part, own = row.slack(self.chosen.sign)
        values = self.x[row.columns]
        return Quadratics(
            own.constant + values @ part.constant,
            own.linear + np.einsum("n,ni->i", values, part.linear),
            own.hessian + np.einsum("n,nij->ij", values, part.hessian),
        )

    def largest(self, vectors: FloatArray) -> list[Choice]:
        """The choice that leaves least at each vector."""
        own = self.body.own
        of_choice = self.function.linear[0, own:] + (vectors - self.around) @ self.function.hessian[0, :own, own:]
        parts = np.split(of_choice, self.body.starts[1:], axis=1)
        found = np.stack([np.argmin(part, axis=1) for part in parts], axis=1)
        return list(dict.fromkeys(tuple(map(int, choice)) for choice in found))

    def worst(self, choice: Choice) -> tuple[float, FloatArray]:
        """What no vector exceeds the row of a choice by, which may be negative, and about where that is reached.

        Infinite where the multipliers of its program do not prove anything.
        """
        chosen = self.chosen
        marks = self.body.marks(np.array([choice]))[0]

        def read(around: FloatArray) -> QuadraticRow:
            # "what is left, and t more, is at least 0", with one column t.
            own = chosen._chosen(self._slack(around), marks)
            one = Quadratics(np.ones(1), np.zeros((1, len(around))), np.zeros((1, len(around), len(around))))
            return QuadraticRow(
                np.zeros(1, dtype=np.int64), one, Quadratics(-own.constant, -own.linear, -own.hessian), None
            )

        core = FiniteLP(
            maximize=False, cost=np.ones(1), column_lower=np.full(1, -np.inf), column_upper=np.full(1, np.inf),
            matrix=sparse.csr_array((0, 1)), row_lower=np.zeros(0), row_upper=np.zeros(0),
        )  # fmt: skip
        made = sides_over(chosen.domain, read, core, chosen._usual)
        if not made:
            return np.inf, self.around
        builder = ConeBuilder(core)
        side = made[0].add_to(builder)
        ended = solve_program(builder.program())
        if ended.x is None or ended.row_duals is None:
            return np.inf, self.around
        points, _ = side.atoms(Duals(ended.row_duals, ended.cone_duals, -1.0))
        missed = side.proved(ended.x)[0]
        return float(ended.x[0]) + max(0.0, missed), points[0] if len(points) else self.around

    def rest(self, but: set[Choice]) -> dict[Choice, float]:
        """What choices that a bound does not leave behind exceed the row by; without some that are known."""
        left = [choice for choice in self._possible() if choice not in but]
        if len(left) > _MOST_PROGRAMS:
            raise TooManyChoicesError(
                f"{len(left):,} of {self.total:,} choices in its sums of maxima may bind, more than are looked at one "
                "by one"
            )
        return {choice: self.worst(choice)[0] for choice in left}

    def _possible(self) -> Sequence[Choice]:
        """Choices whose row may be violated, by what it is on all of space, or on a box around the set."""
        own, counts = self.body.own, self.body.counts
        reached = self._reached()
        if reached is None:
            return self._all()
        turn, reach = reached
        # What a choice exceeds the row by is at most "reach(u) - c", where u and c are sums over its terms.
        u = (turn @ self.function.linear[0, :own])[None]
        c = self.function.constant.copy()
        terms = np.split((turn @ self.function.hessian[0, :own, own:]).T, self.body.starts[1:])
        left = np.split(self.function.linear[0, own:], self.body.starts[1:])
        # Terms that say most come first.
        order = sorted(range(len(counts)), key=lambda k: -float(np.ptp(terms[k], axis=0).sum()))
        made = np.zeros((1, len(counts)), dtype=np.int16)
        for place, k in enumerate(order):
            if len(made) * counts[k] > _MOST_PARTIAL:
                raise TooManyChoicesError(
                    f"more than {_MOST_PARTIAL:,} of {self.total:,} choices in its sums of maxima may bind"
                )
            u = (u[:, None] + terms[k]).reshape(-1, own)
            c = (c[:, None] + left[k]).ravel()
            made = np.repeat(made, counts[k], axis=0)
            made[:, k] = np.tile(np.arange(counts[k]), len(made) // counts[k])
            open_terms = order[place + 1 :]
            low = u + sum((terms[other].min(axis=0) for other in open_terms), np.zeros(own))
            high = u + sum((terms[other].max(axis=0) for other in open_terms), np.zeros(own))
            kept = reach(low, high) - c - sum(left[other].min() for other in open_terms) > self.least
            u, c, made = u[kept], c[kept], made[kept]
        return [tuple(map(int, choice)) for choice in made]

    def _reached(self) -> tuple[FloatArray, Callable[[FloatArray, FloatArray], FloatArray]] | None:
        """How slopes are turned, and what no vector reaches more than, whatever turned slopes between two it has."""
        own, domain = self.body.own, self.chosen.domain
        hessian = self.function.hessian[0, :own, :own]
        values, vectors = np.linalg.eigh(hessian)
        if values[0] > _FLAT * values[-1]:
            # |u|^2 / 2, with what the roots of eigenvalues may miss.
            more = 1 + 64 * own * 2.0**-52 * values[-1] / values[0]
            turn = vectors.T / np.sqrt(values)[:, None]
            return turn, lambda low, high: more * (np.maximum(low**2, high**2)).sum(axis=1) / 2
        if domain.bounded and values[0] >= -(_FLAT**2) * np.abs(values).max():
            below, above = self.around - domain.lower, domain.upper - self.around
            return np.eye(own), lambda low, high: np.maximum(high * below, -low * above).sum(axis=1)
        return None

    def _all(self) -> Sequence[Choice]:
        if self.total > _MOST_PROGRAMS:
            raise TooManyChoicesError(
                f"its {self.total:,} choices in sums of maxima cannot be left behind by a bound, for the row is not "
                "strictly convex in the vector"
            )
        return [tuple(map(int, choice)) for choice in np.ndindex(*self.body.counts)]
