"""``SolverFactory("osilp")``: one solver, registered once with the factories of today and of older scripts."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyomo.common.collections import Bunch
from pyomo.common.enums import SolverAPIVersion
from pyomo.common.timing import HierarchicalTimer
from pyomo.contrib.solver.common.base import Availability, SolverBase
from pyomo.contrib.solver.common.factory import SolverFactory
from pyomo.contrib.solver.common.results import SolutionStatus
from pyomo.contrib.solver.common.util import NoFeasibleSolutionError, NoOptimalSolutionError

from osilp_pyomo._files import write_text_at_once
from osilp_pyomo._options import SOLVERS
from osilp_pyomo.errors import OptionError
from osilp_pyomo.plugins.options import NAMES, RENAMED, OsilpConfig, refuse_unknown
from osilp_pyomo.plugins.results import VERSION, OsilpResults, why_not_optimal

#: The log of a solve in ``working_dir``.
LOG_FILE = "osilp.log"
# Arguments of Pyomo's older solvers that mean nothing where no file is written.
_NO_FILES = ("symbolic_solver_labels", "file_determinism")
_ANOTHER = "to use another solver, hand it the rows of TransformationFactory('osilp.discretize')"
# Those that cannot be followed, and what to do instead.
_REFUSED = {
    "solver_io": f"no other program lies behind it; leave it out, or, {_ANOTHER}",
    "executable": f"no other program lies behind it; leave it out, or, {_ANOTHER}",
    "solver": f"no other program lies behind it; leave it out, or, {_ANOTHER}",
    "solnfile": "no file is read; write the values by results.result.values.to_csv(path)",
    "warmstart": "values that variables have are not used as a start; leave it out",
    "writer_config": "no file is written; leave it out",
}
# Every option, ours first.
_KNOWN = (*NAMES, *(name for name in OsilpConfig() if name not in NAMES))


class OsilpSolver(SolverBase):
    """:func:`osilp_pyomo.solve` as a solver of ``pyomo.contrib.solver``, and of ``pyo.SolverFactory``.

    The options are those of :func:`osilp_pyomo.solve`, with ``load_solutions`` for ``load``, and those that every
    solver of Pyomo has. ``solver_options`` may hold the same options by name.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.contrib.solver.common.factory import SolverFactory
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var()
    >>> m.height = pyo.Objective(expr=m.x)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def above(m, u):
    ...     return m.x >= 4 * u * (1 - u)
    >>> results = SolverFactory("osilp").solve(m, tolerance=1e-8, time_limit=60)
    >>> print(results.solution_status, round(results.incumbent_objective, 6), round(m.x.value, 6))
    SolutionStatus.optimal 1.0 1.0
    >>> solver = OsilpSolver(method="projected")
    >>> print(solver.available(), solver.version(), solver.is_persistent())
    FullLicense (0, 1, 0) False
    """

    CONFIG = OsilpConfig()

    def __init__(self, **options: Any) -> None:
        refuse_unknown(set(options) - {"name"}, _KNOWN, "SolverFactory('osilp')")
        super().__init__(**options)

    def available(self) -> Availability:
        """HiGHS is installed with this package, so it always is."""
        return Availability.FullLicense

    def version(self) -> tuple[int, ...]:
        """Version of this package."""
        return VERSION

    def solve(self, model: Any, **options: Any) -> OsilpResults:
        """Solve a model; what is not optimal is an error, if not ``raise_exception_on_nonoptimal_result=False``."""
        where = "SolverFactory('osilp').solve"
        refuse_unknown(options, _KNOWN, where)
        config = _configured(self.config, options, where)
        results = solve_as_told(model, config, where)
        if config.raise_exception_on_nonoptimal_result and results.solution_status != SolutionStatus.optimal:
            raise NoOptimalSolutionError(why_not_optimal(results))
        if config.load_solutions:
            if results.result.answer is None:
                raise NoFeasibleSolutionError(
                    f"The {results.result.method} method ended with status '{results.result.status}', and there are no "
                    "values to load. With load_solutions=False the results come back."
                )
            results.solution_loader.load_solution()
        return results


def _configured(config: OsilpConfig, options: Mapping[str, Any], where: str) -> OsilpConfig:
    """A configuration with options in it; one that Pyomo cannot read is refused in our words."""
    for name, value in options.items():
        try:
            config(value={name: value})
        except ValueError:
            raise OptionError(f"{where}: {name} cannot be {value!r}; {config.get(name)._description}") from None
    return config(value=dict(options))


def solve_as_told(model: Any, config: OsilpConfig, where: str) -> OsilpResults:
    """Solve a model by a configuration, without loading anything into it."""
    from osilp_pyomo.api import solve

    chosen = {name: config.get(name).value() for name in NAMES}
    for name, value in config.solver_options.items():
        refuse_unknown([name], NAMES, f"{where}: solver_options")
        if chosen[name] != OsilpSolver.CONFIG.get(name).value() and chosen[name] != value:
            raise OptionError(
                f"{where}: {name} is {chosen[name]!r}, and {value!r} among the solver options; give it once."
            )
        chosen[name] = value
    if config.threads not in (None, 0, 1):
        raise OptionError(
            f"{where}: threads must be 1 (got {config.threads!r}); a program is solved in one thread, so that its "
            "answer is the same everywhere."
        )
    arguments = {name: value for name, value in chosen.items() if name != RENAMED["load"]}
    timer = HierarchicalTimer() if config.timer is None else config.timer
    started = datetime.now(UTC)
    timer.start("osilp")
    try:
        result = solve(model, **arguments, load=False)
    finally:
        timer.stop("osilp")
    results = OsilpResults(model, result, config, started, timer)
    if config.working_dir is not None:
        write_text_at_once(Path(config.working_dir) / LOG_FILE, results.solver_log)
    return results


class LegacyOsilpSolver:
    """``pyo.SolverFactory("osilp")``: :func:`osilp_pyomo.solve` for scripts that know Pyomo's older solvers.

    It understands what such scripts pass (``timelimit``, ``options``, ``tee``, ``keepfiles``, ``logfile``,
    ``suffixes``, ``symbolic_solver_labels``, ``report_timing``), and refuses by name what it cannot follow. What is not
    optimal is no error, if not ``raise_exception_on_nonoptimal_result=True``.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var()
    >>> m.height = pyo.Objective(expr=m.x)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def above(m, u):
    ...     return m.x >= 4 * u * (1 - u)
    >>> with pyo.SolverFactory("osilp", tolerance=1e-8) as solver:
    ...     solver.options["timelimit"] = 60
    ...     results = solver.solve(m)
    >>> solver.available(), solver.license_is_valid(), solver.version()
    (True, True, (0, 1, 0))
    >>> pyo.check_optimal_termination(results), round(pyo.value(m.x), 6)
    (True, 1.0)
    """

    name = "osilp"
    CONFIG = OsilpSolver.CONFIG

    def __init__(self, **options: Any) -> None:
        # A factory of older solvers makes of an error here a solver that nobody knows; so it is told when solving.
        self.options = Bunch(**options.pop("options", {}) or {})
        self._given = options

    def __enter__(self) -> LegacyOsilpSolver:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held open."""

    @classmethod
    def api_version(cls) -> SolverAPIVersion:
        """The interface of Pyomo's older solvers."""
        return SolverAPIVersion.V1

    def available(self, exception_flag: bool = True) -> bool:
        """HiGHS is installed with this package, so it always is."""
        return True

    def license_is_valid(self) -> bool:
        """No licence is needed."""
        return True

    def version(self) -> tuple[int, ...]:
        """Version of this package."""
        return VERSION

    def warm_start_capable(self) -> bool:
        """Values of variables are not used."""
        return False

    def default_variable_value(self) -> None:
        """Every variable gets a value of its own."""

    def config_block(self, init: bool = False) -> Any:
        """What ``pyomo solve`` can be told."""
        from pyomo.scripting.solve_config import default_config_block

        return default_config_block(self, init)[0]

    def set_options(self, options: Any) -> None:
        """Take options as ``pyomo solve`` gives them: a text like "method=exchange tolerance=1e-8", or a mapping."""
        self.options.update(_read(options))

    def solve(self, model: Any, **options: Any) -> OsilpResults:
        """Solve a model; the options are those of :func:`osilp_pyomo.solve`, ``load_solutions`` for ``load``."""
        where = "SolverFactory('osilp').solve"
        asked = {**self._given, **options}
        named = {**_read(self.options), **_read(asked.pop("options", None)), **_read(asked.pop("solver_options", None))}
        asked = {**_under_our_names(named, where), **_under_our_names(asked, where)}
        report_timing = asked.pop("report_timing", False)
        logfile = asked.pop("logfile", None)
        _check_suffixes(model, asked.pop("suffixes", None), where)
        refuse_unknown(set(asked) - set(self.CONFIG), NAMES, where)
        # As with older solvers: whoever calls looks at the status.
        config = _configured(self.CONFIG, {"raise_exception_on_nonoptimal_result": False, **asked}, where)
        results = solve_as_told(model, config, where)
        if logfile is not None:
            write_text_at_once(logfile, results.solver_log)
        if report_timing:
            print(results.timing_info.timer)
        if config.raise_exception_on_nonoptimal_result and results.solution_status != SolutionStatus.optimal:
            raise NoOptimalSolutionError(why_not_optimal(results))
        if config.load_solutions and results.result.answer is not None:
            results.solution_loader.load_solution()
        return results


