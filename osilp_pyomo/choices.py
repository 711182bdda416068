"""Which grid and which basis each family gets: one value for all, or one a component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osilp_pyomo.bases import Functionals, as_basis, default_basis
from osilp_pyomo.errors import OptionError
from osilp_pyomo.grids import GridPoints, as_grid, default_grid
from osilp_pyomo.tracing import TracedModel


def lay_grids(traced: TracedModel, grid: Any) -> tuple[GridPoints, ...]:
    """Lay the chosen grid, or the default one, on each family's domain."""
    chosen = _by_family(grid, traced, "grid")
    return tuple(
        (default_grid(family.domain.dimension) if each is None else as_grid(each)).on(family.domain)
        for each, family in zip(chosen, traced.problem.families, strict=True)
    )


def lay_bases(traced: TracedModel, grid: Any, basis: Any) -> tuple[Functionals, ...]:
    """Lay the chosen basis, or the default one, on each family's grid."""
    chosen = _by_family(basis, traced, "basis")
    return tuple(
        (default_basis(laid.domain) if each is None else as_basis(each)).on(laid)
        for each, laid in zip(chosen, lay_grids(traced, grid), strict=True)
    )


def _by_family(given: Any, traced: TracedModel, what: str) -> list[Any]:
    """The entry of each family of an option that takes one value or {component: value}."""
    if not isinstance(given, Mapping):
        return [given] * len(traced.families)
    by_name = {key if isinstance(key, str) else getattr(key, "name", str(key)): value for key, value in given.items()}
    names = {each.name for each in traced.families} | {each.parent_component().name for each in traced.families}
    for name in by_name:
        if name not in names:
            raise OptionError(
                f"{what}=: there is an entry for '{name}', which is no active SemiInfiniteConstraint of the model; it "
                f"has {', '.join(sorted(names)) or 'none'}."
            )
    return [by_name.get(each.name, by_name.get(each.parent_component().name)) for each in traced.families]
