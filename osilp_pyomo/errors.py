"""The exception tree: every refusal of this package is an :class:`OsilpError`.

::

    OsilpError
     +-- DeclarationError(ValueError)         a component was declared in a way that cannot be meant
     +-- UntransformedModelError(ValueError)  a solver or writer met a constraint that only we can read
     +-- NotLinearError(ValueError)           a row or objective is not linear in the variables
     |    +-- NotConvexError                  it is not linear, and not proved to be convex either
     +-- ModelError(ValueError)               the model holds something that cannot be solved here
     |    +-- UnitsError                      units of two things do not fit together
     +-- DataError(ValueError)                a coefficient has no value, or is not a finite number
     +-- DomainError(ValueError)              a point lies outside the set it must lie in
     +-- GridError(ValueError)                a grid that cannot stand for the index set
     +-- BasisError(ValueError)               test functions that are negative, zero or not finite
     +-- OptionError(ValueError)              an option that is unknown, misspelled or out of range
     +-- HorizonError(ValueError)             more arrivals came than were expected
     +-- CurvatureError(ValueError)           a stage is not concave in what it earns, or not convex in what it uses
     +-- SavedStateError(ValueError)          a saved controller that cannot be read, or belongs to another program
     +-- PriceError(ValueError)               a price that does not exist, or not in the form asked for
     +-- ExecutorError(RuntimeError)          a process that ran trials of a study died
     +-- MissingPackageError(ImportError)     something optional is asked for, and its package is not installed
     +-- NoSolutionError(RuntimeError)        values were asked of a result that has none
     +-- SolverError(RuntimeError)            HiGHS ended in a way that gives no answer

Each text names the object, the rule it breaks, the value that was got, and the way out.
"""

from __future__ import annotations

__all__ = [
    "AccuracyWarning",
    "BasisError",
    "ChangedRuleWarning",
    "CurvatureError",
    "DataError",
    "DeclarationError",
    "DomainError",
    "ExecutorError",
    "GridError",
    "HorizonError",
    "HorizonWarning",
    "MissingPackageError",
    "ModelError",
    "NoSolutionError",
    "NotConvexError",
    "NotLinearError",
    "OptionError",
    "OsilpError",
    "OtherSetWarning",
    "PriceError",
    "SamplingWarning",
    "SavedStateError",
    "SolverError",
    "UnitsError",
    "UntransformedModelError",
]


class OsilpError(Exception):
    """Base class of everything this package raises on purpose.

    Catch this one to catch them all; each is also the ValueError, RuntimeError, ImportError or AssertionError that it
    would be elsewhere.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> try:
    ...     osilp.Midpoint(0)
    ... except osilp.errors.OsilpError as error:
    ...     print(type(error).__name__)
    GridError
    """


class DeclarationError(OsilpError, ValueError):
    """A component was declared in a way that cannot be meant.

    The text shows what the rule returned, or which option it was, and what to write instead. Pyomo logs the error too,
    for it happens while a component is constructed.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(bounds=(0, 1))
    >>> m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    >>> m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * u < 1)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.DeclarationError: SemiInfiniteConstraint 'row': '<' and '>' describe open sets (found
    u*x < 1); use <= or >=.
    """


class UntransformedModelError(OsilpError, ValueError):
    """A solver or writer met an active semi-infinite constraint.

    Solve with ``osilp_pyomo.solve`` or ``SolverFactory('osilp')``, or transform the model first; a constraint that is
    not wanted is deactivated.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(bounds=(0, 1))
    >>> m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    >>> m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * u <= 0.5)
    >>> pyo.SolverFactory("appsi_highs").solve(m)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.UntransformedModelError: SemiInfiniteConstraint 'row' holds for every point of u in [0, 1]: no
    solver or writer can take it as it stands. Use osilp_pyomo.solve(model), SolverFactory('osilp').solve(model),
    TransformationFactory('osilp.discretize') or ('osilp.project'), or deactivate it. Its row at one point is
    row.at(point).
    """


class NotLinearError(OsilpError, ValueError):
    """A row or the objective is not linear in the variables, where only linear ones can be used.

    The text shows the term. Transformations to finite rows, and rules that are called at points, need linear rows;
    ``solve`` takes convex ones too and raises :class:`NotConvexError`.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(bounds=(0, 1))
    >>> m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    >>> m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: u * m.x**2 <= 1)
    >>> pyo.TransformationFactory("osilp.discretize").apply_to(m)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.NotLinearError: SemiInfiniteConstraint 'row': it is not linear in the variables (found x**2);
    only linear rows and objectives can be used here. Keep products and nonlinear functions of Vars out of it; convex
    ones are solved by osilp.solve(model), and if they belong to arrivals by compile_online(model, stages=...).
    """


