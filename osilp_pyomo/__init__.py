"""Online semi-infinite linear programming in Pyomo.

A modeler declares, in an ordinary Pyomo model, a constraint that holds for every point of a continuous
index, and solves it: exactly over the continuum, on a grid, or projected on test functions. The same model is
compiled into a controller that meets arrivals one by one and decides at once.
"""

from osilp_pyomo import displays, dro, errors, plugins, scenario, testing
from osilp_pyomo._version import __version__
from osilp_pyomo.api import compile_online, solve
from osilp_pyomo.index.bases import RBF, Bernstein, BSpline, Dirac, Functions, Hat, Indicator, Tensor
from osilp_pyomo.index.cells import Cells
from osilp_pyomo.index.grids import Chebyshev, Extremes, GaussLegendre, Midpoint, Points, Random, Sobol
from osilp_pyomo.model.constraint import SemiInfiniteConstraint
from osilp_pyomo.model.profile import Profile
from osilp_pyomo.offline.results import Result
from osilp_pyomo.online.chunks.source import Chunks
from osilp_pyomo.online.policies import (
    AccelerateThenRefine,
    FixedPrice,
    GradientDescent,
    Greedy,
    MirrorDescent,
    Policy,
    Potential,
    SimpleGD,
)
from osilp_pyomo.online.program import OnlineProgram
from osilp_pyomo.online.resolve import Resolve
from osilp_pyomo.online.resume import load_controller
from osilp_pyomo.rows import evaluate_rows, plot_rows
from osilp_pyomo.studies.compare import Study, StudyInterrupted, compare, load_study

__all__ = [
    "RBF",
    "AccelerateThenRefine",
    "BSpline",
    "Bernstein",
    "Cells",
    "Chebyshev",
    "Chunks",
    "Dirac",
    "Extremes",
    "FixedPrice",
    "Functions",
    "GaussLegendre",
    "GradientDescent",
    "Greedy",
    "Hat",
    "Indicator",
    "Midpoint",
    "MirrorDescent",
    "OnlineProgram",
    "Points",
    "Policy",
    "Potential",
    "Profile",
    "Random",
    "Resolve",
    "Result",
    "SemiInfiniteConstraint",
    "SimpleGD",
    "Sobol",
    "Study",
    "StudyInterrupted",
    "Tensor",
    "__version__",
    "compare",
    "compile_online",
    "displays",
    "dro",
    "errors",
    "evaluate_rows",
    "load_controller",
    "load_study",
    "plot_rows",
    "plugins",
    "scenario",
    "solve",
    "testing",
]
