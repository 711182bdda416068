"""Options declared once: what each is called, its default, what it may be, and what it means.

From :data:`SOLVE` are made the documentation of ``solve``, the configuration of ``SolverFactory("osilp")`` and the
options of ``osilp solve``; other functions check theirs by the same entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from textwrap import indent, wrap
from typing import Any, TypeVar

from osilp_pyomo.errors import OptionError

#: Offline methods.
METHODS = ("auto", "exchange", "counterpart", "discretized", "projected", "column_generation")
#: How an LP is solved: by what is expected to be faster, by its dual in as many dimensions as rows, or by HiGHS whole.
AUTO, DUAL, HIGHS = ("auto", "dual", "highs")
#: Solvers of HiGHS that begin an LP; its simplex ends it.
ENGINES = ("ipm", "hipo", "pdlp")
SOLVERS = (AUTO, DUAL, HIGHS, *ENGINES)

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """One option; ``rule`` completes "must be ...", and is empty where the value is checked by whoever uses it.

    ``way`` is what helps somebody who wanted something else.
    """

    name: str
    default: Any
    kind: str
    sentence: str
    rule: str = ""
    allows: Callable[[Any], bool] = lambda _: True
    choices: tuple[str, ...] = ()
    way: str = ""

    def check(self, value: Any, where: str) -> None:
        """Refuse a value that breaks the rule, in the words of whoever was called."""
        if not self.allows(value):
            raise OptionError(
                f"{where}: {self.name} must be {self.rule} (got {value!r}){self.way and f'; {self.way}'}."
            )

    @property
    def documentation(self) -> str:
        """The option as an entry of a numpydoc section."""
        return f"{self.name} : {self.kind}\n" + indent("\n".join(wrap(self.sentence, 108)), "    ")


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _choice(
    name: str, default: str, choices: tuple[str, ...], sentence: str, *, quoted: bool = True, way: str = ""
) -> Option:
    """An option with a few values; ``quoted`` says how its rule lists them."""
    listed = ", ".join(map(repr, choices) if quoted else choices)
    kind = ", ".join(f'"{each}"' for each in choices[:-1]) + f' or "{choices[-1]}"'
    return Option(
        name,
        default,
        kind,
        sentence,
        f"one of {listed}",
        lambda value: isinstance(value, str) and value in choices,
        choices,
        way,
    )


METHOD = _choice(
    "method",
    "auto",
    METHODS,
    "By what fits the rows, as ``result.why`` tells; by exchange, exact over the continuum with a bracket; as the "
    "finite program, linear or with cones, that duality makes of rows affine in an uncertain vector of a convex set; "
    "on the points of a grid, or on test functions, which give bounds; or by column generation, which finds the best "
    "of all policies, and no formula of it, where every FunctionVar sees everything and the set has few vertices.",
    quoted=False,
)
GRID = Option(
    "grid",
    None,
    "Grid, array of points, or {component: grid}",
    'For "discretized" and "projected"; a few thousand points if not given.',
)
BASIS = Option(
    "basis",
    None,
    "Basis, list of functions, or {component: basis}",
    'For "projected"; hat functions if not given.',
)
TIME_LIMIT = Option(
    "time_limit",
    None,
    "float, optional",
    "Seconds after which to stop early; the status then says so.",
    "a number of seconds > 0",
    lambda value: value is None or (_is_real(value) and float(value) > 0),
)
SOLVER = _choice(
    "solver",
    AUTO,
    SOLVERS,
    "How the LPs are solved: by what is expected to be faster, by the dual in as many dimensions as there are rows "
    "(for thousands of bounded, continuous columns), or by HiGHS with all columns: by its simplex, or begun by its "
    "interior point method, by HiPO (which needs highspy-extras) or by PDLP, and ended by the simplex. They agree to "
    "1e-8.",
    way="another solver of Pyomo takes the rows that TransformationFactory('osilp.discretize') writes",
)
PROOF = Option(
    "proof",
    AUTO,
    '"auto", True or False',
    "Whether to prove that the rows hold over their whole index: within a budget of boxes, which is about the time of "
    "the solve; with a budget two hundred times as large; or not at all: then only rows with a closed form are "
    "certified.",
    "'auto', True or False",
    lambda value: value is True or value is False or (isinstance(value, str) and value == AUTO),
)
SEED = Option(
    "seed", 0, "int", "Same seed, same numbers.", "a whole number >= 0", lambda value: _is_whole(value, least=0)
)
#: The options of ``solve``, in their order.
SOLVE = (
    METHOD,
    GRID,
    BASIS,
    Option(
        "tolerance",
        1e-9,
        "float",
        "Violation that counts as none, relative to the size of the row's terms.",
        "a number between 0 and 1",
        lambda value: _is_real(value) and 0 < float(value) < 1,
    ),
    Option(
        "iteration_limit",
        500,
        "int",
        "Iterations of exchange after which to stop early; the status then says so.",
        "a whole number >= 1",
        lambda value: _is_whole(value, least=1),
    ),
    TIME_LIMIT,
    Option(
        "fix_integers",
        False,
        "bool",
        "For models with integer variables: give prices with the integers held at their values.",
    ),
    SOLVER,
    PROOF,
    Option("load", True, "bool", "Put the values into the model."),
    Option("tee", False, "bool", "Print the iterations."),
    Option(
        "progress",
        True,
        "bool",
        "Show progress: a bar where it takes more than two seconds; in a log a line each half minute.",
    ),
)


def check_options(options: Iterable[Option], values: dict[str, Any], where: str) -> None:
    """Check the value of each option."""
    for option in options:
        option.check(values[option.name], where)


def documented_by(options: Iterable[Option]) -> Callable[[_Function], _Function]:
    """Put the entries of options where a function's docstring says ``{options}``."""

    def document(function: _Function) -> _Function:
        entries = "\n".join(option.documentation for option in options)
        function.__doc__ = (function.__doc__ or "").replace("    {options}", indent(entries, "    "))
        return function

    return document


#: The largest whole number that can be asked for: what a float still counts.
MOST = 2**53


def whole_number(value: Any, name: str, least: int = 1) -> int:
    """A whole number that was asked for by name."""
    if not _is_whole(value, least):
        raise OptionError(f"{name} must be a whole number >= {least} (got {shown_number(value)}).")
    if value > MOST:
        raise OptionError(f"{name} must be at most {MOST}, which is as far as is counted (got {shown_number(value)}).")
    return int(value)


def shown_number(value: Any) -> str:
    """A value as messages show it: of a whole number that fills lines only how long it is."""
    if isinstance(value, int) and abs(value) > 10**30:
        return f"a whole number of about {value.bit_length() * math.log10(2):.0f} digits"
    return repr(value)
