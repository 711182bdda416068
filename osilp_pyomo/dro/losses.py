"""Losses: the largest of several pieces, each linear in the decisions at every vector, or a sum of such maxima."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

import pyomo.environ as pyo

from osilp_pyomo.errors import OptionError
from osilp_pyomo.model.affine import is_affine
from osilp_pyomo.model.arrays.expressions import Vector
from osilp_pyomo.model.arrays.trees import IndexPlaceholder, all_leaves

# Up to so many pieces a sum of maxima is multiplied out where nothing better is known.
_MULTIPLIED = 1024


class SumOfMaxima:
    """A sum of terms, each the largest of several expressions, as a piece of a loss.

    Two terms with two expressions each are the largest of four sums, n of them of 2^n; here they need not be written.

    Parameters
    ----------
    terms : lists of expressions
        Each linear in the decisions at every vector; a term with one expression is that expression.

    Examples
    --------
    What two newsvendors lose together, each on papers left over or on buyers sent away:

    >>> import pyomo.environ as pyo, osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.x = pyo.Var([0, 1], bounds=(0, None))
    >>> known = osilp.dro.Reweighting([[1.0, 4.0], [3.0, 2.0]], total_variation=0.2)
    >>> def loss(m, z):
    ...     return osilp.dro.SumOfMaxima(*([m.x[i] - z[i], 3 * (z[i] - m.x[i])] for i in (0, 1)))
    >>> m.loss = pyo.Objective(expr=osilp.dro.worst_case_expectation(m, loss, known))
    >>> round(osilp.solve(m).objective, 6)
    2.0
    """

    def __init__(self, *terms: Iterable[Any]) -> None:
        self.terms = tuple(tuple(term) for term in terms)
        if not self.terms or not all(self.terms):
            raise OptionError(
                "SumOfMaxima: it needs at least one term, and each term at least one expression (got "
                f"{len(self.terms)} terms with {[len(term) for term in self.terms]} expressions)."
            )

    def __repr__(self) -> str:
        return f"sum of {len(self.terms)} maxima, of {math.prod(self.counts):,} pieces"

    @property
    def counts(self) -> tuple[int, ...]:
        """How many expressions each term has."""
        return tuple(len(term) for term in self.terms)

    def __add__(self, other: Any) -> SumOfMaxima:
        return SumOfMaxima(*self.terms, *(other.terms if isinstance(other, SumOfMaxima) else [[other]]))

    __radd__ = __add__

    def __sub__(self, other: Any) -> SumOfMaxima:
        if isinstance(other, SumOfMaxima):
            return NotImplemented
        return SumOfMaxima(*self.terms, [-other])

    def multiplied(self, what: str) -> list[Any]:
        """All its pieces; refused where they are too many."""
        count = math.prod(self.counts)
        if count > _MULTIPLIED:
            where = (
                ", and with norm=1 where each maximum depends on one entry of it alone" if what == "Wasserstein" else ""
            )
            raise OptionError(
                f"{what}: a sum of maxima with {count:,} pieces is too large to be multiplied out; it is taken as it "
                f"is where every expression is affine in the random vector{where}."
            )
        return [sum(choice) for choice in product(*self.terms)]


def multiplied(pieces: Sequence[Any], what: str) -> list[Any]:
    """Pieces with every sum of maxima among them multiplied out."""
    found: list[Any] = []
    for piece in pieces:
        found += piece.multiplied(what) if isinstance(piece, SumOfMaxima) else [piece]
    return found


class TermShape(NamedTuple):
    """Of a term: the entries of the random vector that it depends on, and how many expressions it has."""

    entries: frozenset[int]
    size: int


def shapes_of_terms(block: Any, loss: Any, dimension: int, vector: bool) -> list[list[TermShape]] | None:
    """The terms of each piece of a loss.

    A piece that is no sum of maxima is one term. None where some expression is not affine in the vector, or the loss
    needs numbers.
    """
    placeholders = [IndexPlaceholder(mutable=True, name=f"xi{k}") for k in range(dimension)]
    for placeholder in placeholders:
        placeholder.construct()
    try:
        found = loss(block.parent_block(), Vector(placeholders) if vector else placeholders[0])
    except Exception:  # a loss that needs numbers is called with them
        return None
    pieces = [piece.terms if isinstance(piece, SumOfMaxima) else ((piece,),) for piece in found]
    if not all(is_affine(each, placeholders) for terms in pieces for term in terms for each in term):
        return None
    numbers = {id(each): k for k, each in enumerate(placeholders)}
    return [
        [
            TermShape(
                frozenset(numbers[id(leaf)] for each in term for leaf in all_leaves(each) if id(leaf) in numbers),
                len(term),
            )
            for term in terms
        ]
        for terms in pieces
    ]


def separable(shapes: Sequence[Sequence[TermShape]]) -> bool:
    """Whether each maximum in a loss depends on one entry of the random vector at most."""
    return all(len(term.entries) <= 1 or term.size == 1 for terms in shapes for term in terms)


def difference(one: Any, other: Any) -> Any:
    """A piece at one vector less the same at another, expression by expression."""
    if not isinstance(one, SumOfMaxima):
        return one - other
    return SumOfMaxima(
        *(
            [each - its for each, its in zip(term, same, strict=True)]
            for term, same in zip(one.terms, other.terms, strict=True)
        )
    )


class PiecesAtPoints:
    """The pieces of a loss at numbered points, called once for all of them while rows are made.

    A rule of Pyomo is called for each row, and a row is of one piece. Rules that are called again later call the loss
    again, for the data that it reads may be others by then.
    """

    def __init__(self, loss: Any) -> None:
        self._loss = loss
        self._known: dict[Any, list[Any]] | None = None

    def __enter__(self) -> PiecesAtPoints:
        self._known = {}
        return self

    def __exit__(self, *_: object) -> None:
        self._known = None

    def __call__(self, parent: Any, number: Any, point: Callable[[], Any]) -> list[Any]:
        """All pieces at the point of that number."""
        if self._known is None:
            found: list[Any] = self._loss(parent, point())
            return found
        if number not in self._known:
            self._known[number] = self._loss(parent, point())
        return self._known[number]


def at_a_point(block: Any, piece: Any) -> Any:
    """A piece at one vector as an expression: what a sum of maxima is at least, by one variable for each of its terms.

    Only where it is pressed to be small.
    """
    if not isinstance(piece, SumOfMaxima):
        return piece
    if block.component("term") is None:
        block.term, block.terms = pyo.VarList(), pyo.ConstraintList()
    total: Any = 0
    for term in piece.terms:
        if len(term) == 1:
            total = total + term[0]
            continue
        variable = block.term.add()
        for each in term:
            block.terms.add(variable >= each)
        total = total + variable
    return total
