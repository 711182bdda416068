"""Decisions that are functions, as functions of numbers: what a result says of a rule or a curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._displays import Shown, draw
from osilp_pyomo.errors import DataError, DomainError
from osilp_pyomo.index.curves.spaces import CurveFunctions, FunctionSpace, VectorFunctions

# Share of the largest term below which a term is not printed.
_SMALL = 1e-7


@dataclass(frozen=True, eq=False)
class FunctionValue(Shown):
    """A decision rule or a curve with its coefficients: call it with numbers.

    A rule takes a vector, an array (n, d) of vectors, a Series, or a frame with one vector per row; a curve takes its
    coordinates, numbers or arrays. What comes back has the same form.

    Attributes
    ----------
    name : str
    coefficients : Series
        By the function that each multiplies: "1", "xi[0]", ... of a rule, 0, 1, ... of a curve.

    Examples
    --------
    >>> import numpy as np
    >>> from osilp_pyomo.index.curves.spaces import VectorFunctions
    >>> from osilp_pyomo.offline.functions.values import FunctionValue
    >>> rule = FunctionValue("order", VectorFunctions.affine(("xi[0]", "xi[1]"), [0]), np.array([2.0, 0.5]), np.ones(2))
    >>> rule
    order(xi) = 2 + 0.5*xi[0]
    >>> rule([4.0, 9.0])
    4.0
    """

    card = "function"

    name: str
    space: FunctionSpace
    numbers: FloatArray
    sizes: FloatArray

    @property
    def coefficients(self) -> pd.Series:
        """The coefficients by function."""
        index = pd.Index(list(self.space.labels), name="function", tupleize_cols=False)
        return pd.Series(self.numbers + 0.0, index=index, name=self.name)

    def __call__(self, *point: Any) -> Any:
        return self._value(point, None)

    def derivative(self, *point: Any, order: Any = 1) -> Any:
        """The derivative of a curve; with several coordinates ``order`` is one number for each."""
        orders = tuple(order) if isinstance(order, tuple | list) else (order,)
        if len(orders) != self.space.dimension:
            raise DataError(
                f"'{self.name}': the order of a derivative must be one number for each of its {self.space.dimension} "
                f"coordinates (got {order!r})."
            )
        return self._value(point, orders)

    def _value(self, point: Sequence[Any], order: Sequence[int] | None) -> Any:
        if isinstance(self.space, VectorFunctions):
            return self._at_vectors(point, order)
        if len(point) != self.space.dimension:
            raise DataError(
                f"'{self.name}': it is a function of {', '.join(self.space.coordinates)} (got {len(point)} arguments)."
            )
        arrays = np.broadcast_arrays(*(np.asarray(each, dtype=float) for each in point))
        points = np.stack([each.ravel() for each in arrays], axis=1)
        if len(points):
            assert isinstance(self.space, CurveFunctions)
            ends = (points.min(axis=0).tolist(), points.max(axis=0).tolist())
            outside = next(filter(None, map(self.space.domain.outside, ends)), None)
            if outside is not None:
                raise DomainError(f"'{self.name}': asked for its value at {outside}, on which it is declared.")
        values = (self.space.evaluate(points, order) @ self.numbers).reshape(arrays[0].shape)
        series = next((each for each in point if isinstance(each, pd.Series)), None)
        if series is not None:
            return pd.Series(values, index=series.index, name=self.name)
        return values if values.ndim else float(values)

    def _at_vectors(self, point: Sequence[Any], order: Sequence[int] | None) -> Any:
        given = point[0] if len(point) == 1 else None
        frame = given if isinstance(given, pd.DataFrame) else None
        if frame is not None:
            vectors = vectors_of(frame, self.space.coordinates, f"'{self.name}'")
        elif isinstance(given, Mapping | pd.Series):
            # Entries have names here, and may come in any order.
            one = pd.DataFrame([list(given.values()) if isinstance(given, Mapping) else given.to_numpy()])
            one.columns = list(given.keys())
            vectors = vectors_of(one, self.space.coordinates, f"'{self.name}'")[0]
        else:
            vectors = self._as_vectors(point)
        if vectors.shape[-1:] != (self.space.dimension,):
            raise DataError(
                f"'{self.name}': it is a function of a vector of dimension {self.space.dimension} (got an array of "
                f"shape {vectors.shape})."
            )
        values = self.space.evaluate(np.atleast_2d(vectors), order) @ self.numbers
        if frame is not None:
            return pd.Series(values, index=frame.index, name=self.name)
        return values if vectors.ndim > 1 else float(values[0])

    def _as_vectors(self, point: Sequence[Any]) -> FloatArray:
        """One vector, or several, of parts that stand one behind the other."""
        try:
            parts = [np.atleast_1d(np.asarray(each, dtype=float)) for each in point]
            return np.concatenate(parts, axis=-1) if parts else np.empty(0)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"'{self.name}': it is a function of a vector of dimension {self.space.dimension}, numbers in a list, "
                f"an array, a dict, a Series or the rows of a frame ({error})."
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """What there is to know of it as plain lists and numbers, for use without Pyomo or this package."""
        told: dict[str, Any] = {
            "name": self.name,
            "coordinates": list(self.space.coordinates),
            "coefficients": (self.numbers + 0.0).tolist(),
        }
        if isinstance(self.space, VectorFunctions):
            # Each function is the product of these entries of the vector.
            told["products"] = [list(each) for each in self.space.monomials]
        else:
            assert isinstance(self.space, CurveFunctions)
            told["basis"] = repr(self.space.basis)
            told["lower"], told["upper"] = self.space.domain.lower.tolist(), self.space.domain.upper.tolist()
        return told

    def plot(self, *, figure: Any = None) -> Any:
        """Draw it: a curve over its index, a rule by what each entry of the vector changes; needs matplotlib.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib Figure or SubFigure
        """
        return draw("function", self, figure=figure)

    def __str__(self) -> str:
        return f"{self.name}({self._argument()}) = {self._formula()}"

    __repr__ = __str__

    def _argument(self) -> str:
        if isinstance(self.space, VectorFunctions):
            return ", ".join(dict.fromkeys(name.rpartition("[")[0] or name for name in self.space.coordinates))
        return ", ".join(self.space.coordinates)

    def _formula(self) -> str:
        """Its terms, without those that change nothing; how many those are is told."""
        if not isinstance(self.space, VectorFunctions):
            shown = [_term(number, text) for number, text in zip(self.numbers, self.space.texts(), strict=True)]
            many = len(shown) > 8
            return _joined([*shown[:4], "...", shown[-1]] if many else shown)
        reach = np.array([np.prod(self.sizes[list(each)]) for each in self.space.monomials])
        effect = np.abs(self.numbers) * reach
        kept = effect > _SMALL * effect.max(initial=0.0)
        terms = [
            _term(number, text)
            for number, text, keep in zip(self.numbers, self.space.texts(), kept, strict=True)
            if keep
        ]
        dropped = int(np.count_nonzero(~kept & (self.numbers != 0)))
        left_out = (
            f"  ({dropped} term{'s' * (dropped > 1)} below {_SMALL:g} of the largest left out)" if dropped else ""
        )
        return (_joined(terms) or "0") + left_out


def _term(number: float, text: str) -> str:
    """A multiple of a function as it is written by hand: without a factor of one."""
    factor = f"{number:.6g}"
    if text == "1":
        return factor
    return {"1": text, "-1": f"-{text}"}.get(factor, f"{factor}*{text}")


def _joined(terms: Sequence[str]) -> str:
    """Terms as a sum."""
    text = " + ".join(terms)
    return text.replace("+ -", "- ")


def vectors_of(frame: pd.DataFrame, coordinates: Sequence[str], what: str) -> FloatArray:
    """Vectors from the rows of a frame, whose columns are entries by name or by number, or as many as there are."""
    columns, names = list(frame.columns), list(coordinates)
    known = set(names) & set(columns)
    if len(known) == len(names):
        chosen = frame[names]
    elif set(range(len(names))) <= set(columns):
        chosen = frame[list(range(len(names)))]
    elif len(columns) == len(names) and not known:
        chosen = frame
    else:
        missing = [name for name in names if name not in known]
        got = f"has no {', '.join(missing[:4])}" if known else f"has {len(columns)} columns"
        raise DataError(
            f"{what}: its vector has the entries {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}, "
            f"{len(names)} in all, and the frame {got}; name them so, or give one column per entry in their order."
        )
    if len(chosen.columns) != len(names):
        raise DataError(f"{what}: the frame of vectors has two columns of one name; give one for each entry.")
    try:
        vectors = chosen.to_numpy(dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what}: the frame of vectors must hold numbers ({error}).") from None
    if not np.all(np.isfinite(vectors)):
        row = int(np.argwhere(~np.isfinite(vectors))[0][0])
        raise DataError(f"{what}: row {frame.index[row]!r} of the frame of vectors holds no finite number.")
    return vectors