# One registration, for both factories.
SolverFactory.register("osilp", doc="Semi-infinite linear and convex programs, exact over the continuum")(
    OsilpSolver, LegacyOsilpSolver
)


def _read(options: Any) -> dict[str, Any]:
    """Options from a mapping or from a text, without those that say nothing."""
    if options is None:
        return {}
    if isinstance(options, str):
        pairs = [each.partition("=") for each in options.split()]
        broken = [name for name, equals, _ in pairs if not equals]
        if broken:
            raise OptionError(
                f"SolverFactory('osilp'): options {options!r} cannot be read; write them like "
                "'method=exchange tolerance=1e-8', without spaces inside."
            )
        return {name: _literal(text) for name, _, text in pairs}
    if not isinstance(options, Mapping):
        raise OptionError(
            "SolverFactory('osilp'): options must be a dict, or a text like 'method=exchange tolerance=1e-8' "
            f"(got {type(options).__name__})."
        )
    plain = options.value() if hasattr(options, "value") and not isinstance(options, Bunch) else options
    return {
        name: _literal(value) if isinstance(value, str) else value for name, value in plain.items() if value is not None
    }


def _literal(text: str) -> Any:
    """A number or truth value that is written as a text, else the text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _under_our_names(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Arguments of Pyomo's older solvers under the names of today; what cannot be followed is refused by its name."""
    asked = dict(given)
    for name, why in _REFUSED.items():
        # "solver" is an option of solve as well, which says how the LPs are solved.
        if name == "solver" and asked.get(name) in SOLVERS:
            continue
        value = asked.pop(name, None)
        if value is not None and value is not False:
            raise OptionError(f"{where}: {name}={value!r} cannot be followed: {why}.")
    for name in _NO_FILES:
        asked.pop(name, None)
    if "timelimit" in asked:
        limit = asked.pop("timelimit")
        if limit is not None:
            ours = asked.get("time_limit", limit)
            if ours != limit:
                raise OptionError(
                    f"{where}: timelimit={limit!r} and time_limit={ours!r} are the same option; give one."
                )
            asked["time_limit"] = limit
    if asked.pop("keepfiles", False):
        asked.setdefault("working_dir", ".")
    return asked


def _check_suffixes(model: Any, names: Any, where: str) -> None:
    """Refuse names of Suffixes that would stay empty."""
    for name in names or ():
        if name not in ("dual", "rc"):
            raise OptionError(f"{where}: suffixes may be 'dual' and 'rc' (got {name!r}).")
        if model.component(name) is None:
            raise OptionError(
                f"{where}: suffixes={list(names)!r} needs a place for the numbers: declare "
                f"m.{name} = pyo.Suffix(direction=pyo.Suffix.IMPORT), which is then filled by every solve."
            )
