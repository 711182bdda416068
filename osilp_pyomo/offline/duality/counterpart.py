"""Robust counterparts: rows affine in an uncertain vector as finitely many rows and cones, by duality.

``h_0(x) + h(x) @ xi <= 0`` for all ``xi = offset + matrix t`` of a set (:mod:`osilp_pyomo.offline.duality.frame`) says
that the largest ``(matrix' h(x)) @ t`` stays below ``-h_0(x) - h(x) @ offset``. Any multipliers bound it, and the best
ones attain it (Ben-Tal and Nemirovski, 1998, 1999). With r of the set's rows, y of its cones, and

    g = matrix' h(x) - rows' r + sum G' y

it is at most ``limits @ r + sum c @ y`` and the sum of ``max(g, 0)`` over coordinates in [0, 1], where g <= 0 for
coordinates that are only >= 0, and g = 0 for free ones. So the row holds exactly if there are multipliers r >= 0, y in
the dual cones and p >= g, p >= 0 with which that is small enough. The price of the row is the dual of that inequality,
at the vector that the duals of the equations of g point to.

The same multipliers prove that the row holds, whoever computed them and however roughly: g and the sum are computed
again from them. That shares nothing with exchange but the rows, which makes each a check of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import ModelError
from osilp_pyomo.index.choice_sets import ChoiceBody
from osilp_pyomo.index.convex_sets import ScenarioBody
from osilp_pyomo.lp.conic import ConeProgram, middle_of, solve_cones
from osilp_pyomo.lp.finite import FiniteLP
from osilp_pyomo.offline.duality.builder import ConeBuilder
from osilp_pyomo.offline.duality.choices import ChoiceFamily
from osilp_pyomo.offline.duality.frame import Frame
from osilp_pyomo.offline.duality.quadratic import CurvedSide, MatrixSide, curved_sides, gathered_moments
from osilp_pyomo.offline.duality.sides import Atoms, BoxSides, Duals, DualSide, ScenarioSide, Side
from osilp_pyomo.offline.problem import Family, SemiInfiniteLP
from osilp_pyomo.offline.proof.certify import FamilyProof
from osilp_pyomo.offline.rows import AffineRows


@dataclass(frozen=True, eq=False)
class Counterpart:
    """The finite program, and for each family where its rows and their multipliers stand.

    The columns of the problem come first and keep their numbers, and so do its ordinary rows.
    """

    program: ConeProgram
    sides: tuple[tuple[Side, ...], ...]
    ordinary: int

    def inner_point(self, near: FloatArray) -> FloatArray | None:
        """A point of the program with room in all rows that duality added, and in its cones; None where none is found.

        Not far from one that is given. Equations have no room; they hold at this point as at any other.
        """
        lp = self.program.lp
        added = np.arange(len(lp.row_lower)) >= self.ordinary
        one_sided = added & (lp.row_lower != lp.row_upper)
        room = sparse.csr_array(one_sided.astype(float)[:, None])
        away = 1.0 + np.abs(near)
        wider = replace(
            lp,
            maximize=True,
            cost=np.append(np.zeros(lp.columns), 1.0),
            offset=0.0,
            column_lower=np.append(np.maximum(lp.column_lower, near - away), 0.0),
            column_upper=np.append(np.minimum(lp.column_upper, near + away), 1.0),
            integer=np.zeros(lp.columns + 1, dtype=bool),
            matrix=sparse.csr_array(sparse.hstack([lp.matrix, room])),
        )
        cones = []
        for cone in self.program.cones:
            shares = np.tile(middle_of(cone.kind, cone.size), len(cone.offset) // cone.size)[:, None]
            widened = sparse.hstack([cone.matrix, sparse.csr_array(-shares)])
            cones.append(replace(cone, matrix=sparse.csr_array(widened)))
        found = solve_cones(ConeProgram(wider, tuple(cones)), tolerance=1e-9)
        return None if found.x is None or found.x[-1] <= 0 else found.x[:-1]

    def atoms(self, duals: Duals) -> list[Atoms]:
        """Price of each family as vectors and masses."""
        curved = [side for sides in self.sides for side in sides if isinstance(side, MatrixSide)]
        gathered = dict(zip(map(id, curved), gathered_moments(curved, duals), strict=True))
        prices = []
        for sides in self.sides:
            found = [
                side.atoms_of(gathered[id(side)], duals.sign) if isinstance(side, MatrixSide) else side.atoms(duals)
                for side in sides
            ]
            prices.append((np.concatenate([p for p, _ in found]), np.concatenate([m for _, m in found])))
        return prices

    def proofs(self, families: tuple[Family, ...], found: FloatArray) -> tuple[FamilyProof, ...]:
        """What the multipliers of a point of the program prove of each family's rows."""
        how = "cone" if self.program.cones else "closed form"
        result = []
        for family, sides in zip(families, self.sides, strict=True):
            # What is not a number stays none: it proves nothing.
            worst = np.max([(0.0, 0.0), *(side.proved(found) for side in sides)], axis=0)
            result.append(FamilyProof(family.name, how, float(worst[0]), float(worst[1])))
        return tuple(result)


