"""Rows that hold as equations at every point of an index, as finitely many ordinary rows.

Coefficients and limits of such a row span a space of finitely many functions. An equation in that space holds at every
point if and only if it holds at as many points as the space has dimensions, chosen so that no function but zero
vanishes at all of them; for rows that are affine in an uncertain vector, if and only if the coefficients of both sides
agree along the affine hull of its set. What is left of the equation at an answer is bounded over the whole index by the
same proof as every other row.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.convex_sets import Body
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.sobol import sobol_points
from osilp_pyomo.lp.finite import FiniteLP, RowBlock
from osilp_pyomo.offline.audit import FamilyAudit, audit_families
from osilp_pyomo.offline.problem import Family
from osilp_pyomo.offline.proof.certify import FamilyProof, ProofOptions, prove_families, row_size
from osilp_pyomo.offline.rows import AffineRows
from osilp_pyomo.offline.search.choose import searches_for

# Share of the largest singular value below which a direction of a space is rounding.
_RANK = 1e-10
# Width of a set along a direction, relative to its numbers, below which it has none.
_FLAT = 1e-9
# Points at which functions are compared, for each of them; and at least so many.
_PER_FUNCTION, _FEWEST = 8, 64
MATCHED, COLLOCATED = "matched", "collocated"


@dataclass(frozen=True, eq=False)
class MatchedRows:
    """A row that is an equation over its index, and the ordinary rows that say the same.

    ``family`` is the row at any point, both limits equal; ``labels`` name the ordinary rows; ``how`` is "matched", or
    "collocated" where the rows hold at single points and nothing is claimed between them.
    """

    family: Family
    block: RowBlock
    labels: tuple[str, ...]
    how: str = MATCHED

    @property
    def name(self) -> str:
        """Name of the constraint."""
        return self.family.name

    @property
    def row_names(self) -> list[str]:
        """A name for each ordinary row."""
        return [f"{self.name} ({label})" for label in self.labels]


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """What is left of matched rows at an answer."""

    looks: tuple[FamilyAudit, ...]
    proofs: tuple[FamilyProof, ...]


# -- affine rows over sets -------------------------------------------------------------------------


def affine_hull(body: Body) -> tuple[FloatArray, FloatArray]:
    """A point of a set, and directions (r, d) that span its affine hull from there.

    Each support of the set along a direction that is not spanned yet shows a new one, or that there is none; directions
    come in reduced echelon form, so that those of a set with an interior are the axes.
    """
    from scipy import linalg  # slow to load, and needed for equations only

    dimension = body.dimension
    found = np.empty((0, dimension))
    rest = np.eye(dimension)
    while len(rest):
        far, near = body.support(rest), body.support(-rest)
        moves = far - near
        size = _FLAT * (1.0 + np.abs(far) + np.abs(near)).max()
        kept = moves[np.abs(np.einsum("kd,kd->k", rest, moves)) > size]
        if not len(kept):
            break
        found = _orthonormal(np.concatenate([found, kept / np.linalg.norm(kept, axis=1)[:, None]]))
        rest = linalg.null_space(found).T if len(found) < dimension else np.empty((0, dimension))
    if len(found) == dimension:
        return body.centre, np.eye(dimension)
    return body.centre, _echelon(found)


def _orthonormal(rows: FloatArray) -> FloatArray:
    _, values, right = np.linalg.svd(rows, full_matrices=False)
    return right[values > _RANK * values.max(initial=0.0)]


def _echelon(rows: FloatArray) -> FloatArray:
    """The same space by rows that have a 1 in a column of their own, and zeros below rounding set to zero."""
    matrix, row = rows.copy(), 0
    for column in range(matrix.shape[1]):
        if row == len(matrix):
            break
        pivot = row + int(np.argmax(np.abs(matrix[row:, column])))
        if abs(matrix[pivot, column]) < _FLAT:
            continue
        matrix[[row, pivot]] = matrix[[pivot, row]]
        matrix[row] /= matrix[row, column]
        others = np.arange(len(matrix)) != row
        matrix[others] -= np.outer(matrix[others, column], matrix[row])
        row += 1
    matrix[np.abs(matrix) < _FLAT] = 0.0
    return matrix


def match_affine(family: Family) -> MatchedRows:
    """A row that is affine in an uncertain vector, by its coefficients along the affine hull of the set."""
    rows, body = family.rows, family.domain.body
    assert isinstance(rows, AffineRows)
    assert body is not None
    assert rows.upper is not None
    point, directions = affine_hull(body)
    names = family.domain.names
    if len(directions) == body.dimension:
        # With an interior all coefficients agree, the constants among them.
        lines = np.eye(1 + body.dimension)
        labels = ["1", *names]
    else:
        lines = np.zeros((1 + len(directions), 1 + body.dimension))
        lines[0, 0], lines[0, 1:] = 1.0, point
        lines[1:, 1:] = directions
        labels = ["at the centre", *(_direction_text(each, names) for each in directions)]
    matrix, limits = lines @ rows.matrix, lines @ rows.upper
    said = np.any(matrix != 0, axis=1) | (limits != 0)
    block = RowBlock(rows.columns, matrix[said], limits[said], limits[said])
    return MatchedRows(family, block, tuple(label for label, keep in zip(labels, said, strict=True) if keep))


def _direction_text(direction: FloatArray, names: Sequence[str]) -> str:
    terms = [
        name if number == 1 else f"-{name}" if number == -1 else f"{number:.3g}*{name}"
        for name, number in zip(names, direction, strict=True)
        if number
    ]
    return " + ".join(terms[:4]).replace("+ -", "- ") + (" + ..." if len(terms) > 4 else "")


# -- other rows --------------------------------------------------------------------------------------


def compared_points(domain: Domain, functions: int) -> FloatArray:
    """Points at which so many functions of an index are told apart."""
    count = max(_FEWEST, _PER_FUNCTION * (functions + 1))
    if domain.body is not None:
        return domain.body.cloud(count, seed=7)
    if domain.dimension == 1:
        # In the middle of equal cells: each piece of a spline holds some of them.
        unit = ((np.arange(count) + 0.5) / count)[:, None]
    else:
        unit = sobol_points(count, domain.dimension)
    inner = domain.lower + unit * domain.width
    return np.concatenate([inner, domain.lower[None], domain.upper[None]])


def values_at(family: Family, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients (m, n) and right-hand side (m,) of a row at points."""
    return family.matrix(points), family.limits(points)[1]


