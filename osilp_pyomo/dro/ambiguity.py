"""Ambiguity sets: what is known of a distribution, and how its worst case is written as rows.

Each set writes the dual of ``sup E[loss]`` over its distributions onto a Block: variables, rows over the support, and
the dual objective. Duals of those rows are the worst distribution.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.dro.along import AlongOneLine, in_space
from osilp_pyomo.dro.losses import SumOfMaxima, multiplied, shapes_of_terms
from osilp_pyomo.dro.supports import Region, Support, event_region, lies_within
from osilp_pyomo.errors import OptionError
from osilp_pyomo.index.choice_sets import ChoiceBody
from osilp_pyomo.index.convex_sets import EllipsoidBody
from osilp_pyomo.model.arrays.expressions import Vector
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint
from osilp_pyomo.model.linear import has_free_variable
from osilp_pyomo.model.sets import OneSet
from osilp_pyomo.offline.results import Result

# Takes the model, the random vector, and the scenario where there are scenarios; gives pieces.
Loss = Callable[..., Sequence[Any]]

# Eigenvalues of a correlation matrix below this share of the largest are rounding.
_SINGULAR = 1e-14

# Deviations from a mean at which a random number is looked at.
_STEPS = np.concatenate([np.linspace(-4, 4, 33), np.outer([-1, 1], 2.0 ** np.arange(3, 8)).ravel()])


class Ambiguity(ABC):
    """A set of distributions.

    Examples
    --------
    >>> from osilp_pyomo import dro
    >>> isinstance(dro.Moments.mean_variance((0, None), mean=10, variance=9), dro.Ambiguity)
    True
    """

    @abstractmethod
    def write(self, block: Any, loss: Loss, pieces: int) -> Any:
        """Put the dual of the worst case onto a block, rows as ``block.rows``; return its value as an expression."""

    @abstractmethod
    def write_event(self, block: Any, event: Any) -> Any:
        """Put the dual of the largest probability of an event onto a block, rows as ``block.event``; return it."""

    @abstractmethod
    def example(self) -> Any:
        """Some value of the random vector, to see what a loss returns."""

    @property
    def example_scenario(self) -> tuple[Any, ...]:
        """Some scenario, which a loss may take as a third argument; empty where there are none."""
        return ()

    @abstractmethod
    def atoms(self, result: Result, block: Any) -> pd.DataFrame:
        """Atoms of the worst distribution with their labels and duals, as the column ``probability``."""


@dataclass(frozen=True)
class _Condition:
    """``low <= E[function(xi)] <= high``; bounds may be data of the model, as a mutable Param is."""

    function: Callable[[Any], Any]
    low: Any
    high: Any


class Moments(Ambiguity):
    """All distributions on a support with given expectations of functions, or bounds on them.

    Parameters
    ----------
    support : continuous set, interval (low, high), list of those, or uncertainty set of PyROS
        Where the random number or vector lies; ends may be None or infinite.
    conditions : list
        ``(function, value)`` for an expectation that is known, ``(function, low, high)`` for bounds, of which one may
        be None. A function takes what a loss takes and is written with Pyomo's functions. A bound may be a Param or an
        Expression of data, which is read when the model is solved.
    near : list of numbers, optional
        Where a random number usually lies, for a support without ends: its mean and some deviations around it. They are
        looked at, and tell in which unit the number is measured; without them that is 1.

    Notes
    -----
    The worst expectation of a loss is the smallest ``t + sum_i q_i m_i`` with ``t + sum_i q_i f_i(xi) >= loss(xi)`` for
    all xi of the support (Isii, 1962; there is no gap where the moments lie inside of those that can occur).

    Examples
    --------
    >>> Moments((0, None), [(lambda xi: xi, 1.0), (lambda xi: xi**2, None, 3.0)])
    Moments: 2 expectations known
    """

    def __init__(self, support: Any, conditions: Iterable[Sequence[Any]], *, near: Sequence[float] = ()) -> None:
        self.support = Support(support, "Moments", near)
        self.conditions = tuple(condition_of(each) for each in conditions)
        if not self.conditions:
            raise OptionError(
                "Moments: there is no condition, so that any value of the support may occur for certain; declare the "
                "loss as a SemiInfiniteConstraint over the support instead."
            )

    @classmethod
    def mean_variance(cls, support: Any, mean: float, variance: float, *, at_most: bool = False) -> Moments:
        """A random number with a mean and a variance, or a bound on it."""
        if not variance > 0:
            raise OptionError(
                f"the variance must be a number > 0 (got {variance!r}); with 0 the mean occurs for certain, and "
                "nothing is left to be worst."
            )
        # Written for the number in deviations from its mean, whatever the units: 1, z and z**2 are far from dependent.
        deviation = float(np.sqrt(variance))
        square: tuple[Any, ...] = (lambda xi: ((xi - mean) / deviation) ** 2, None if at_most else 1.0, 1.0)
        near = (mean + deviation * _STEPS).tolist()
        return cls(support, [(lambda xi: (xi - mean) / deviation, 0.0), square], near=near)

    @classmethod
    def mean_covariance(cls, support: Any, mean: ArrayLike, covariance: ArrayLike) -> Moments:
        """A random vector with a mean and a covariance matrix."""
        centre, matrix = _checked_moments(mean, covariance)
        plane = _plane_of(support, matrix)
        if plane is None:
            everywhere = isinstance(support, list) and np.all(np.isinf(Support(support, "Moments").ends()))
            return (
                _MeanAndCovariance(centre, matrix) if everywhere else cls(support, _matrix_conditions(centre, matrix))
            )
        within = _MeanAndCovariance(np.zeros(plane.shape[1]), np.eye(plane.shape[1]))
        return _OnPlane(within, centre, plane)

    @classmethod
    def delage_ye(
        cls,
        support: Any,
        mean: ArrayLike,
        covariance: ArrayLike,
        *,
        mean_within: float = 0.0,
        covariance_within: float = 1.0,
    ) -> Moments:
        """A random vector whose mean and covariance are known in part (Delage and Ye, 2010).

        Its mean lies within ``mean_within`` of the one given, in the square of its distance measured by the covariance;
        around the given mean its second moments are at most ``covariance_within`` times the covariance, as matrices.
        """
        centre, matrix = _checked_moments(mean, covariance)
        plane = _plane_of(support, matrix)
        if plane is None:
            return _BoundedMatrices(support, centre, matrix, mean_within, covariance_within)
        size = plane.shape[1]
        ends = [(None, None)] * size
        return _OnPlane(
            _BoundedMatrices(ends, np.zeros(size), np.eye(size), mean_within, covariance_within), centre, plane
        )

    def __repr__(self) -> str:
        count = len(self.conditions)
        return f"Moments: {count} expectation{'s' * (count > 1)} known"

    def example(self) -> Any:
        return self.support.example()

    def atoms(self, result: Result, block: Any) -> pd.DataFrame:
        return price_atoms(result, block, ["piece"])

    def write(self, block: Any, loss: Loss, pieces: int) -> Any:
        value = self._multiply(block)
        example = loss(block.parent_block(), self.example())
        sums = [k for k, piece in enumerate(example) if isinstance(piece, SumOfMaxima)]
        affine = sums and shapes_of_terms(block, loss, self.support.dimension, self.support.vector) is not None
        if sums and not affine:
            given, sums, pieces = loss, [], len(multiplied(example, "Moments"))
            loss = lambda m, xi: multiplied(given(m, xi), "Moments")  # noqa: E731
        plain = [k for k in range(pieces) if k not in sums]
        if plain:
            block.rows = Region(self.support, "xi").constraint(block, plain, rule=self._rule(loss))
        for piece in sums:
            self._write_sum(block, loss, piece, example[piece].counts)
        return value

    def _write_sum(self, block: Any, loss: Loss, piece: int, counts: tuple[int, ...]) -> None:
        """Rows of a sum of maxima over the support and all choices in its terms."""
        own, rule = self.support.dimension, self._rule(loss)

        def rows(b: Any, number: int, xi: Any) -> Any:
            vector = Vector(xi[:own]) if self.support.vector else xi[0]
            return rule(b, number, vector, iter(xi[own:]))

        choices = OneSet(ChoiceBody(self.support.body(), counts))
        block.add_component(f"sum_{piece}", SemiInfiniteConstraint([piece], choices, rule=rows))

    def write_event(self, block: Any, event: Any) -> Any:
        value = self._multiply(block)
        block.rows = Region(self.support, "xi").constraint(block, range(1), rule=self._rule(lambda m, xi: [0.0]))
        region = event_region(event, self.support)
        if region is not None:
            block.event = region.constraint(block, range(1), rule=self._rule(lambda m, xi: [1.0]))
        return value

    def _multiply(self, block: Any) -> Any:
        """Multipliers of the conditions, and the value of the dual."""
        block.level = pyo.Var()
        block.multiplier = pyo.VarList()
        value = block.level
        for condition in self.conditions:
            for bound, sign in signed_multipliers(condition):
                multiplier = block.multiplier.add()
                if sign > 0:
                    multiplier.setlb(0.0)
                elif sign < 0:
                    multiplier.setub(0.0)
                value = value + bound * multiplier
        return value

    def _rule(self, loss: Loss) -> Callable[..., Any]:
        functions = [condition.function for condition in self.conditions for _ in signed_multipliers(condition)]

        def rule(b: Any, piece: int, xi: Any, chosen: Iterator[Any] | None = None) -> Any:
            left = b.level
            for number, function in enumerate(functions, start=1):
                left = left + function(xi) * b.multiplier[number]
            right = loss(b.parent_block(), xi)[piece]
            if chosen is not None:
                # Of each term that expression which is chosen.
                right = sum(next(chosen) * each for term in right.terms for each in term)
            return left >= right

        return rule


class _MeanAndCovariance(Moments):
    """A mean and a covariance on all of space; losses of one linear function of the vector need a line only."""

    def __init__(self, centre: FloatArray, matrix: FloatArray) -> None:
        super().__init__([(None, None)] * len(centre), _matrix_conditions(centre, matrix))
        units = _units(matrix)
        values, vectors = np.linalg.eigh(matrix / np.outer(units, units))
        self._centre: FloatArray = centre
        self._factor: FloatArray = units[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))

    def write(self, block: Any, loss: Loss, pieces: int) -> Any:
        block.level = pyo.Var()
        line = AlongOneLine.of(block, loss, self._centre)
        if line is None:
            block.del_component("level")
            return super().write(block, loss, pieces)
        return line.write(
            block, self._factor, Region(Support((None, None), "Moments", _STEPS.tolist()), "along").constraint
        )

    def atoms(self, result: Result, block: Any) -> pd.DataFrame:
        found = super().atoms(result, block)
        if block.component("deviations") is None:
            return found
        ways = result.prices[block.deviations].atoms
        way = ways["weight"].abs().to_numpy() @ ways.drop(columns="weight").to_numpy(dtype=float)
        length = float(np.linalg.norm(way))
        # Where the deviation does not matter, nor does it where it is.
        way = way / length if length else np.eye(len(self._centre))[0]
        return in_space(found, way, self._centre, self._factor, self.support.names("xi"))


class _BoundedMatrices(Moments):
    """Means in an ellipsoid, and second moments below a matrix: the multipliers of those are a matrix >= 0."""

    def __init__(self, support: Any, mean: FloatArray, matrix: FloatArray, near: float, times: float) -> None:
        refuse_negative("square of the distance of the mean", near)
        if not times > 0:
            raise OptionError(f"Moments: covariance_within must be a number > 0 (got {times!r}).")
        super().__init__(support, _matrix_conditions(mean, matrix * float(times)))
        self._near = float(near)
        # In the units of the conditions, which are those of times the covariance.
        unit = _units(matrix * float(times))
        values, vectors = np.linalg.eigh(matrix)
        self._axes = np.sqrt(self._near) * (vectors * np.sqrt(np.maximum(values, 0.0))) / unit[:, None]

    def _multiply(self, block: Any) -> Any:
        value, size = super()._multiply(block), len(self._axes)
        slopes = [block.multiplier[k + 1] for k in range(size)]
        bends = iter([block.multiplier[k + 1] for k in range(size, len(block.multiplier))])
        matrix = [(i, j, next(bends)) for i in range(size) for j in range(i + 1)]
        if self._near:
            block.drift = pyo.Var(bounds=(0, None))
            ellipsoid = OneSet(EllipsoidBody(np.zeros(size), self._axes))
            block.means = SemiInfiniteConstraint(
                ellipsoid, rule=lambda b, mean: b.drift >= sum(mean[k] * slopes[k] for k in range(size))
            )
            value = value + block.drift
        if not np.all(np.isinf(self.support.ends())):
            # Over all of space no other matrix keeps the rows of the pieces.
            ball = OneSet(EllipsoidBody(np.zeros(size), np.eye(size)))
            block.matrix = SemiInfiniteConstraint(
                ball, rule=lambda b, way: sum(way[i] * way[j] * bend for i, j, bend in matrix) >= 0
            )
        return value


class _OnPlane(Moments):
    """Moments of a vector that lies in a plane, as a singular covariance has it: those of its coordinates there.

    In all of space the multipliers of a matrix that is not regular would have to grow without end.
    """

    def __init__(self, within: Moments, centre: FloatArray, axes: FloatArray) -> None:
        self.support, self.conditions = within.support, within.conditions
        self._within, self._centre, self._axes = within, centre, axes

    def _place(self, coordinates: Any) -> Any:
        """The vector at coordinates of the plane."""
        return Vector(
            at + sum(part * each for part, each in zip(row, coordinates, strict=True) if part)
            for at, row in zip(self._centre.tolist(), self._axes.tolist(), strict=True)
        )

    def example(self) -> Any:
        return self._place(self._within.example())

    def atoms(self, result: Result, block: Any) -> pd.DataFrame:
        found = self._within.atoms(result, block)
        names = self.support.names("xi")
        points = self._centre + found[names].to_numpy(dtype=float) @ self._axes.T
        placed = pd.DataFrame(points, columns=[f"xi_{k + 1}" for k in range(points.shape[1])], index=found.index)
        return pd.concat([placed, found.drop(columns=names)], axis=1)

    def write(self, block: Any, loss: Loss, pieces: int) -> Any:
        return self._within.write(block, lambda m, at: loss(m, self._place(at)), pieces)

    def write_event(self, block: Any, event: Any) -> Any:
        happens = event if callable(event) else self._happens(event)
        return self._within.write_event(block, lambda at: happens(self._place(at)))

    def _happens(self, event: Any) -> Callable[[Any], Any]:
        """The condition that the vector lies in an event."""
        region = event_region(event, Support([(None, None)] * len(self._centre), "Moments"))
        ends = [] if region is None else list(zip(*(side.tolist() for side in region.support.ends()), strict=True))
        return lambda xi: lies_within(xi, ends)


def _checked_moments(mean: ArrayLike, covariance: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """A mean and a covariance; refused where no distribution has them."""
    centre, matrix = np.array(mean, dtype=float), np.array(covariance, dtype=float)
    if matrix.shape != (len(centre), len(centre)) or not np.allclose(matrix, matrix.T):
        raise OptionError(
            f"Moments: the covariance must be a symmetric matrix for {len(centre)} entries (got shape {matrix.shape})."
        )
    eigenvalues = np.linalg.eigvalsh(matrix)
    if eigenvalues[0] < -1e-12 * eigenvalues[-1]:
        raise OptionError("Moments: the covariance has a negative eigenvalue, which no distribution has.")
    return centre, matrix


def _matrix_conditions(centre: FloatArray, matrix: FloatArray) -> list[Sequence[Any]]:
    """Expectations of the entries and of their products, each in deviations."""
    unit, middle = _units(matrix).tolist(), centre.tolist()

    def entry(xi: Any, i: int) -> Any:
        return (xi[i] - middle[i]) / unit[i]

    conditions: list[Sequence[Any]] = [(lambda xi, i=i: entry(xi, i), 0.0) for i in range(len(centre))]
    conditions += [
        (lambda xi, i=i, j=j: entry(xi, i) * entry(xi, j), matrix[i, j] / (unit[i] * unit[j]))
        for i in range(len(centre))
        for j in range(i + 1)
    ]
    return conditions


def _units(matrix: FloatArray) -> FloatArray:
    """Standard deviations of a covariance; 1 where there is none."""
    variances = np.diagonal(matrix)
    units: FloatArray = np.sqrt(np.where(variances > 0, variances, 1.0))
    return units


def _plane_of(support: Any, matrix: FloatArray) -> FloatArray | None:
    """The axes of the plane in which vectors with a singular covariance lie; None where it is all of space.

    Of a support with ends it would be a part only.
    """
    if not isinstance(support, list) or not np.all(np.isinf(Support(support, "Moments").ends())):
        return None
    units = _units(matrix)
    values, vectors = np.linalg.eigh(matrix / np.outer(units, units))
    spread = values > _SINGULAR * values[-1]
    if spread.all() or not spread.any():
        return None
    axes: FloatArray = units[:, None] * vectors[:, spread] * np.sqrt(values[spread])
    return axes


def signed_multipliers(condition: _Condition) -> list[tuple[Any, int]]:
    """Multipliers of a condition: the bound each belongs to, and its sign (0 for either)."""
    if condition.low is condition.high or _is(condition.low == condition.high):
        return [(condition.high, 0)]
    return [
        (bound, sign) for bound, sign in ((condition.high, 1), (condition.low, -1)) if not _is(abs(bound) == np.inf)
    ]


def _is(comparison: Any) -> bool:
    """Whether numbers compare so; of data that is read later it is not known."""
    return comparison is True or (isinstance(comparison, np.bool_) and bool(comparison))


def number_or_data(given: Any, what: str) -> Any:
    """A number as a float; a Param or Expression of data as it is; refuses what holds a decision."""
    if not hasattr(given, "is_expression_type"):
        return float(given)
    if has_free_variable(given):
        raise OptionError(
            f"{what}: it holds a decision, by which the multipliers of the worst case would be multiplied; give a "
            "number, a Param or an Expression of data. For a price of distance that is decided upon use "
            "Wasserstein(samples, price=...)."
        )
    return given if not given.is_constant() else float(pyo.value(given))


def condition_of(given: Sequence[Any]) -> _Condition:
    """A condition as it was given: a function with its value or bounds."""
    if not isinstance(given, tuple | list) or len(given) not in (2, 3) or not callable(given[0]):
        raise OptionError(f"Moments: a condition must be (function, value) or (function, low, high) (got {given!r}).")
    low, high = (given[1], given[1]) if len(given) == 2 else given[1:]
    what = "right-hand side of a condition of Moments"
    if len(given) == 2:
        low = high = number_or_data(given[1], what)
    else:
        low = -np.inf if low is None else number_or_data(low, what)
        high = np.inf if high is None else number_or_data(high, what)
    numbers = [bound for bound in (low, high) if isinstance(bound, float)]
    wrong = any(map(np.isnan, numbers)) or (all(map(np.isinf, numbers)) and len(numbers) == 2)
    if wrong or (len(numbers) == 2 and low > high):
        raise OptionError(
            f"Moments: an expectation must lie between bounds low <= high, one of them finite (got {given[1:]})."
        )
    return _Condition(given[0], low, high)


def refuse_negative(what: str, value: float) -> None:
    """Refuse a negative number, and what is none."""
    if not value >= 0:
        raise OptionError(f"the {what} must be a number >= 0 (got {value!r}).")


def price_atoms(result: Result, block: Any, labels: Sequence[str]) -> pd.DataFrame:
    """Atoms of the prices of a block's semi-infinite rows; ``labels`` name the ordinary indices of its families."""
    frames = []
    parts = [part for part in block.component_map().values() if isinstance(part, SemiInfiniteConstraint)]
    for part in parts:
        if part.local_name not in ("rows", "event") and not part.local_name.startswith("sum_"):
            continue
        for family in part.values():
            index = family.index() if isinstance(family.index(), tuple) else (family.index(),)
            atoms = result.prices[family].atoms.rename(columns={"weight": "probability"})
            # The sign of a price depends on the side on which the user's variables stand; rows have one limit only.
            atoms["probability"] = atoms["probability"].abs()
            if part.local_name.startswith("sum_"):
                atoms = _of_vector(atoms, block.ambiguity.support)
            atoms.columns = [str(name).replace("xi_event", "xi") for name in atoms.columns]
            coordinates = [name for name in atoms.columns if name != "probability"]
            named = atoms.assign(**dict(zip(labels, index, strict=True)))
            frames.append(named[[*coordinates, *labels, "probability"]])
    # An empty frame would turn whole numbers into others.
    return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)


def _of_vector(atoms: pd.DataFrame, support: Support) -> pd.DataFrame:
    """Atoms over a vector and choices without what is chosen; a vector that several choices share once."""
    names = support.names("xi")
    kept = atoms[[*atoms.columns[: len(names)], "probability"]].set_axis([*names, "probability"], axis=1)
    joined: pd.DataFrame = kept.groupby(names, as_index=False, sort=False).sum()
    return joined
