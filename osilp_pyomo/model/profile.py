"""Profile: data that is a function of the index, such as a measured curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np
import pandas as pd
from pyomo.common.modeling import NOTSET
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.base.component import ComponentData, ModelComponentFactory
from pyomo.core.base.global_set import UnindexedComponent_index
from pyomo.core.base.indexed_component import IndexedComponent
from pyomo.core.base.units_container import units as pyomo_units
from pyomo.core.expr.numeric_expr import Numeric_NPV_Mixin, NumericExpression

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DeclarationError
from osilp_pyomo.index.curves.stack import Function, Table
from osilp_pyomo.model.arrays.expressions import ArrayExpression, IndexSymbol, apply, as_array

KINDS = ("linear", "previous", "nearest")
OUTSIDE = ("error", "clamp", "wrap")


class ProfileExpression(NumericExpression):
    """The node ``profile(u)`` in a Pyomo expression."""

    __slots__ = ("curve",)
    PRECEDENCE = None

    def __init__(self, args: Sequence[Any], curve: ProfileData) -> None:
        self._args_ = tuple(args)
        self.curve = curve

    def nargs(self) -> int:
        return len(self._args_)

    def create_node_with_local_data(self, args: Sequence[Any], classtype: type | None = None) -> Any:
        return (classtype or self.__class__)(args, self.curve)

    def getname(self, *args: Any, **kwds: Any) -> str:
        return str(self.curve.name)

    def _apply_operation(self, result: Sequence[float]) -> float:
        return self.curve.value_at(*result)

    def _compute_polynomial_degree(self, result: Sequence[Any]) -> int | None:
        return 0 if all(degree == 0 for degree in result) else None

    def _to_string(self, values: Sequence[str], verbose: bool, smap: Any) -> str:
        return f"{self.curve.name}({', '.join(values)})"


class NPVProfileExpression(Numeric_NPV_Mixin, ProfileExpression):
    """A profile of the index and data only."""

    __slots__ = ()

    def potentially_variable_base_class(self) -> type:
        return ProfileExpression


class ProfileData(ComponentData):
    """One curve of a :class:`Profile`."""

    __slots__ = ("_curve",)

    def __init__(self, component: Any = None) -> None:
        self._component = None if component is None else ref(component)
        self._index = NOTSET
        self._curve: Table | Function | None = None

    def set_value(self, source: Any) -> None:
        """Give the curve: values at the Profile's points, a Series, a number or a callable."""
        self._curve = self.parent_component()._curve_from(source, self.name, declared=self._curve is None)

    def curve_table(self) -> Table | Function:
        """The curve as plain data."""
        if self._curve is None:
            raise DeclarationError(f"Profile '{self.name}' has no values; give it initialize=...")
        return self._curve

    def value_at(self, *coordinates: float) -> float:
        """The curve at one point."""
        return float(self.curve_table()(*(np.array([value], dtype=float) for value in coordinates))[0])

    def __call__(self, *coordinates: Any) -> Any:
        dimension = self.parent_component().dimension
        if len(coordinates) != dimension:
            raise DeclarationError(
                f"Profile '{self.name}' is a function of {dimension} coordinate{'s' * (dimension > 1)} "
                f"(got {len(coordinates)})."
            )
        if all(value.__class__ in native_numeric_types for value in coordinates):
            return self.value_at(*coordinates)
        if any(isinstance(value, ArrayExpression) for value in coordinates):
            return apply(lambda *trees: profile_node(trees, self), *coordinates)
        if any(isinstance(value, np.ndarray) for value in coordinates):
            return self.curve_table()(*(np.asarray(value, dtype=float) for value in coordinates))
        return profile_node(coordinates, self)


def profile_node(coordinates: Sequence[Any], curve: Any) -> ProfileExpression:
    """The node of a curve, or of an array of them, at a point."""
    if any(value.__class__ not in native_numeric_types and value.is_potentially_variable() for value in coordinates):
        return ProfileExpression(coordinates, curve)
    return NPVProfileExpression(coordinates, curve)


