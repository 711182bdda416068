"""Grids and test functions laid on the rows of a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.evaluator import Evaluator
from osilp_pyomo.index.choose import FamilyName, as_grid, by_family, lay_bases, lay_grids
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.grids import Points, tensor_points
from osilp_pyomo.templates import StageTemplate


def lay_out(template: StageTemplate, grid: Any, basis: Any) -> Evaluator:
    """Lay grids and test functions on a template's rows: one value for all, or {component: value}."""
    names = [FamilyName(family.name, family.component) for family in template.families]
    domains = [family.domain for family in template.families]
    grids = lay_grids(names, domains, grid)
    functionals = lay_bases(names, grids, basis)
    extra = [
        np.empty((0, domain.dimension))
        if each is not None and isinstance(as_grid(each), Points)
        else _ends(domain, laid.points)
        for each, domain, laid in zip(by_family(grid, names, "grid"), domains, grids, strict=True)
    ]
    return Evaluator(template, grids, functionals, extra)


def _ends(domain: Domain, points: FloatArray) -> FloatArray:
    """Corners of a box that a grid leaves out, for guards and reports to look at."""
    if domain.dimension > 3:
        return np.empty((0, domain.dimension))
    corners = tensor_points([np.array([low, high]) for low, high in zip(domain.lower, domain.upper, strict=True)])
    corners = corners[domain.contains(corners)]
    known = {tuple(point) for point in points.tolist()}
    return corners[[tuple(corner) not in known for corner in corners.tolist()]].reshape(-1, domain.dimension)
