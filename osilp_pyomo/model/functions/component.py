"""FunctionVar: a decision that is a function of the index, such as a decision rule or a curve.

It is a Block of Pyomo that holds the coefficients of the functions as an ordinary Var, and their bounds as a
:class:`~osilp_pyomo.SemiInfiniteConstraint`, so that every solver and writer meets both. It is no Var: a function at a
point is a linear expression of its coefficients, and rows with it stay linear.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.core.base.block import Block, ScalarBlock
from pyomo.core.base.component import ModelComponentFactory
from pyomo.core.expr import relational_expr as relational

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DeclarationError, ModelError
from osilp_pyomo.index.bases import Basis, BSpline
from osilp_pyomo.index.curves.spaces import CurveFunctions, FunctionSpace, VectorFunctions
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint
from osilp_pyomo.model.functions.declared import (
    box_of,
    continuous_sets,
    coordinate_names,
    coordinate_sizes,
    entries_of,
    limits_of,
    members_of,
    orders_of,
    scalar_of,
    seen_entries,
)
from osilp_pyomo.model.functions.member import DecisionFunction, listed
from osilp_pyomo.model.functions.terms import as_leaf, curve_terms, is_number, vector_terms
from osilp_pyomo.model.linear import Whose
from osilp_pyomo.model.sets import is_uncertainty_set, labels_of, vector_text

# What a rule over an uncertain vector can be made of.
RULES = {
    "constant": VectorFunctions.constant,
    "affine": VectorFunctions.affine,
    "quadratic": VectorFunctions.quadratic,
}
# Functions along the axis of a curve, and along each of several, where nothing is said.
_ALONG, _EACH = 10, 6
# Functions that are printed in front of the dots.
_SHOWN = 4
# Points at which a fixed function is compared with its bounds, and what it may miss them by, relative to itself.
_TRIED, _OUTSIDE = 256, 1e-6


def is_function(limit: Any) -> bool:
    """Whether a bound is a function of the index; Params are callable too."""
    return callable(limit) and not getattr(limit, "is_numeric_type", bool)()


class _Bounds:
    """The rule of the bounds of a FunctionVar; the block that it belongs to knows them."""

    def __call__(self, block: Any, *arguments: Any) -> Any:
        index, point = block.split_arguments(arguments)
        value = block.expression(index, point)
        low, high = (limit(*point) if is_function(limit) else limit for limit in block.limits_of[index])
        if low is None:
            return value <= high
        return value >= low if high is None else relational.inequality(low, value, high)


@ModelComponentFactory.register("A decision that is a function of an uncertain vector or of a continuous index.")
class FunctionVar(ScalarBlock):
    """A decision that is a function of the index: a decision rule, or a curve.

    Parameters
    ----------
    *sets : Set
        Ordinary index sets: one function for each member.
    over : set, tuple of sets, or rule
        What it is a function of: an uncertainty set of PyROS, a ContinuousSet, or several of one kind, with which it is
        called one by one; ``over=lambda m: ...`` for an AbstractModel.
    basis : str or Basis, optional
        Over uncertainty sets "affine" (if not given), "constant" or "quadratic"; over continuous sets any basis but
        Dirac, a cubic ``BSpline`` if not given.
    sees : rule, list or dict, optional
        Which entries of the vector it may use, by number: ``sees=lambda m, p: range(p)``. All if not given.
    bounds : pair or rule, optional
        (lower, upper), for every point of the index; a bound may be None, a number, a Param, or a function of the
        index such as a Profile. ``bounds=lambda m, p: ...`` gives the pair for each member.
    within : set
        Real numbers, such as NonNegativeReals, whose bounds are kept too.
    units : unit, optional
        The unit of its values, such as ``pyo.units.MW``.

    Examples
    --------
    How much to order once the demand is seen:

    >>> import pyomo.environ as pyo
    >>> from pyomo.contrib.pyros import BoxSet
    >>> import osilp_pyomo as osilp
    >>> m = pyo.ConcreteModel()
    >>> demand = BoxSet([(2, 6)])
    >>> m.stock = pyo.Var(bounds=(0, 4))
    >>> m.order = osilp.FunctionVar(over=demand, bounds=(0, None))
    >>> m.cost = pyo.Var()
    >>> m.total = pyo.Objective(expr=m.cost)
    >>> @m.SemiInfiniteConstraint(demand)
    ... def enough(m, xi):
    ...     return m.stock + m.order(xi) >= xi[0]
    >>> @m.SemiInfiniteConstraint(demand)
    ... def worst(m, xi):
    ...     return m.cost >= m.stock + 3 * m.order(xi)
    >>> result = osilp.solve(m)
    >>> round(result.objective, 6), round(result.function(m.order)([5.0]), 6)
    (10.0, 1.5)

    A curve through two points that is as flat as can be:

    >>> from pyomo.dae import ContinuousSet
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 2))
    >>> m.f = osilp.FunctionVar(over=m.u, basis=osilp.BSpline(6))
    >>> m.ends = pyo.ConstraintList()
    >>> _ = m.ends.add(m.f(0) == 0), m.ends.add(m.f(2) == 1)
    >>> m.slope = pyo.Var()
    >>> m.steepest = pyo.Objective(expr=m.slope)
    >>> @m.SemiInfiniteConstraint(m.u)
    ... def flat(m, u):
    ...     return m.f.derivative(u) <= m.slope
    >>> round(osilp.solve(m).objective, 6)
    0.5
    """

    #: What tells it from other blocks.
    holds_functions = True

    def __init__(
        self,
        *sets: Any,
        over: Any = None,
        basis: Any = None,
        sees: Any = None,
        bounds: Any = None,
        within: Any = None,
        units: Any = None,
        **kwds: Any,
    ) -> None:
        kwds.setdefault("ctype", Block)
        ScalarBlock.__init__(self, **kwds)
        called = f"FunctionVar '{kwds['name']}'" if kwds.get("name") else "FunctionVar"
        if over is None:
            raise DeclarationError(
                f"{called}: say what it is a function of, by over=model.u or an uncertainty set of PyROS; a decision "
                "that is a number is an ordinary Var."
            )
        if within is not None and not (hasattr(within, "bounds") and hasattr(within, "isdiscrete")):
            raise DeclarationError(f"{called}: within= must be a set of real numbers (got {type(within).__name__}).")
        if within is not None and within.isdiscrete():
            raise DeclarationError(
                f"{called}: within={within} asks for a function with whole values, which is no combination of "
                "functions; decide whole numbers before the index is seen, by an ordinary Var."
            )
        self._declared: dict[str, Any] | None = {
            "sets": sets, "over": over, "basis": basis, "sees": sees, "bounds": bounds, "within": within
        }  # fmt: skip
        self.units_of_values = None if units is None else pyo.units.get_units(units)
        self._over: tuple[Any, ...] = ()
        self.spaces: dict[Any, FunctionSpace] = {}
        self.limits_of: dict[Any, tuple[Any, Any]] = {}
        self.sizes: FloatArray = np.empty(0)
        self._coefficients_of: dict[Any, tuple[Any, ...]] = {}
        self._dimensions = 1
        self._indexed = bool(sets)

    # -- construction ----------------------------------------------------------------------------

    def construct(self, data: Any = None) -> None:
        """Make coefficients and bounds."""
        if self._constructed:
            return
        ScalarBlock.construct(self, data)
        try:
            with PauseGC():
                self._build(self._declared or {})
        except Exception:
            # A bad declaration must not change the model.
            block = self.parent_block()
            if block is not None:
                block.del_component(self)
            raise
        # Rules of the user's are code, and may not be picklable; they are not called again.
        self._declared = None

    def _build(self, declared: dict[str, Any]) -> None:
        block, what = self.parent_block(), self._what
        self._over = continuous_sets(declared["over"], block, what)
        members, self._dimensions = members_of(declared["sets"], what)
        self._domain = None if self.uncertain else box_of(self._over, what)
        self.sizes = coordinate_sizes(self._over, self._domain, what)
        basis = declared["basis"]
        if not self.uncertain and declared["sees"] is not None:
            raise DeclarationError(
                f"{self._what}: sees= says which entries of an uncertain vector a rule may use; a curve sees its point."
            )
        for index in members:
            self.spaces[index] = self._space(index, basis, declared["sees"])
            self.limits_of[index] = limits_of(index, declared["bounds"], declared["within"], block, what)
        keys = [self.key(index, label) for index in members for label in self.spaces[index].labels]
        self.coefficients = pyo.Var(pyo.Set(initialize=keys, dimen=len(keys[0]) if isinstance(keys[0], tuple) else 1))
        self._coefficients_of = {
            index: tuple(self.coefficients[self.key(index, label)] for label in self.spaces[index].labels)
            for index in members
        }
        self._declare_bounds(members)

    @property
    def _what(self) -> str:
        return f"FunctionVar '{self.name}'"

    @property
    def uncertain(self) -> bool:
        """Whether it is a function of an uncertain vector."""
        return is_uncertainty_set(self._over[0])

    @property
    def over(self) -> tuple[Any, ...]:
        """The sets it is a function of."""
        return self._over

    def _space(self, index: Any, basis: Any, sees: Any) -> FunctionSpace:
        if self.uncertain:
            kind = "affine" if basis is None else basis
            if kind not in RULES:
                raise DeclarationError(
                    f"{self._what}: over an uncertainty set basis= must be one of {', '.join(map(repr, RULES))} (got "
                    f"{basis!r})."
                )
            return RULES[kind](
                coordinate_names(self._over), seen_entries(index, sees, self._over, self.parent_block(), self._what)
            )
        assert self._domain is not None
        dimension = self._domain.dimension
        chosen = basis if basis is not None else BSpline(_ALONG if dimension == 1 else [_EACH] * dimension)
        if not isinstance(chosen, Basis):
            raise DeclarationError(
                f"{self._what}: over a continuous set basis= must be a basis such as osilp.BSpline(10) (got {basis!r})."
            )
        if self.spaces:
            # One space for all of its curves.
            return next(iter(self.spaces.values()))
        return CurveFunctions.of(self.name, self._domain, chosen)

    def _declare_bounds(self, members: list[Any]) -> None:
        """Bounds for every point as rows; those of a constant as bounds of its one coefficient."""
        kept = []
        for index in members:
            low, high = self.limits_of[index]
            if low is None and high is None:
                continue
            space = self.spaces[index]
            constant = isinstance(space, VectorFunctions) and len(space) == 1
            if constant and not is_function(low) and not is_function(high):
                coefficient = self.coefficients[self.key(index, "1")]
                coefficient.setlb(low)
                coefficient.setub(high)
            else:
                kept.append(index)
        if not kept:
            return
        if self._indexed:
            self.bounded = pyo.Set(initialize=kept, dimen=self._dimensions)
            self.limits = SemiInfiniteConstraint(self.bounded, *self._over, rule=_Bounds())
        else:
            self.limits = SemiInfiniteConstraint(*self._over, rule=_Bounds())

    # -- what a user does with it ----------------------------------------------------------------

    def key(self, index: Any, label: Any) -> Any:
        """The index of a coefficient: the member, then the function that it multiplies."""
        if index is None:
            return label
        return (*index, label) if isinstance(index, tuple) else (index, label)

    def name_of(self, index: Any) -> str:
        """What one of its functions is called."""
        if index is None:
            return str(self.name)
        return f"{self.name}[{','.join(map(str, index)) if isinstance(index, tuple) else index}]"

    def split_arguments(self, arguments: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
        """Member and point of the arguments of a rule."""
        if not self._indexed:
            return None, tuple(arguments)
        member = tuple(arguments[: self._dimensions])
        return member[0] if self._dimensions == 1 else member, tuple(arguments[self._dimensions :])

    def argument_text(self) -> str:
        """What it is called with."""
        if not self.uncertain:
            return ", ".join(coordinate_names(self._over))
        names = dict.fromkeys(vector_text([name]) for name in coordinate_names(self._over))
        return ", ".join(names)

    def expression(self, index: Any, point: Sequence[Any], order: Any = None) -> Any:
        """One of its functions, or a derivative, at a point: a linear expression of its coefficients."""
        what = Whose("FunctionVar", DecisionFunction(self, index))
        if len(point) != len(self._over):
            raise DeclarationError(
                f"{what}: it is a function of {self.argument_text()}, {len(self._over)} "
                f"argument{'s' * (len(self._over) > 1)} (got {len(point)})."
            )
        space, coefficients = self.spaces[index], self._coefficients_of[index]
        if isinstance(space, VectorFunctions):
            if order is not None:
                raise DeclarationError(
                    f"{what}: a rule over an uncertain vector has no derivative here; it has curves."
                )
            entries = entries_of(point, self._over, what)
            called = "xi" if is_number(entries[0]) else str(entries[0]).rpartition("[")[0]
            if any(labels_of(each) for each in self._over):
                called = self.argument_text()
            return vector_terms(space, coefficients, entries, f"{self.name_of(index)}({called or 'xi'})")
        assert isinstance(space, CurveFunctions)
        at = [as_leaf(scalar_of(each, what), what) for each in point]
        assert self._domain is not None
        outside = self._domain.outside([float(each) if is_number(each) else None for each in at])
        if outside is not None:
            raise DeclarationError(f"{what}: asked for its value at {outside}, on which it is declared.")
        orders = orders_of(order, len(self._over), what)
        tick = "'" * orders[0] if self._domain is not None and self._domain.dimension == 1 else f"_{orders}"
        label = f"{self.name_of(index)}{tick if any(orders) else ''}({', '.join(map(str, at))})"
        return curve_terms(space, coefficients, at, orders, (self.name, orders), label)

    def __getitem__(self, key: Any) -> Any:
        if key is None and not self._indexed:
            return self
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, slice) for part in parts):
            return [self[index] for index in self.spaces if _matches(index, parts)]
        if key in self.spaces:
            return DecisionFunction(self, key)
        raise KeyError(f"FunctionVar '{self.name}' has no member {key!r}; its members are {listed(self.spaces)}")

    def __call__(self, *point: Any) -> Any:
        self._refuse_indexed()
        return self.expression(None, point)

    def derivative(self, *point: Any, order: Any = 1) -> Any:
        """The derivative of a curve at a point, as :meth:`DecisionFunction.derivative`."""
        self._refuse_indexed()
        return self.expression(None, point, order)

    def _refuse_indexed(self) -> None:
        if self._indexed:
            first = next(iter(self.spaces), "...")
            raise DeclarationError(
                f"{self._what}: it has one function for each member of its index; choose one, such as "
                f"{self.name_of(first)}({self.argument_text()})."
            )

    @property
    def function(self) -> DecisionFunction:
        """Its one function, where it has no index."""
        self._refuse_indexed()
        return DecisionFunction(self, None)

    def refuse_fixed_outside(self, index: Any) -> bool:
        """Whether one of its functions is fixed; refused where it then leaves its bounds."""
        space, coefficients = self.spaces[index], self._coefficients_of[index]
        if not all(each.fixed for each in coefficients):
            return False
        points = self.limits.points_tried(_TRIED)
        values = space.evaluate(points) @ np.array([float(each.value) for each in coefficients])
        for point, value in zip(points, values, strict=True):
            arguments, start = [], 0
            for each in self._over:
                size = each.dim if self.uncertain else 0
                arguments.append(tuple(point[start : start + size].tolist()) if size else float(point[start]))
                start += size or 1
            for sign, limit in zip((-1, 1), self.limits_of[index], strict=True):
                bound = limit(*arguments) if is_function(limit) else limit
                if bound is not None and sign * (value - pyo.value(bound)) > _OUTSIDE * (1 + abs(value)):
                    raise ModelError(
                        f"FunctionVar '{self.name_of(index)}': it is fixed, and is {value:g} at {arguments}, outside "
                        f"of its bound {pyo.value(bound):g}; fix it to a function that keeps its bounds."
                    )
        return True

    def with_values(self, values: Mapping[str, float]) -> Any:
        """It as a function of numbers; a dict of such by member where it is indexed."""
        found = {index: each.with_values(values) for index, each in self.items()}
        return found if self._indexed else found[None]

    def marks_along(self, axis: Any) -> list[FloatArray]:
        """Places of a continuous set where its curves bend or jump, both sides of a jump among them."""
        space = next(iter(self.spaces.values()), None)
        if not isinstance(space, CurveFunctions):
            return []
        found = []
        for each, (places, jumps) in zip(self._over, space.marks(), strict=True):
            if each is axis:
                inner = places[1:-1]
                found.append(np.concatenate([inner, np.nextafter(inner, -np.inf)]) if jumps else inner)
        return found

    def __len__(self) -> int:
        return len(self.spaces)

    def __contains__(self, key: Any) -> bool:
        return key in self.spaces

    def __iter__(self) -> Iterator[Any]:
        return iter(self.spaces)

    def keys(self, *_: Any) -> Any:
        """Its members."""
        return self.spaces.keys()

    def values(self, *_: Any) -> Any:
        """Its functions."""
        return [DecisionFunction(self, index) for index in self.spaces]

    def items(self, *_: Any) -> Any:
        """Pairs of member and function."""
        return [(index, DecisionFunction(self, index)) for index in self.spaces]

    def deactivate(self) -> None:
        """Refused: its bounds would be dropped, and its coefficients be free."""
        raise DeclarationError(
            f"{self._what}: deactivated, it would drop its bounds, and rows would still use it; fix its coefficients, "
            f"{self.name}.coefficients.fix(...), or deactivate {self.name}.limits alone."
        )

    # -- texts -------------------------------------------------------------------------------------

    def index_text(self) -> str:
        """What it is a function of, in words."""
        if self.uncertain:
            sets = [f"{type(each).__name__} of dimension {each.dim}" for each in self._over]
            return ", ".join(
                f"{name} in {each}" for name, each in zip(self.argument_text().split(", "), sets, strict=True)
            )
        return str(self._domain)

    def line_text(self, index: Any) -> str:
        """One of its functions as mathematics."""
        space = self.spaces[index]
        low, high = self.limits_of[index]
        argument = self.argument_text()
        value = f"{self.name_of(index)}({argument})"
        if isinstance(space, VectorFunctions):
            texts = space.texts()
            terms = [f"c[{text}]" if text == "1" else f"c[{text}]*{text}" for text in texts]
            shown = terms if len(terms) <= _SHOWN + 1 else [*terms[:_SHOWN], "...", terms[-1]]
            body = " + ".join(shown)
        else:
            assert isinstance(space, CurveFunctions)
            body = f"sum of {len(space)} functions, {space.basis!r}"
        limits = ""
        if low is not None or high is not None:
            shown_low = "" if low is None else f"{getattr(low, 'name', low)} <= "
            shown_high = "" if high is None else f" <= {getattr(high, 'name', high)}"
            limits = f", {shown_low}{value}{shown_high} for all {self.index_text()}"
        return f"{value} = {body}{limits}"

    def __repr__(self) -> str:
        if not self.spaces:
            return f"{self.name}: not constructed yet"
        lines = [self.line_text(index) for index in list(self.spaces)[:_SHOWN]]
        if len(self.spaces) > _SHOWN:
            lines.append(f"... and {len(self.spaces) - _SHOWN} more, {len(self.spaces)} functions in all")
        return "\n".join(lines)

    def __str__(self) -> str:
        return str(self.name)

    def pprint(self, ostream: Any = None, verbose: bool = False, prefix: str = "", sort: Any = None) -> None:
        """Print its functions as mathematics, in the order of its sets whatever ``sort`` says."""
        out = ostream or sys.stdout
        out.write(f"{prefix}{self.local_name} : {len(self)} functions of {self.index_text()}, "
                  f"{len(self.coefficients)} coefficients\n")  # fmt: skip
        for index in list(self.spaces) if verbose else list(self.spaces)[:_SHOWN]:
            out.write(f"{prefix}    {self.line_text(index)}\n")
        if not verbose and len(self.spaces) > _SHOWN:
            out.write(f"{prefix}    ... and {len(self.spaces) - _SHOWN} more\n")


def _matches(index: Any, key: tuple[Any, ...]) -> bool:
    """Whether a member is one of a slice such as ("a", :)."""
    member = index if isinstance(index, tuple) else (index,)
    return len(member) == len(key) and all(
        isinstance(part, slice) or part == own for own, part in zip(member, key, strict=True)
    )


def function_vars(model: Any) -> Iterator[FunctionVar]:
    """Every FunctionVar of a model, blocks included."""
    for block in model.component_objects(Block, descend_into=True):
        if isinstance(block, FunctionVar):
            yield block
