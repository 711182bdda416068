"""Results: what a solve gives back, in the user's own names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._displays import Shown, draw, some_of
from osilp_pyomo.errors import ModelError, NoSolutionError, PriceError
from osilp_pyomo.offline.adjustable.column_generation import BestPolicy
from osilp_pyomo.offline.audit import Audit
from osilp_pyomo.offline.functions.simulation import Recourse
from osilp_pyomo.offline.late import Late
from osilp_pyomo.offline.prices import Price
from osilp_pyomo.offline.result_text import text_of
from osilp_pyomo.offline.units import Units

T = TypeVar("T")

# Columns of a conflict, and which of them are numbers.
CONFLICT = {"kind": False, "name": False, "place": False, "side": False, "limit": True, "weight": True}

# Columns of a proof.
PROOF = ("how", "largest", "boxes", "seconds", "open")

# Columns of what is told of integrals.
INTEGRALS = ("integral", "error", "size", "place", "points")

# A relative violation that still counts as feasible, as solvers of finite LPs count it.
FEASIBLE = 1e-6


class FamilyMap(Shown, Mapping[str, T], Generic[T]):
    """Something for each family of semi-infinite rows, by name or by component.

    Examples
    --------
    >>> FamilyMap({"c[a]": 1, "c[b]": 2})["c[b]"]
    2
    """

    card = "by family"

    def __init__(self, entries: Mapping[str, T]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, key: Any) -> T:
        name = key if isinstance(key, str) else getattr(key, "name", None)
        if name in self._entries:
            return self._entries[name]
        raise KeyError(f"{key} is no family of this result; it has {', '.join(self._entries)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return "\n".join(some_of(list(self._entries.items()), lambda entry: f"{entry[0]}: {entry[1]!r}"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        first = next(iter(self), None)
        if first is None or not hasattr(self[first], name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        raise AttributeError(
            f"There are several families ({', '.join(self)}), each with its own; choose one first, such as "
            f"[{first!r}].{name}."
        )

    def bare(self) -> Any:
        """The one entry where there is a single family, else the map."""
        return next(iter(self._entries.values())) if len(self._entries) == 1 else self


def _nothing() -> None:
    return None


@dataclass(frozen=True, eq=False)
class Answer:
    """The point of a :class:`Result` that has one; see there for what each part means."""

    audit: Audit
    violation: FamilyMap[float]
    relative_violation: FamilyMap[float]
    worst_index: FamilyMap[Any]
    price: FamilyMap[Price] | None
    repaired: bool
    test_violation: float
    proved: bool = False
    bound_proved: bool = False
    optimism: float = 0.0
    reasons: tuple[str, ...] = ()
    matched_duals: Mapping[str, pd.Series] = field(default_factory=dict)
    values: Late[pd.Series | None] = Late(_nothing)  # noqa: RUF009
    duals: Late[pd.Series | None] = Late(_nothing)  # noqa: RUF009
    reduced_costs: Late[pd.Series | None] = Late(_nothing)  # noqa: RUF009
    proof: Late[pd.DataFrame] = Late(partial(pd.DataFrame, columns=list(PROOF)))  # noqa: RUF009


@dataclass(frozen=True, eq=False)
class Result(Shown):
    """What :func:`osilp_pyomo.solve` gives back.

    Attributes
    ----------
    method, status, sense : str
        Status is "optimal", "infeasible" (rows that contradict each other are in ``conflict``; of a model with integers
        HiGHS says so), "unbounded" (a ray is proved to keep every row over its whole index),
        "infeasible_or_unbounded", "undecided" (it seems so, and nothing proves it), "time_limit", "iteration_limit" or
        "solver_error" (the last good iteration before numerical trouble), and "inaccurate" where audit or bracket
        are wider than 1e-6. It is that of the problem the method solves: a discretized or projected optimum is a
        bound of the semi-infinite one.
    objective, bound : float
        Objective of the values, and what no feasible point can beat.
    log : DataFrame
        Iterations of exchange: bound, violation, rows in the LP, rows added, seconds, and how often so far HiGHS met
        numerical trouble and was restarted (without scaling, then by its interior point method).
    rows : int
        Semi-infinite rows in the last LP.
    memory : int
        Bytes of the arrays held at a time, HiGHS' own copy of its rows included.
    seconds : float
        Time from the model to the answer.
    routes : dict
        For each family whether its rule was "traced" or "sampled".
    separation : dict
        For each family how exchange found its most violated row: in "closed form", by a "linear program", a "convex
        program" or "enumeration", for "concave rows" by a local search that is global, all of them exact; or by a
        "search", which finds what a scan and local search from its peaks can find.
    indices : dict
        For each family the names of its index.
    conflict : DataFrame
        For status "infeasible": rows with where they hold, ordinary constraints and bounds that no values satisfy
        together, in general so few that none can be left out, and the weights with which their sum contradicts itself.
        Empty where none was found: because whole numbers make it infeasible, no finite number of rows does, the LP is
        very large (above two million coefficients), time ran out, or stages are convex or arrivals come in chunks.
    written : Path or None
        Where the decisions of arrivals in chunks were written.
    solved_for : Identity or ModelIdentity or None
        What was solved, by which a regret knows it again.
    why : str
        Why this method, in one sentence.
    integrals : DataFrame
        One line for each integral or expectation in the model: an estimate of its error, its size (the integral of the
        absolute value), where the estimate is largest, and how many values were taken. What is said of the rest, the
        bracket included, is meant for the numbers that were computed for them.
    used_by : dict
        For each Block of rows that was written for a worst case the constraints and the objective that use its value.
    added : frozenset of str
        Variables that a transformation of this package added to the user's model; loading into that passes over them.
    nominal : dict
        Of a model made by :func:`robustify`: what decision rules decide at the nominal data, by the name of the
        variable whose place they took; loading puts it there.
    fixed : dict
        The numbers of the variables that were fixed in the model, by name.
    remark : str
        What one should know beside the numbers: that there is no objective, or why no conflict is told.
    units : Units
        Units of the objective, rows, prices and index as texts, of a model that has some.
    equations : dict
        For each row that is an equation at every point how it holds, "matched" or "collocated".

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.x = pyo.Var()
    >>> m.low = pyo.Constraint(expr=m.x <= 5)
    >>> m.height = pyo.Objective(expr=m.x)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def above(m, u):
    ...     return m.x >= 4 * u * (1 - u)
    >>> result = osilp.solve(m, load=False)
    >>> result.status, result.certified, result.feasible, result.gap < 1e-6
    ('optimal', True, True, True)
    >>> round(result.objective, 6), round(result.worst_index, 4)
    (1.0, 0.5)
    >>> result.values.round(6).to_dict(), result.dual(m.low)
    ({'x': 1.0}, 0.0)
    >>> result.price.atoms.round(4)
         u  weight
    0  0.5     1.0
    >>> figure = result.plot()  # of an infeasible model: what conflicts
    >>> result.load(m)  # put the values into this model, or a clone of it
    >>> round(m.x.value, 6)
    1.0
    """

    card = "result"

    method: str
    status: str
    sense: str
    objective: float
    bound: float
    rows: int
    memory: int
    seconds: float
    routes: Mapping[str, str]
    answer: Answer | None
    log: Late[pd.DataFrame] = Late(pd.DataFrame)  # noqa: RUF009
    separation: Mapping[str, str] = field(default_factory=dict)
    indices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    conflict: Late[pd.DataFrame] = Late(partial(pd.DataFrame, columns=list(CONFLICT)))  # noqa: RUF009
    written: Path | None = None
    solved_for: Any = None
    remark: str = ""
    why: str = ""
    integrals: Late[pd.DataFrame] = Late(partial(pd.DataFrame, columns=list(INTEGRALS)))  # noqa: RUF009
    used_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    added: frozenset[str] = frozenset()
    nominal: Mapping[str, float] = field(default_factory=dict)
    equations: dict[str, str] = field(default_factory=dict)
    units: Units = Units()  # noqa: RUF009
    recourse: Recourse | None = None
    policy: BestPolicy | None = None
    solution: FloatArray | None = None
    fixed: Mapping[str, float] = field(default_factory=dict)

    def _answer(self, wanted: str) -> Answer:
        if self.answer is None:
            why = "; result.conflict says what cannot hold together" if len(self.conflict) else ""
            raise NoSolutionError(
                f"The result has no {wanted}: the {self.method} method ended with status '{self.status}'{why}."
            )
        return self.answer

    def _dual_part(self, part: str) -> Any:
        found = getattr(self._answer("prices"), part)
        if found is None:
            raise PriceError(
                "A model with integer variables has no prices; solve with fix_integers=True (and time enough) for "
                "those at the integers found."
            )
        return found

    @property
    def values(self) -> pd.Series:
        """Value of each variable, by name."""
        return self._kept(self._answer("values").values, "values")

    def _kept(self, part: pd.Series | None, name: str) -> pd.Series:
        if part is None:
            where = "give write= a file for the decisions" if self.written is None else f"read '{self.written}'"
            raise NoSolutionError(f"The result of arrivals in chunks holds no {name} in memory; {where}.")
        return part

    @property
    def price(self) -> Any:
        """Shadow price as a measure on the index; by family where there are several."""
        return self._dual_part("price").bare()

    @property
    def prices(self) -> FamilyMap[Price]:
        """Shadow prices by family, also where there is one only."""
        found: FamilyMap[Price] = self._dual_part("price")
        return found

    @property
    def duals(self) -> pd.Series:
        """Dual of each ordinary constraint by name, d objective / d right-hand side."""
        return self._dual_part("duals")

    @property
    def reduced_costs(self) -> pd.Series:
        """Reduced cost of each variable, by name."""
        if self.answer is not None and self.answer.values is None:
            return self._kept(None, "reduced costs")
        return self._dual_part("reduced_costs")

    @property
    def violation(self) -> Any:
        """Largest violation found anywhere on the index; by family where there are several."""
        return self._answer("violation").violation.bare()

    @property
    def relative_violation(self) -> Any:
        """Largest violation found, each divided by ``max(|b(u)|, median of |b|)``."""
        return self._answer("violation").relative_violation.bare()

    @property
    def worst_index(self) -> Any:
        """Where the row is most violated, or tightest; by family where there are several."""
        return self._answer("worst index").worst_index.bare()

    @property
    def test_violation(self) -> float:
        """Largest violation against a test function, the paper's measure (projected; else nan)."""
        return self._answer("violation").test_violation

    @property
    def audit(self) -> Audit:
        """What code that did not compute the answer found."""
        return self._answer("audit").audit

    @property
    def gap(self) -> float:
        """Width of the bracket; infinite where no feasible point is known."""
        low, high = self.bracket
        return high - low

    @property
    def bracket(self) -> tuple[float, float]:
        """Objective and bound in increasing order; the optimum lies between them if ``certified``.

        Where the values are no feasible point, because rows hold at grid points or on test functions only or because
        exchange was stopped early, all that is known is the bound: the other end is infinite.
        """
        if self.reached:
            return (min(self.objective, self.bound), max(self.objective, self.bound))
        if self.sense == "maximize":
            return (-np.inf, np.inf if np.isnan(self.bound) else self.bound)
        return (-np.inf if np.isnan(self.bound) else self.bound, np.inf)

    @property
    def reached(self) -> bool:
        """Whether the objective is that of a point of the semi-infinite problem."""
        if self.answer is None:
            return False
        ended = self.status in ("optimal", "inaccurate") or self.certified
        return ended and (self.method in ("exchange", "counterpart") or self.certified)

    @property
    def certified(self) -> bool:
        """Whether it is proved that the values keep every row over its whole index, and that the bound is one.

        Then the optimum lies in the bracket, up to a millionth of ``1 + |objective|``. "Keep" means up to a millionth
        of the size that the row has at most points of its index, and in general up to a hundred-millionth: ``proof``
        has the figure. Between two neighbouring floating-point numbers of an index nothing is looked for. The bound of
        a model with integer variables is what HiGHS' branch and bound says it is.
        """
        found = self.answer
        if found is None or self.status == "inaccurate":
            return False
        # Where no point with room is known, a violation that is tiny can be worth much.
        return found.proved and found.bound_proved and found.optimism <= FEASIBLE and self.feasible

    @property
    def proof(self) -> pd.DataFrame:
        """How surely the rows of each family hold: one line per family.

        ``how`` is "closed form" (the worst row is computed, by a formula or a linear program), "cone" (multipliers of
        a cone program bound the worst row from above), "concave" (a climb finds
        the highest point of a concave function), "sweep" (all pieces of a piecewise constant row were looked at),
        "enclosure" (interval bounds over boxes that cover the index), "search" or "grid" (no proof). ``largest`` is
        what no point of the index violates the row by (nan where nothing is proved), ``boxes`` and ``seconds`` what
        that took, and ``open`` a place near which it could not be decided.
        """
        return self._answer("proof").proof

    @property
    def feasible(self) -> bool:
        """Whether no row, ordinary constraint or bound is violated by more than 1e-6 of its own size at that point."""
        if self.answer is None:
            return False
        worst = max((look.scaled for look in self.audit.families), default=0.0)
        return max(worst, self.audit.ordinary_violation) <= FEASIBLE

    def dual(self, constraint: Any) -> Any:
        """Dual of an ordinary constraint, d objective / d right-hand side.

        Of an equation over an index a Series: one for each coefficient that was matched, or each point.
        """
        name = constraint if isinstance(constraint, str) else constraint.name
        duals, matched = self.duals, self._answer("duals").matched_duals
        if name in matched:
            return matched[name]
        if name not in duals.index:
            raise PriceError(
                f"'{name}' is no ordinary constraint of the solved model; semi-infinite ones have result.price."
            )
        return float(duals[name])

    def function(self, decision: Any) -> Any:
        """A decision that is a function, as one of numbers: call it, print it, plot it.

        Parameters
        ----------
        decision : member of a FunctionVar
            Such as ``m.order[3]``, or ``m.curve``; of an indexed FunctionVar as a whole a dict of functions comes back.

        Returns
        -------
        FunctionValue or dict

        Examples
        --------
        >>> import pyomo.environ as pyo
        >>> from pyomo.contrib.pyros import BoxSet
        >>> import osilp_pyomo as osilp
        >>> m = pyo.ConcreteModel()
        >>> m.y = osilp.FunctionVar(over=BoxSet([(0, 2)]))
        >>> m.cover = osilp.SemiInfiniteConstraint(BoxSet([(0, 2)]), rule=lambda m, xi: m.y(xi) >= 1 + 3 * xi[0])
        >>> m.least = pyo.Objective(expr=m.y([1.0]))
        >>> rule = osilp.solve(m).function(m.y)
        >>> rule, rule([0.5]), rule.coefficients.to_dict()
        (y(xi) = 1 + 3*xi[0], 2.5, {'1': 1.0, 'xi[0]': 3.0})
        """
        if not hasattr(decision, "with_values"):
            raise ModelError(
                f"result.function: expected a FunctionVar or one of its members (got {type(decision).__name__}); "
                "variables that are numbers are in result.values."
            )
        values = self.values
        if self.policy is not None:
            found = decision.with_values({})
            if isinstance(found, dict):
                return {index: self.policy.function(each.name) for index, each in found.items()}
            return self.policy.function(found.name)
        return decision.with_values(dict(zip(values.index, values.tolist(), strict=True)))

    def simulate(self, draws: Any) -> pd.DataFrame:
        """What is decided, and what it costs, at draws of the uncertain vector.

        Parameters
        ----------
        draws : DataFrame or array
            One vector per row; columns by the names of its entries ("xi[0]", ...), by number, or in their order.

        Returns
        -------
        DataFrame
            A row for each draw: every decision that is a function, at the draw; every other variable; ``cost``, the
            objective; and ``violation``, the largest by which a row is violated there, relative to its size. In the
            cost a variable that stands for a worst case takes the value that the draw needs: the only one of those with
            a cost that has no bound on the side where it would be best.

        Examples
        --------
        >>> import pyomo.environ as pyo
        >>> from pyomo.contrib.pyros import BoxSet
        >>> import osilp_pyomo as osilp
        >>> m = pyo.ConcreteModel()
        >>> m.y = osilp.FunctionVar(over=BoxSet([(0, 2)]))
        >>> m.cover = osilp.SemiInfiniteConstraint(BoxSet([(0, 2)]), rule=lambda m, xi: m.y(xi) >= 1 + 3 * xi[0])
        >>> m.least = pyo.Objective(expr=m.y([1.0]))
        >>> osilp.solve(m).simulate([[0.0], [2.0]]).round(6)
             y  cost  violation
        0  1.0   4.0        0.0
        1  7.0   4.0        0.0
        """
        self._answer("simulation")
        if self.policy is not None:
            return self.policy.simulate(draws)
        if self.recourse is None or self.solution is None:
            raise ModelError(
                "result.simulate: the solved model has no rows over an uncertainty set, so that nothing in it depends "
                "on what is drawn."
            )
        return self.recourse.simulate(self.solution, draws)

    def plot(self, *, figure: Any = None) -> Any:
        """Draw the prices along their indices, or of an infeasible model what conflicts; needs matplotlib.

        Rows with their limits are drawn by ``osilp_pyomo.plot_rows(model, result)``: a result does not hold them.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib Figure or SubFigure
        """
        return draw("result", self, figure=figure)

    def load(self, model: Any) -> None:
        """Put the values into a model's variables, found by name; Suffixes dual and rc are filled."""
        found, values = self._answer("values"), self.values
        root = model.model()
        variables = [root.find_component(name) for name in values.index]
        for name, variable in zip(values.index, variables, strict=True):
            if variable is None and name not in self.added:
                raise ModelError(
                    f"The model has no variable '{name}'; load the result into the model it was solved for."
                )
        rows = [] if found.duals is None else [root.find_component(name) for name in found.duals.index]
        self.load_into(model, variables, rows)
        for name, value in self.nominal.items():
            variable = root.find_component(name)
            if getattr(variable, "is_variable_type", bool)():
                variable.set_value(value, skip_validation=True)
                variable.stale = False

    def load_into(self, model: Any, variables: Sequence[Any], constraints: Sequence[Any]) -> None:
        """Load into the components themselves, in the order of ``values`` and ``duals``; None is passed over."""
        found = self._answer("values")
        for variable, value in zip(variables, self.values.tolist(), strict=True):
            if variable is None:
                continue
            variable.set_value(value, skip_validation=True)
            variable.stale = False
        for name, components, part in (("dual", constraints, "duals"), ("rc", variables, "reduced_costs")):
            suffix = model.component(name)
            if suffix is None or suffix.ctype.__name__ != "Suffix" or not suffix.import_enabled():
                continue
            numbers = getattr(found, part)
            # Numbers of an earlier solve must not pass for those of this one.
            suffix.clear()
            if numbers is not None:
                pairs = zip(components, numbers.tolist(), strict=True)
                suffix.update((component, number) for component, number in pairs if component is not None)

    def __str__(self) -> str:
        return text_of(self)

    __repr__ = __str__
