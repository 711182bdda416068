"""The continuous index set: a box, a subset of it, and the places worth looking at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osilp_pyomo._arrays import BoolArray as BoolArray
from osilp_pyomo._arrays import FloatArray as FloatArray
from osilp_pyomo.errors import DomainError
from osilp_pyomo.index.convex_sets import Body
from osilp_pyomo.index.enclosures.regions import Region

# Dimensions of a set in which boxes are looked at; in more they are too many for any proof.
_MOST_ENCLOSED = 12
# Share of the way to the middle of a set by which vectors are kept from its border.
_INSIDE = 1e-9
# A place this share of the width beyond an end is at it.
_ROUNDING = 1e-12

Predicate = Callable[[FloatArray], BoolArray]


@dataclass(frozen=True, eq=False)
class Domain:
    """A box ``lower <= u <= upper``, restricted to where ``inside`` is true, or to a set of uncertain vectors.

    Parameters
    ----------
    names : tuple of str
        One name per coordinate, as the user wrote it.
    lower, upper : array
        The box; a side may be infinite.
    inside : callable, optional
        Takes points (m, d), returns m booleans: the row holds only where it is true.
    marks : tuple of arrays
        For each coordinate, places where something may happen between two scan points: knots of
        measured curves, points the user put into the set.
    body : Body, optional
        The set itself, where it is one of uncertain vectors: ``inside`` then tells its members.
    region : Region, optional
        What is known of ``inside`` over boxes; where there is none, a proof has to hold on the whole box.

    Examples
    --------
    >>> box = Domain.box(u=(0, 2), v=(0, 1))
    >>> box.volume
    2.0
    >>> print(box)
    u in [0, 2], v in [0, 1]
    """

    names: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    inside: Predicate | None = None
    marks: tuple[FloatArray, ...] = ()
    body: Body | None = None
    region: Region | None = None

    def __post_init__(self) -> None:
        lower = np.array(self.lower, dtype=float).reshape(-1)
        upper = np.array(self.upper, dtype=float).reshape(-1)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        if not self.marks:
            object.__setattr__(self, "marks", tuple(np.empty(0) for _ in self.names))
        if not len(self.names) == len(lower) == len(upper) == len(self.marks) >= 1:
            raise DomainError(
                f"Domain {self.names}: names, lower, upper and marks must have one entry a coordinate "
                f"(got {len(self.names)}, {len(lower)}, {len(upper)} and {len(self.marks)})."
            )
        if self.body is not None:
            object.__setattr__(self, "inside", self.body.contains)
            if self.dimension <= _MOST_ENCLOSED:
                object.__setattr__(self, "region", self.body.region())
            return
        for name, low, high in zip(self.names, lower, upper, strict=True):
            if not low < high:
                raise DomainError(
                    f"Index '{name}': its bounds [{low:g}, {high:g}] hold no interval; the lower bound "
                    "must be below the upper one."
                )

    def __getstate__(self) -> dict[str, object]:
        """A user's condition is code and does not travel; asking for it afterwards is an error, not a guess."""
        state = dict(self.__dict__)
        if self.inside is not None and self.body is None:
            state["inside"] = LeftBehind(str(self))
            state["region"] = None
        return state

    @classmethod
    def box(cls, inside: Predicate | None = None, **bounds: tuple[float, float]) -> Domain:
        """Build a domain from ``name=(lower, upper)``."""
        return cls(
            tuple(bounds),
            np.array([low for low, _ in bounds.values()], dtype=float),
            np.array([high for _, high in bounds.values()], dtype=float),
            inside,
        )

    @classmethod
    def of_body(cls, names: tuple[str, ...], body: Body) -> Domain:
        """The domain of a set of uncertain vectors."""
        return cls(names, body.lower, body.upper, body=body)

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.names)

    @cached_property
    def width(self) -> FloatArray:
        """Length of each side; of a set of vectors 1 for a side on which nothing is uncertain, or without an end."""
        width = self.upper - self.lower
        return width if self.body is None else np.where((width > 0) & np.isfinite(width), width, 1.0)

    def moved_to(self, other: Domain, points: FloatArray) -> FloatArray:
        """Vectors of a set where they stand in another that has grown or moved: at the same shares of its box.

        A hair inside of its border, for what rounding leaves outside is no vector of it.
        """
        if self is other or self.body is None or other.body is None or not other.body.convex:
            return points
        if not (self.bounded and other.bounded):
            return points
        if np.array_equal(self.lower, other.lower) and np.array_equal(self.upper, other.upper):
            # A hair would be a coefficient of its own, so small that a solver leaves it out.
            return points
        moved = other.lower + (points - self.lower) * (other.width / self.width)
        return moved + _INSIDE * (other.body.centre - moved)

    def outside(self, coordinates: Sequence[float | None]) -> str | None:
        """In words, which of some coordinates lies outside of the box by more than a rounding; None where none does."""
        for name, at, low, high in zip(self.names, coordinates, self.lower, self.upper, strict=True):
            if at is not None and not low - _ROUNDING * (high - low) <= at <= high + _ROUNDING * (high - low):
                return f"{name} = {at:g}, outside of [{low:g}, {high:g}]"
        return None

    @property
    def volume(self) -> float:
        """Volume of the box, whatever ``inside`` leaves of it."""
        return float(np.prod(self.width))

    @cached_property
    def bounded(self) -> bool:
        """Whether every side is finite."""
        return bool(np.all(np.isfinite(self.lower) & np.isfinite(self.upper)))

    def contains(self, points: FloatArray) -> BoolArray:
        """Tell which of the points (m, d) belong to the domain."""
        if self.body is not None:
            return self.body.contains(points)
        within = np.all((points >= self.lower) & (points <= self.upper), axis=1)
        if self.inside is not None:
            within[within] &= self.inside(points[within])
        return within

    def points(self, coordinates: ArrayLike) -> FloatArray:
        """Bring coordinates into the form (m, d), and refuse points outside the box."""
        array = np.asarray(coordinates, dtype=float)
        if array.ndim < 2:
            array = array.reshape(-1, 1) if self.dimension == 1 else array.reshape(1, -1)
        if array.ndim != 2 or array.shape[1] != self.dimension:
            raise DomainError(
                f"Index {self}: points must come as an array of {self.dimension} columns "
                f"(got shape {np.shape(coordinates)})."
            )
        box = np.all((array >= self.lower) & (array <= self.upper), axis=1)
        outside = ~(box if self.body is None else self.body.contains(array))
        if outside.any():
            raise DomainError(
                f"Index {self}: the point {self.describe(array[outside][0])} lies outside; "
                f"give points within the {'bounds' if self.body is None else 'set'}."
            )
        return array

    def describe(self, point: FloatArray) -> str:
        """Write one point with the coordinates' names."""
        return ", ".join(f"{n} = {value:.10g}" for n, value in zip(self.names, point, strict=True))

    def label(self, point: FloatArray) -> float | tuple[float, ...]:
        """Give one point as the user would write it: a number, or a tuple of them."""
        values = tuple(float(value) for value in point)
        return values[0] if len(values) == 1 and self.body is None else values

    def __str__(self) -> str:
        if self.body is not None:
            vectors = dict.fromkeys(name.split("[")[0] for name in self.names)
            return f"{', '.join(vectors)} in {self.body}"
        parts = []
        for name, low, high in zip(self.names, self.lower, self.upper, strict=True):
            digits = "g" if f"{low:g}" != f"{high:g}" else ".15g"
            left = "(-inf" if np.isneginf(low) else f"[{low:{digits}}"
            right = "inf)" if np.isposinf(high) else f"{high:{digits}}]"
            parts.append(f"{name} in {left}, {right}")
        text = ", ".join(parts)
        return f"{text} where declared" if self.inside is not None else text


