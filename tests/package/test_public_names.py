"""The list of public names is what the package offers, and each explains itself by an example that runs.

The examples are run as doctests of their modules.
"""

import inspect
import re
from types import ModuleType

import pytest

import osilp_pyomo as osilp
from osilp_pyomo.offline.prices import AtomicPrice, DensityPrice

PUBLIC = {
    "AccelerateThenRefine", "FixedPrice", "GradientDescent", "Greedy", "MirrorDescent", "OnlineProgram", "Policy",
    "Potential", "Resolve", "SimpleGD", "Study", "StudyInterrupted", "compare", "compile_online", "displays", "load_controller",
    "load_study", "testing", "BSpline", "Bernstein", "Chebyshev", "Dirac", "Functions", "GaussLegendre", "Hat", "Indicator", "Midpoint", "Points",
    "Profile", "RBF", "Random", "Result", "SemiInfiniteConstraint", "Sobol", "Tensor", "__version__", "errors", "plugins",
    "solve", "array", "dot", "integral", "expectation", "robustify", "dro", "scenario", "sets", "Cells", "Chunks", "Extremes", "evaluate_rows", "plot_rows",
    "plot_sweep",
    "Controller", "Decision", "ExperienceReplay", "Forecast", "FunctionVar", "Price", "RecourseBound", "Regret", "Run",
    "check_units", "worst_case", "recourse_bound", "compare_plans", "to_latex", "PersistentSolver", "sweep",
}  # fmt: skip
MODULES = {
    "displays": {
        "BracketDisplay", "BudgetDisplay", "LossDisplay", "OverrunDisplay", "PriceDisplay", "RegretDisplay",
        "RewardDisplay", "RowsDisplay", "ViolationDisplay",
    },
    "dro": {
        "Ambiguity", "Mixture", "Moments", "Reweighting", "SumOfMaxima", "Wasserstein", "worst_case_cvar", "worst_case_distribution",
        "worst_case_expectation", "worst_case_probability",
    },
    "errors": {
        "AccuracyWarning", "BasisError", "ChangedRuleWarning", "CurvatureError", "DataError", "DeclarationError",
        "DomainError", "ExecutorError", "GridError", "HorizonError", "HorizonWarning", "MissingPackageError", "ModelError",
        "NoSolutionError", "NotConvexError", "NotLinearError", "OptionError", "OsilpError", "OtherSetWarning", "PriceError",
        "SamplingWarning",
        "SavedStateError", "SolverError", "UnitsError", "UntransformedModelError",
    },
    "plugins": {"Discretize", "LegacyOsilpSolver", "OsilpResults", "OsilpSolver", "Project"},
    "scenario": {"Scenarios", "binding_scenarios", "scenarios_needed", "violation_bound"},
    "sets": {"Held", "check", "from_data"},
    "testing": {"PolicyContractError", "check_policy"},
}  # fmt: skip
# What these classes offer is what users work with; the methods of others are told by what they override.
CLASSES = [osilp.Result, osilp.OnlineProgram, osilp.Controller, osilp.Run, osilp.Study, AtomicPrice, DensityPrice]
# For other parts of the package, not for users.
INNER = {
    "Result": {"policy", "load_into", "recourse", "solution", "solved_for", "written"},
    "Controller": {
        "begin_at",
        "meet",
        "resume",
        "timed",
        "time_columns",
        "knows_use_at_points",
        "point_remaining",
        "projected_remaining",
    },
    "Run": {"anew", "arrivals", "decided", "evaluator"},
}


def everything():
    for name in sorted(PUBLIC - {"__version__"}):
        thing = getattr(osilp, name)
        if isinstance(thing, ModuleType):
            for inner in sorted(MODULES[name]):
                yield f"{name}.{inner}", getattr(thing, inner)
        else:
            yield name, thing


THINGS = dict(everything())


def test_the_lists_are_kept():
    assert set(osilp.__all__) == set(dir(osilp)) == PUBLIC
    modules = {
        name: set(getattr(osilp, name).__all__) for name in PUBLIC if isinstance(getattr(osilp, name), ModuleType)
    }
    assert modules == MODULES


@pytest.mark.parametrize("name", THINGS)
def test_every_name_has_an_example_that_runs(name):
    assert ">>>" in (inspect.getdoc(THINGS[name]) or "")


# Made by functions of the package, not by users.
MADE = {
    "Controller", "Decision", "OnlineProgram", "Price", "RecourseBound", "Regret", "Result", "Run", "Study", "StudyInterrupted", "dro.Ambiguity",
    "testing.PolicyContractError",
}  # fmt: skip
CALLED = [name for name in THINGS if name not in MADE and not name.startswith(("errors.", "displays.", "plugins."))]


@pytest.mark.parametrize("name", CALLED)
def test_every_parameter_is_explained(name):
    thing = THINGS[name]
    text = inspect.getdoc(thing)
    for name_of_one in inspect.signature(thing).parameters:
        entry = rf"^\*{{0,2}}([\w, *]*, )?{name_of_one}(,[\w, *]*)?( :.*)?$"
        assert name_of_one in ("args", "kwds") or re.search(entry, text, re.MULTILINE), name_of_one


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_method_is_explained_and_shown_at_work(kind):
    lines = [line for line in inspect.getdoc(kind).splitlines() if line.startswith((">>>", "..."))]
    for name, part in vars(kind).items():
        if name.startswith("_") or name in INNER.get(kind.__name__, ()):
            continue
        assert inspect.getdoc(getattr(kind, name)), name
        if inspect.isfunction(part):
            own = inspect.getdoc(part)
            assert ">>>" in own or any(f".{name}(" in line for line in lines), name
