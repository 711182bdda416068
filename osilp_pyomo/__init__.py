"""Online semi-infinite linear programming in Pyomo.

A modeler declares, in an ordinary Pyomo model, a constraint that holds for every point of a continuous
index, and solves it: exactly over the continuum, on a grid, or projected on test functions. The same model is
compiled into a controller that meets arrivals one by one and decides at once.

What a declaration needs is loaded at once; every other name when it is first used. The subpackages are private.
"""

import lazy_loader

# Registered with Pyomo by being imported: the components, SolverFactory("osilp") and the transformations.
from osilp_pyomo import plugins as plugins
from osilp_pyomo._version import __version__ as __version__
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint as SemiInfiniteConstraint
from osilp_pyomo.model.functions.component import FunctionVar as FunctionVar
from osilp_pyomo.model.profile import Profile as Profile
from osilp_pyomo.robust import solver as _robust_solver  # noqa: F401

# The public names, with the modules they come from, stand in __init__.pyi, where type checkers read them too.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