def choice_families(problem: SemiInfiniteLP) -> dict[int, ChoiceFamily]:
    """The families with sums of maxima that duality takes, by their number."""
    made = {number: ChoiceFamily.of(family) for number, family in enumerate(problem.families)}
    return {number: chosen for number, chosen in made.items() if chosen is not None}


def counterpart(problem: SemiInfiniteLP, chosen: Mapping[int, ChoiceFamily] | None = None) -> Counterpart:
    """Write the counterpart of a problem whose families are affine or quadratic rows over convex sets or scenarios.

    Of families with sums of maxima the choices that are written now.
    """
    forms = {}
    chosen = choice_families(problem) if chosen is None else chosen
    for number, family in enumerate(problem.families):
        if number in chosen:
            continue
        if not isinstance(family.rows, AffineRows):
            forms[id(family)] = curved_sides(family, problem.core)
        reason = _objection(family, forms.get(id(family)))
        if reason is not None:
            raise ModelError(f"SemiInfiniteConstraint '{family.name}': {reason}; use method='exchange'.")
    builder = ConeBuilder(problem.core)
    frames: dict[int, Frame] = {}
    sides = []
    for number, family in enumerate(problem.families):
        curved = forms.get(id(family))
        if number in chosen:
            sides.append(chosen[number].add_to(builder, problem.core))
        elif curved is None:
            sides.append(_sides(builder, family, frames))
        else:
            sides.append(tuple(each.add_to(builder) for each in curved))
    return Counterpart(builder.program(), tuple(sides), len(problem.core.row_lower))


def objection(family: Family, core: FiniteLP) -> str | None:
    """Why a family has no counterpart; None where it has one."""
    if isinstance(family.domain.body, ChoiceBody):
        return None if ChoiceFamily.of(family) is not None else _NO_SUM
    return _objection(family, None if isinstance(family.rows, AffineRows) else curved_sides(family, core))


_NO_SUM = (
    "its sums of maxima are neither affine nor quadratic in the random vector, as duality needs them; write the "
    "largest of all their sums as a list of pieces"
)


def _objection(family: Family, curved: tuple[CurvedSide, ...] | None) -> str | None:
    body = family.domain.body
    if isinstance(body, ChoiceBody):
        return _NO_SUM
    if isinstance(family.rows, AffineRows):
        assert body is not None
        if body.convex or isinstance(body, ScenarioBody):
            return None
        return f"method='counterpart' is for convex sets and scenarios (got {body})"
    if curved is not None:
        return None
    if body is None:
        return (
            "method='counterpart' is for rows over an uncertainty set of PyROS, or quadratic in an index without ends "
            f"(got {family.domain})"
        )
    return (
        "method='counterpart' is for rows affine in the uncertain vector, or quadratic in a way that duality is exact "
        "for, which this one is not"
    )


def _sides(builder: ConeBuilder, family: Family, frames: dict[int, Frame]) -> tuple[Side, ...]:
    """The limits of an affine family, added to a program."""
    rows, body = family.rows, family.domain.body
    assert isinstance(rows, AffineRows)
    assert body is not None
    signs = [sign for sign, limit in ((1.0, rows.upper), (-1.0, rows.lower)) if limit is not None]
    if isinstance(body, ScenarioBody):
        return tuple(ScenarioSide.added(builder, rows, sign, body.scenarios) for sign in signs)
    if id(body) not in frames:
        frames[id(body)] = Frame.of(body.lift())
    frame = frames[id(body)]
    if frame.plain_box and len(signs) == 2 and _same_slopes(rows):
        return (BoxSides.added(builder, rows, frame),)
    return tuple(DualSide.added(builder, rows, sign, frame) for sign in signs)


def _same_slopes(rows: AffineRows) -> bool:
    """Whether both limits of a row change alike with the vector."""
    assert rows.upper is not None
    assert rows.lower is not None
    return np.array_equal(rows.upper[1:], rows.lower[1:])
