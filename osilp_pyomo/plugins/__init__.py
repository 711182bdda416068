"""The Pyomo ways in: the solver ``osilp`` of both factories, and two transformations.

Holds: what Pyomo knows by a name once osilp_pyomo is imported, and results as Pyomo has them.
May know: everything below; what is needed to solve is loaded when it is used.
Gives: ``SolverFactory("osilp")``, ``TransformationFactory("osilp.discretize")`` and ``("osilp.project")``.
"""

from osilp_pyomo.plugins.results import OsilpResults
from osilp_pyomo.plugins.solver import LegacyOsilpSolver, OsilpSolver
from osilp_pyomo.plugins.transformations import Discretize, Project

__all__ = ["Discretize", "LegacyOsilpSolver", "OsilpResults", "OsilpSolver", "Project"]
