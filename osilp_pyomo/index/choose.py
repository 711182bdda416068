"""Which grid and which basis each family gets: one value for all, or one per component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from osilp_pyomo.errors import BasisError, GridError, OptionError
from osilp_pyomo.index.bases import RBF, Basis, Dirac, Functionals, Functions, Hat
from osilp_pyomo.index.cells import Cells
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.grids import Extremes, Grid, GridPoints, Midpoint, Points, Sobol


@dataclass(frozen=True)
class FamilyName:
    """How a family may be called in an option: by its own name, or by that of its component."""

    own: str
    component: str


def names_of(families: Sequence[Any]) -> tuple[FamilyName, ...]:
    """Names of Pyomo families."""
    return tuple(FamilyName(each.name, each.parent_component().name) for each in families)


def place_grids(names: Sequence[FamilyName], domains: Sequence[Domain], grid: Any) -> tuple[GridPoints, ...]:
    """Place the chosen grid, or the default one, on each family's domain."""
    return tuple(
        (default_grid(domain) if each is None else as_grid(each)).on(domain)
        for each, domain in zip(by_family(grid, names, "grid"), domains, strict=True)
    )


def place_bases(names: Sequence[FamilyName], grids: Sequence[GridPoints], basis: Any) -> tuple[Functionals, ...]:
    """Place the chosen basis, or the default one, on each family's grid."""
    return tuple(
        (default_basis(placed.domain) if each is None else as_basis(each, placed.domain)).on(placed)
        for each, placed in zip(by_family(basis, names, "basis"), grids, strict=True)
    )


def by_family(given: Any, names: Sequence[FamilyName], what: str) -> list[Any]:
    """The entry of each family of an option that takes one value or {component: value}."""
    if not isinstance(given, Mapping):
        return [given] * len(names)
    by_name = {key if isinstance(key, str) else getattr(key, "name", str(key)): value for key, value in given.items()}
    known = {each.own for each in names} | {each.component for each in names}
    for name in by_name:
        if name not in known:
            raise OptionError(
                f"{what}=: there is an entry for '{name}', which is no active SemiInfiniteConstraint of the model; it "
                f"has {', '.join(sorted(known)) or 'none'}."
            )
    return [by_name.get(each.own, by_name.get(each.component)) for each in names]


def default_grid(domain: Domain) -> Grid:
    """The grid used when none is given: a few thousand points in any dimension, of a set its extreme points."""
    dimension = domain.dimension
    if domain.body is not None:
        return Extremes(256)
    per_axis = {1: 1000, 2: 50, 3: 20}
    return Midpoint(per_axis[dimension]) if dimension in per_axis else Sobol(2 ** (9 + dimension))


def as_grid(grid: object) -> Grid:
    """Take a grid, points for :class:`Points`, or a number of them for :class:`Midpoint`."""
    if isinstance(grid, Grid):
        return grid
    if isinstance(grid, int | np.integer) and not isinstance(grid, bool):
        return Midpoint(int(grid))
    if isinstance(grid, list | tuple | np.ndarray):
        return Points(grid)
    raise GridError(f"grid: expected a grid such as Midpoint(500) or an array of points (got {_text_of(grid, Grid)}).")


def default_basis(domain: Domain) -> Basis:
    """The basis used when none is given: hats, which measured closer to the optimum than RBF.

    On a part of a box some hats would be zero everywhere; RBF never are. Rows affine in an uncertain vector bind at
    extreme points of its set: some of them, far apart, measured several times closer than averages over their cells.
    """
    if domain.body is not None:
        return Dirac(Cells(64).middles(domain))
    return _so_many(domain, {1: 20, 2: 10, 3: 6, 4: 4}.get(domain.dimension, 3))


def _so_many(domain: Domain, count: int) -> Basis:
    """A basis of so many functions along each axis."""
    if domain.body is not None:
        return Dirac(Cells(count).middles(domain))
    return Hat(count) if domain.inside is None else RBF(count)


def as_basis(basis: object, domain: Domain) -> Basis:
    """Take a basis, callables for :class:`Functions`, or a number of functions for the default one."""
    if isinstance(basis, Basis):
        return basis
    if isinstance(basis, int | np.integer) and not isinstance(basis, bool):
        return _so_many(domain, int(basis))
    if isinstance(basis, list | tuple) and basis and all(callable(item) for item in basis):
        return Functions(*basis)
    raise BasisError(
        f"basis: expected a basis such as RBF(10) or a list of functions of the index (got {_text_of(basis, Basis)})."
    )


def _text_of(value: object, wanted: type) -> str:
    """A class by its own name, with the way out if it is one of those wanted; a number as it is; else a type."""
    if isinstance(value, type):
        return f"the class {value.__name__}" + (f"; write {value.__name__}(...)" if issubclass(value, wanted) else "")
    return repr(value) if isinstance(value, int | float) else type(value).__name__
