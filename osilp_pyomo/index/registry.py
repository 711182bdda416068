"""Grids and test functions by name, as the command line and the documentation's tables know them."""

from __future__ import annotations

from osilp_pyomo.index.bases import RBF, Basis, Bernstein, BSpline, Dirac, Functions, Hat, Indicator, Tensor
from osilp_pyomo.index.cells import Cells
from osilp_pyomo.index.grids import Chebyshev, Extremes, GaussLegendre, Grid, Midpoint, Points, Random, Sobol

GRIDS: dict[str, type[Grid]] = {
    each.__name__: each for each in (Midpoint, GaussLegendre, Chebyshev, Sobol, Random, Points, Extremes)
}
BASES: dict[str, type[Basis]] = {
    each.__name__: each for each in (RBF, Hat, BSpline, Bernstein, Indicator, Cells, Dirac, Functions, Tensor)
}