def rank_of(values: FloatArray) -> int:
    """Dimension of the space that functions span, from their values (m, q) at points."""
    scaled = values / np.where(np.abs(values).max(axis=0) > 0, np.abs(values).max(axis=0), 1.0)
    if not scaled.size:
        return 0
    found = np.linalg.svd(scaled, compute_uv=False)
    return int(np.count_nonzero(found > _RANK * found[0] * np.sqrt(len(values)))) if found[0] > 0 else 0


def match_functions(family: Family) -> MatchedRows:
    """Any row, by its values at as many points as its functions span dimensions, chosen by a pivoted QR."""
    from scipy import linalg

    points = compared_points(family.domain, len(family.rows.columns))
    matrix, limits = values_at(family, points)
    values = np.column_stack([matrix, limits])
    scaled = values / np.where(np.abs(values).max(axis=0) > 0, np.abs(values).max(axis=0), 1.0)
    _, order = linalg.qr(scaled.T, mode="r", pivoting=True)
    return collocate(family, points[np.sort(order[: rank_of(values)])], MATCHED)


def collocate(family: Family, points: FloatArray, how: str = COLLOCATED) -> MatchedRows:
    """A row as equations at some points."""
    matrix, limits = values_at(family, points)
    labels = tuple(family.user_domain.describe(point) for point in points)
    return MatchedRows(family, RowBlock(family.rows.columns, matrix, limits, limits), labels, how)


# -- what becomes of them ----------------------------------------------------------------------------


def with_matched_rows(core: FiniteLP, matched: Sequence[MatchedRows]) -> FiniteLP:
    """A finite LP with the rows of equations behind its own."""
    if not matched:
        return core
    from scipy import sparse

    parts = []
    for each in matched:
        block = each.block
        entries = sparse.coo_array(block.matrix)
        columns = block.columns[entries.coords[1]]
        parts.append(sparse.coo_array((entries.data, (entries.coords[0], columns)), (len(block), core.columns)))
    limits = np.concatenate([each.block.upper for each in matched])
    return replace(
        core,
        matrix=sparse.csr_array(sparse.vstack([core.matrix, *parts])),
        row_lower=np.concatenate([core.row_lower, limits]),
        row_upper=np.concatenate([core.row_upper, limits]),
        row_names=JoinedNames(core.row_names, [name for each in matched for name in each.row_names]),
    )


class JoinedNames(Sequence[str]):
    """Names of rows, then further ones; asked for one by one."""

    def __init__(self, first: Sequence[str], further: Sequence[str]) -> None:
        self.first, self.further = first, further

    def __len__(self) -> int:
        return len(self.first) + len(self.further)

    def __getitem__(self, k: int) -> str:  # type: ignore[override]
        k = k + len(self) if k < 0 else k
        return self.first[k] if k < len(self.first) else self.further[k - len(self.first)]


def check_matched(matched: Sequence[MatchedRows], x: FloatArray, wanted: bool | str, until: float) -> CheckedRows:
    """What is left of equations over their whole index: audited at fresh points, and proved as other rows are."""
    families = [each.family for each in matched]
    near = [np.empty((0, family.domain.dimension)) for family in families]
    looks = audit_families(families, x, near)
    proofs = []
    for each, look in zip(matched, looks, strict=True):
        if each.how == COLLOCATED:
            reason = f"'==' holds at {len(each.labels)} points only; see result.violation for what is left between them"
            proofs.append(FamilyProof(each.name, COLLOCATED, look.violation, np.inf, open_at=look.worst, reason=reason))
            continue
        started = time.monotonic()
        searches = searches_for([each.family])
        (proof,) = prove_families(
            [each.family], searches, [s.worst(x) for s in searches], x, ProofOptions(wanted, until)
        )
        if proof.relative > 0:
            # An equation leaves nothing but rounding, also where its own terms are nothing else.
            size = row_size(each.family, x, compared_points(each.family.domain, 0))
            proof = replace(proof, relative=min(proof.relative, proof.largest / size))
        proofs.append(replace(proof, seconds=time.monotonic() - started))
    return CheckedRows(tuple(looks), tuple(proofs))