@dataclass(frozen=True)
class LeftBehind:
    """Stands for a 'where' condition that was not saved with its domain."""

    domain: str

    def __call__(self, points: FloatArray) -> BoolArray:
        raise DomainError(
            f"Index {self.domain}: its 'where' condition was left behind when the result was saved; solve the model "
            "again."
        )


class PointFunction:
    """A user's function of the coordinates, called on points (m, d), all at once where it allows that.

    A function written for single numbers (``if u > 0.5``, ``and``) fails on arrays, gives back the wrong
    number of values, or other values than point by point; it is then called point by point.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._vectorised: bool | None = None

    def __call__(self, points: FloatArray) -> NDArray[np.generic]:
        if not len(points):
            return np.empty(0)
        if self._vectorised is not False:
            try:
                values = np.asarray(self._function(*points.T))
            except Exception:  # the user's code; what is wrong for single numbers too is raised below
                self._vectorised = False
            else:
                usable = values.shape == (len(points),) and values.dtype != object
                if self._vectorised is None:
                    probes = np.unique(np.linspace(0, len(points) - 1, 5).astype(int))
                    self._vectorised = usable and bool(
                        # SIMD and scalar functions of numpy differ in the last bit.
                        np.allclose(
                            values[probes].astype(float),
                            self._one_by_one(points[probes]).astype(float),
                            rtol=1e-9,
                            atol=0,
                            equal_nan=True,
                        )
                    )
                if usable and self._vectorised:
                    return values
        return self._one_by_one(points)

    def _one_by_one(self, points: FloatArray) -> NDArray[np.generic]:
        return np.array([self._function(*map(float, point)) for point in points])


def on_points(function: Callable[..., object], points: FloatArray) -> NDArray[np.generic]:
    """Call a user's function of the coordinates once on points (m, d)."""
    return PointFunction(function)(points)