class NotConvexError(NotLinearError):
    """A row or the objective is not linear in the variables, and not proved to be convex (concave) either.

    The text shows the term, and two points between which it bends the wrong way where there are such. Where there are
    none, the term is written in a way whose curvature is not known: use functions for which it is, or give the
    variables bounds within which its Hessian can be enclosed.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.x = pyo.Var(bounds=(0, 1))
    >>> m.cost = pyo.Objective(expr=pyo.sqrt(m.x))
    >>> osilp.solve(m)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.NotConvexError: Objective 'cost': it is not convex in the variables (found sqrt(x)): between
    (x = 0) and (x = 1) it bends the wrong way. Offline an objective is minimized where it is convex and maximized
    where it is concave; give the variables bounds within which it is, or write it in another way; if such terms belong
    to arrivals use compile_online(model, stages=...).solve_offline().
    """


class ModelError(OsilpError, ValueError):
    """The model holds something that cannot be solved here.

    Deactivate or transform the component that the text names.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(bounds=(0, 1))
    >>> m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    >>> m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * u <= 0.5)
    >>> m.again = pyo.Objective(expr=m.x)
    >>> osilp.solve(m)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.ModelError: The model has 2 active objectives (gain, again); deactivate all but one.
    """


class UnitsError(ModelError):
    """Units of two things do not fit together.

    Declare the right one, or convert with ``pyo.units.convert``; a number without a unit gets one by multiplying it, as
    in ``60 * pyo.units.MW``.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 10))
    >>> m.place = pyo.Param(initialize=3, mutable=True, units=pyo.units.m)
    >>> m.x = pyo.Var()
    >>> m.row = osilp.SemiInfiniteConstraint(m.u, units=pyo.units.km, rule=lambda m, u: m.x >= (u - m.place) / m.place)
    >>> osilp.check_units(m)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.UnitsError: 'row': 'u' has the unit km, and '- place' has the unit m.
    """


class DataError(OsilpError, ValueError):
    """A coefficient has no value, or is not a finite number.

    Give the datum that the text names a finite value; leave points out by ``where=`` at which a rule has none.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_model
    >>> m = demo_model(arrivals=20)
    >>> program = osilp.compile_online(m, stages=m.T, horizon=2)
    >>> program.controller(osilp.MirrorDescent()).step(value=float("nan"), place=0.4)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.DataError: An arrival's 'value' must be a finite number (got nan).
    """


class DomainError(OsilpError, ValueError):
    """A point lies outside the set it must lie in.

    Stay within the bounds of the index; a Profile may be told what to do beyond its knots by ``outside=``.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(bounds=(0, 1))
    >>> m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    >>> m.cap = osilp.Profile(over=m.u, points=[0, 0.5], initialize=[1.0, 2.0])
    >>> m.cap(0.9)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.DomainError: Profile 'cap': asked for its value at 0.9, outside its knots [0, 0.5]; give it
    more points, or outside='clamp' or 'wrap'.
    """


class GridError(OsilpError, ValueError):
    """A grid that cannot stand for the index set.

    Ask for more points, or for points within the index; on an unbounded index give them by ``Points``.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> osilp.Midpoint(0)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.GridError: Midpoint: the number of points along an axis must be a whole number >= 1 (got 0).
    """


class BasisError(OsilpError, ValueError):
    """Test functions that are negative, zero everywhere or not finite.

    A row may be multiplied only by functions >= 0, or its direction would turn; a function that is zero at every grid
    point needs a finer grid.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(bounds=(0, 1))
    >>> m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    >>> m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * u <= 0.5)
    >>> osilp.solve(m, method="projected", basis=[lambda u: u - 0.5])
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.BasisError: Functions(1 functions): test functions must be finite and >= 0, or projecting is no
    relaxation; column 0 (<lambda>) is -0.4995 at u = 0.0005.
    """


class OptionError(OsilpError, ValueError):
    """An option that is unknown, misspelled or out of range.

    The text lists what is allowed.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> osilp.MirrorDescent("entropie")
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.OptionError: MirrorDescent: potential must be 'euclidean' or 'entropy' (got 'entropie').
    """


class HorizonError(OsilpError, ValueError):
    """More arrivals came than were expected.

    Compile with a larger ``horizon=``, tell a running controller by ``revise(horizon=...)``, or let it go on, as it
    does where ``beyond='error'`` was not asked for.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_model
    >>> m = demo_model(arrivals=20)
    >>> program = osilp.compile_online(m, stages=m.T, horizon=2)
    >>> controller = program.controller(osilp.MirrorDescent(), beyond="error")
    >>> for _ in range(3):
    ...     decision = controller.step(value=0.5, place=0.4)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.HorizonError: The horizon of 2 arrivals is reached (2 were met, 1 more came); use
    revise(horizon=...), or beyond='continue'.
    """