@ModelComponentFactory.register("Data that is a function of a continuous index.")
class Profile(IndexedComponent):
    """Data that is a function of the continuous index.

    Parameters
    ----------
    *sets : Set
        Ordinary index sets: one curve for each member.
    over : set or tuple of sets
        The continuous index, or several.
    points : array or tuple of arrays, optional
        Knots; with several axes one array per axis. A Series of values brings its own by its index; beside ``points``
        it must say the same, or be another column of their frame.
    initialize : values, Series, DataFrame, dict, or callable
        Without sets: values at the points, a Series, a number, or a function of the index. With sets: a
        dict or DataFrame with one of those per member, or a rule ``(model, member)`` that returns one.
    kind : "linear", "previous" or "nearest"
        How to read between knots.
    outside : "error", "clamp" or "wrap"
        What to do beyond the first and last knot.
    units : unit, optional
        The unit of its values, such as ``pyo.units.MW``.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> from pyomo.dae import ContinuousSet
    >>> m = pyo.ConcreteModel()
    >>> m.u = ContinuousSet(bounds=(0, 1))
    >>> m.cap = Profile(over=m.u, points=[0, 0.5, 1], initialize=[1, 3, 2])
    >>> m.cap(0.25)
    2.0
    """

    _ComponentDataClass = ProfileData

    def __new__(cls, *args: Any, **kwds: Any) -> Any:
        if cls is not Profile:
            return super().__new__(cls)
        return super().__new__(IndexedProfile if args else ScalarProfile)

    def __init__(
        self,
        *sets: Any,
        over: Any = None,
        points: Any = None,
        initialize: Any = None,
        kind: str = "linear",
        outside: str = "error",
        units: Any = None,
        **kwds: Any,
    ) -> None:
        kwds.setdefault("ctype", Profile)
        IndexedComponent.__init__(self, *sets, **kwds)
        name = kwds.get("name") or "Profile"
        if over is None:
            raise DeclarationError(
                f"{name}: say which continuous index it is a function of, by over=model.u, as in "
                "Profile(over=model.u, points=[0, 0.5, 1], initialize=[1, 3, 2])."
            )
        if kind not in KINDS:
            raise DeclarationError(f"{name}: kind must be one of {', '.join(KINDS)} (got {kind!r}).")
        if outside not in OUTSIDE:
            raise DeclarationError(f"{name}: outside must be one of {', '.join(OUTSIDE)} (got {outside!r}).")
        self._over = tuple(over) if isinstance(over, tuple | list) else (over,)
        self._kind, self._outside = kind, outside
        self._units = None if units is None else pyomo_units.get_units(units)
        self._initialize = initialize
        self._knots: tuple[FloatArray, ...] | None = None
        # Points that are a column of a frame belong to the values of the same rows.
        self._points_index = points.index if isinstance(points, pd.Series) else None
        if points is not None:
            axes = points if self.dimension > 1 else (points,)
            self._knots = tuple(np.array(axis, dtype=float) for axis in axes)
            self._check_knots(self._knots, name)

    @property
    def dimension(self) -> int:
        """Number of coordinates of the curve."""
        return len(self._over)

    def _check_knots(self, knots: tuple[FloatArray, ...], name: str) -> None:
        if len(knots) != self.dimension:
            raise DeclarationError(
                f"Profile '{name}': points must be one array for each of the {self.dimension} axes (got {len(knots)})."
            )
        for axis in knots:
            if axis.ndim != 1 or not len(axis) or not np.all(np.isfinite(axis)) or np.any(np.diff(axis) <= 0):
                raise DeclarationError(
                    f"Profile '{name}': points must be finite numbers in increasing order "
                    f"(got {np.array2string(axis, threshold=6)})."
                )

    def _curve_from(self, source: Any, name: str, declared: bool) -> Table | Function:
        if isinstance(source, pd.Series) and self.dimension == 1:
            knots: tuple[FloatArray, ...] | None = self._knots_of(source, name, declared)
            source = source.to_numpy(dtype=float)
        elif callable(source):
            return Function(name, source, self.dimension)
        else:
            knots = self._knots
        if knots is None:
            if np.ndim(source) == 0 and source is not None:
                # A number: the same everywhere.
                return Table(name, (np.zeros(1),) * self.dimension, np.full((1,) * self.dimension, float(source)),
                             "previous", "clamp")  # fmt: skip
            raise DeclarationError(
                f"Profile '{name}': values need points=..., unless they come as a pandas Series or a function of the "
                "index."
            )
        values = np.array(source, dtype=float)
        wanted = tuple(len(axis) for axis in knots)
        if values.ndim == 0:
            values = np.full(wanted, float(values))
        if values.shape != wanted:
            raise DeclarationError(
                f"Profile '{name}': there must be one value a point, shape {wanted} (got shape {values.shape})."
            )
        if not np.all(np.isfinite(values)):
            raise DeclarationError(f"Profile '{name}': every value must be a finite number (found nan or inf).")
        return Table(name, knots, values, self._kind, self._outside)

    def _knots_of(self, source: pd.Series, name: str, declared: bool) -> tuple[FloatArray, ...]:
        """The points that a Series of values belongs to: those given, by rows of a frame or one by one, or its index.

        What is declared must agree with itself; a curve that is given later may stand at points of its own.
        """
        given = self._knots
        if given is not None and len(given[0]) == len(source):
            rows = self._points_index
            counted = isinstance(source.index, pd.RangeIndex) and source.index.start == 0 and source.index.step == 1
            if counted or (rows is not None and source.index.equals(rows)):
                return given
        try:
            own = source.index.to_numpy(dtype=float)
        except (TypeError, ValueError):
            raise DeclarationError(
                f"Profile '{name}': the index of the Series must be the points that its values stand at (got "
                f"{source.index[0]!r}, ...); or give both by position, as points=list(...), initialize=list(...)."
            ) from None
        if declared and given is not None and not np.array_equal(own, given[0]):
            raise DeclarationError(
                f"Profile '{name}': points= {np.array2string(given[0], threshold=6)} and the index of the Series "
                f"{np.array2string(own, threshold=6)} are different points; leave points= out, or give the values "
                "without an index, as initialize=list(...)."
            )
        self._check_knots((own,), name)
        return (own,)

    def construct(self, data: Any = None) -> None:
        """Read the curves."""
        if self._constructed:
            return
        self._constructed = True
        try:
            self._construct_curves()
        except Exception:
            # Pyomo leaves a component that failed on its block; a bad declaration must not change the model.
            block = self.parent_block()
            if block is not None:
                block.del_component(self)
            raise

    def _construct_curves(self) -> None:
        for each in self._anonymous_sets or ():
            each.construct()
        source = self._initialize
        for index in self.index_set():
            if source is None:
                given = None
            elif not self.is_indexed():
                given = source
            elif isinstance(source, Mapping | pd.DataFrame):
                if index not in source:
                    raise DeclarationError(f"Profile '{self.name}': initialize holds no curve for {index!r}.")
                given = source[index]
            elif callable(source):
                given = source(self.parent_block(), *(index if isinstance(index, tuple) else (index,)))
            else:
                given = source
            self._setitem_when_not_present(index, given)

    def _setitem_when_not_present(self, index: Any, value: Any = None) -> Any:
        if index is None and not self.is_indexed():
            data = self._data[index] = self
        else:
            data = self._data[index] = self._ComponentDataClass(component=self)
        data._index = index if self.is_indexed() else UnindexedComponent_index
        if value is not None:
            data.set_value(value)
        return data

    def marks(self) -> list[list[FloatArray]]:
        """Knots of all curves along each axis: where rows that use them may bend or jump."""
        found: list[list[FloatArray]] = [[] for _ in self._over]
        for data in self.values():
            curve = data._curve
            if isinstance(curve, Table):
                for axis, knots in zip(found, curve.knots, strict=True):
                    if not axis or axis[-1] is not knots:
                        axis.append(knots)
        return found

    def _pprint(self) -> Any:
        def describe(_: Any, data: ProfileData) -> list[str]:
            curve = data._curve
            if curve is None:
                return ["no values"]
            if isinstance(curve, Function):
                return [f"function {getattr(curve.function, '__name__', curve.function)}"]
            return [f"{' x '.join(str(len(k)) for k in curve.knots)} points, {curve.kind}, "
                    f"from {curve.values.min():g} to {curve.values.max():g}"]  # fmt: skip

        headers = [
            ("Size", len(self)),
            ("Index", self._index_set if self.is_indexed() else None),
            ("Over", ", ".join(each.name for each in self._over)),
        ]
        return headers, self.items, ("Curve",), describe


class ScalarProfile(ProfileData, Profile):
    """A Profile without ordinary index sets: one curve."""

    def __init__(self, *args: Any, **kwds: Any) -> None:
        ProfileData.__init__(self, component=self)
        Profile.__init__(self, *args, **kwds)
        self._index = UnindexedComponent_index

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except KeyError:
            point = ", ".join(each.local_name for each in self._over)
            raise KeyError(
                f"Profile '{self.name}' is a function of {point}, with round brackets: {self.name}({point})"
            ) from None


class IndexedProfile(Profile):
    """A Profile with one curve for each member of its sets."""

    def __call__(self, *coordinates: Any) -> Any:
        """All curves at one point, as an array in the order of the set."""
        if all(value.__class__ in native_numeric_types for value in coordinates):
            return np.array([self[index](*coordinates) for index in self.index_set()])
        curves = as_array(self)
        found = apply(lambda *trees: profile_node(trees, curves.tree), *coordinates)
        if found.__class__ is not IndexSymbol:
            raise DeclarationError(f"Profile '{self.name}': all its curves are taken at one point, no array of them.")
        return ArrayExpression(found.tree, curves.shape, curves.labels)
