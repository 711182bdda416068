"""Semi-infinite linear programming in Pyomo.

A modeler declares, in an ordinary Pyomo model, a constraint that holds for every point of a continuous
index, and solves it: exactly over the continuum, on a grid, or projected on test functions.
"""

from osilp_pyomo import errors, plugins
from osilp_pyomo._version import __version__
from osilp_pyomo.bases import RBF, Bernstein, BSpline, Dirac, Functions, Hat, Indicator, Tensor
from osilp_pyomo.components import SemiInfiniteConstraint
from osilp_pyomo.grids import Chebyshev, GaussLegendre, Midpoint, Points, Random, Sobol
from osilp_pyomo.offline import solve
from osilp_pyomo.profiles import Profile
from osilp_pyomo.results import Result

__all__ = [
    "RBF",
    "BSpline",
    "Bernstein",
    "Chebyshev",
    "Dirac",
    "Functions",
    "GaussLegendre",
    "Hat",
    "Indicator",
    "Midpoint",
    "Points",
    "Profile",
    "Random",
    "Result",
    "SemiInfiniteConstraint",
    "Sobol",
    "Tensor",
    "__version__",
    "errors",
    "plugins",
    "solve",
]