class CurvatureError(OsilpError, ValueError):
    """A stage is not concave in what it earns, or not convex in what it uses.

    The text names an arrival and two decisions between which it fails. Earn less than proportionally and use more than
    proportionally, or bound the variable to where that is so.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_model
    >>> m = demo_model(arrivals=20)
    >>> m.reward.set_value(sum(m.value[t] * m.x[t] ** 2 for t in m.T))
    >>> osilp.compile_online(m, stages=m.T)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.CurvatureError: The objective is not concave in the decision: for the arrival 1 it fails
    between x = 0.2556 and x = 0.2007; online stages must earn concavely and use convexly.
    """


class SavedStateError(OsilpError, ValueError):
    """A saved controller or study that cannot be read, or that belongs to another program.

    Load it with the program it was saved with; files that are damaged are never read in part.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> osilp.load_study("nowhere")
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.SavedStateError: 'nowhere' holds no study.
    """


class PriceError(OsilpError, ValueError):
    """A price that does not exist, or not in the form asked for.

    Prices of exchange sit on points (``atoms``, ``smooth``), projected ones are functions of the index; models with
    integers need ``fix_integers=True``.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(bounds=(0, 1))
    >>> m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    >>> m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * u <= 0.5)
    >>> osilp.solve(m).price(0.3)
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.PriceError: The price of 'row' sits on 1 single points and has no density; see price.atoms, or
    price.smooth(width) for a density.
    """


class ExecutorError(OsilpError, RuntimeError):
    """A process that ran trials of a study died.

    Start the work of a script under ``if __name__ == '__main__':``; with ``path=`` finished trials are kept, and the
    same call goes on with the others.

    Examples
    --------
    >>> issubclass(ExecutorError, RuntimeError)
    True
    """


class MissingPackageError(OsilpError, ImportError):
    """Something optional was asked for, and the package that it needs is not installed.

    Install the extra that the text names, such as ``pip install 'osilp-pyomo[plot]'``.

    Examples
    --------
    >>> issubclass(MissingPackageError, ImportError)
    True
    """


class NoSolutionError(OsilpError, RuntimeError):
    """Values were asked of a result that has none.

    Look at ``result.status`` first; an infeasible model has no values, and ``print(result)`` says what conflicts if
    that is known.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(bounds=(0, 1))
    >>> m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    >>> m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * u <= 0.5)
    >>> m.much = pyo.Constraint(expr=m.x >= 0.8)
    >>> osilp.solve(m).values
    Traceback (most recent call last):
    ...
    osilp_pyomo.errors.NoSolutionError: The result has no values: the exchange method ended with status 'infeasible';
    result.conflict says what cannot hold together.
    """


class SolverError(OsilpError, RuntimeError):
    """HiGHS, or the solver of a stage, ended in a way that gives no answer.

    Look for coefficients that are not finite or beyond 1e15, and for a stage whose own rows contradict each other.

    Examples
    --------
    >>> issubclass(SolverError, RuntimeError)
    True
    """


class SamplingWarning(UserWarning):
    """A rule could not be traced and is called at every point instead.

    Write it with Pyomo functions of the index (``pyo.exp`` instead of ``math.exp``, ``pyo.Expr_if`` instead of ``if``),
    or declare ``sample=True``, which is silent.

    Examples
    --------
    >>> import warnings
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var(bounds=(0, 1))
    >>> m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= (1 if u < 0.5 else 2))
    >>> print(caught[0].category.__name__)
    SamplingWarning
    """


class ChangedRuleWarning(UserWarning):
    """A rule gives another row than when it was declared; the text says which is used.

    Let rules read mutable Params instead of numbers that change later.

    Examples
    --------
    >>> issubclass(ChangedRuleWarning, UserWarning)
    True
    """


class HorizonWarning(UserWarning):
    """More arrivals came than were expected; a controller goes on at its last price, on what is left.

    Tell it by ``revise(horizon=...)`` how many will come, or make it with ``beyond='error'`` to have them refused.

    Examples
    --------
    >>> issubclass(HorizonWarning, UserWarning)
    True
    """


class OtherSetWarning(UserWarning):
    """A decision that is a function of one uncertainty set is used over another set of the same dimension.

    Two sets are the same if their kind and their numbers are. Declare the function and the row over the same set.

    Examples
    --------
    >>> issubclass(OtherSetWarning, UserWarning)
    True
    """


class AccuracyWarning(UserWarning):
    """An answer is less accurate than was asked for; the text says by how much.

    Bring coefficients to similar sizes, or choose other units; the result's status is "inaccurate".

    Examples
    --------
    >>> issubclass(AccuracyWarning, UserWarning)
    True
    """
