"""One family of rows: a semi-infinite constraint for one member of its ordinary sets.

It *is* a Constraint of Pyomo, which refuses, while it is active, whatever a writer or solver asks of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pyomo.core.base.constraint import ConstraintData
from pyomo.core.expr.relational_expr import EqualityExpression

from osilp_pyomo.errors import DeclarationError, UntransformedModelError
from osilp_pyomo.model.affine import AffineTrace
from osilp_pyomo.model.linear import checked_relation, relation_text
from osilp_pyomo.model.mathematics import constraint_card, constraint_latex


def _refuse(self: Any, *args: Any, **kwds: Any) -> Any:
    raise UntransformedModelError(
        f"SemiInfiniteConstraint '{self.name}' holds for every point of {self.parent_component().index_text()}: no "
        "solver or writer can take it as it stands. Use osilp_pyomo.solve(model), SolverFactory('osilp').solve(model), "
        "TransformationFactory('osilp.discretize') or ('osilp.project'), or deactivate it. Its row at one point is "
        f"{self.name}.at(point).{_where_disjunctive(self)}"
    )


def _where_disjunctive(data: Any) -> str:
    """What to do about a row inside of a Disjunct, which gdp.bigm and gdp.hull cannot read."""
    block = data.parent_block()
    while block is not None:
        if block.ctype.__name__ == "Disjunct":
            return (
                f" It stands in Disjunct '{block.name}': declare it on the model itself, relaxed where the Disjunct is "
                "not chosen, such as m.y >= u - M * (1 - m.d.binary_indicator_var)."
            )
        block = block.parent_block()
    return ""


def _refused_method(name: str) -> Callable[..., Any]:
    ordinary = getattr(ConstraintData, name)

    def method(self: Any, *args: Any, **kwds: Any) -> Any:
        return _refuse(self) if self.active else ordinary(self, *args, **kwds)

    method.__name__ = name
    method.__doc__ = f"Refused while the constraint is active; else as in ConstraintData.{name}."
    return method


def _refused_property(name: str) -> property:
    ordinary = getattr(ConstraintData, name)
    return property(
        lambda self: _refuse(self) if self.active else ordinary.fget(self),
        doc=f"Refused while the constraint is active; else as in ConstraintData.{name}.",
    )


class SemiInfiniteConstraintData(ConstraintData):
    """One family of rows: the constraint for one member of its ordinary sets.

    ``trace`` is the row with a placeholder for the index, or None where the rule is called at each
    point instead; ``reason`` then says why. ``affine`` holds the numbers of a row that is affine in an uncertain
    vector, where they cannot change before the model is solved.
    """

    __slots__ = ("affine", "reason")

    def __init__(self, expr: Any = None, component: Any = None) -> None:
        super().__init__(expr, component)
        self.reason: str | None = None
        self.affine: AffineTrace | None = None

    expr = _refused_property("expr")
    body = _refused_property("body")
    lower = _refused_property("lower")
    upper = _refused_property("upper")
    lb = _refused_property("lb")
    ub = _refused_property("ub")
    equality = _refused_property("equality")
    strict_lower = _refused_property("strict_lower")
    strict_upper = _refused_property("strict_upper")
    to_bounded_expression = _refused_method("to_bounded_expression")
    has_lb = _refused_method("has_lb")
    has_ub = _refused_method("has_ub")
    get_value = _refused_method("get_value")
    slack = _refused_method("slack")
    lslack = _refused_method("lslack")
    uslack = _refused_method("uslack")
    __call__ = _refused_method("__call__")

    @property
    def trace(self) -> Any:
        """The row with a placeholder for the index, or None."""
        return self._expr

    @property
    def is_equation(self) -> bool:
        """Whether both sides of its row are to be equal."""
        return isinstance(self._expr, EqualityExpression)

    @property
    def route(self) -> str:
        """How its coefficients are found: "traced" or "sampled"."""
        return "traced" if self._expr is not None else "sampled"

    def at(self, *point: Any) -> Any:
        """The row that the rule gives at one point of the index, as a Pyomo relation.

        An uncertain vector may come whole, ``at((0.5, 1.0))``, or as numbers, ``at(0.5, 1.0)``.
        """
        owner = self.parent_component()
        numbers: list[Any] = []
        for part in point:
            numbers += part if isinstance(part, tuple | list | np.ndarray) else [part]
        return checked_relation(owner.call_with_numbers(self.index(), numbers), self.name)

    def set_value(self, expr: Any) -> None:
        """Refused: a family comes from its rule only."""
        raise DeclarationError(
            f"SemiInfiniteConstraint '{self.name}': it cannot be assigned an expression, because an expression has "
            "no index; declare it anew with a rule."
        )

    def line_text(self) -> str:
        """The family in one line, as mathematics."""
        state = "" if self.active else "  (deactivated)"
        return f"{self.name}: {self.row_text()}  for all {self.parent_component().index_text()}{state}"

    def __repr__(self) -> str:
        return self.line_text()

    # Printed, a constraint of Pyomo is its name; here it is the row, for there is no body to print.
    __str__ = __repr__

    def to_latex(self) -> str:
        """The family in LaTeX, without dollars."""
        return constraint_latex(self.parent_component(), [self])

    def _repr_latex_(self) -> str | None:
        return f"$\\displaystyle {self.to_latex()}$"

    def _repr_html_(self) -> str | None:
        return constraint_card(self.parent_component(), [self])

    def row_text(self) -> str:
        """The row as mathematics, long sums cut short."""
        if self._expr is None:
            return f"[rule called at each point: {self.reason}]"
        return relation_text(self._expr)
