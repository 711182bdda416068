"""Uncertainty sets from data: shaped by some rows, sized by the others, with a guarantee for the rows still to come.

A set of some shape is blown up until it holds enough rows that had no part in its shape. How many are enough is a
question of order statistics only, so that nothing is assumed of the distribution: no normal law, no moments, no density
(Wilks, 1941; Vovk, 2012, "Conditional validity of inductive conformal predictors", proposition 2a; for robust
optimization Hong, Huang and Lam, 2021, "Learning-based robust optimization: procedures and statistical guarantees").

The guarantee is for rows that are drawn independently from one distribution, and for a set that was chosen before the
data were looked at: whoever tries seeds or kinds until one looks best has no guarantee for the best one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pyomo.contrib.pyros.uncertainty_sets import BoxSet, CardinalitySet, EllipsoidalSet, PolyhedralSet, UncertaintySet
from scipy.linalg import solve_triangular
from scipy.stats import binom, binomtest

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._frames import as_pandas
from osilp_pyomo._options import SEED
from osilp_pyomo.errors import OptionError
from osilp_pyomo.model.sets import body_of, is_uncertainty_set

__all__ = ["Held", "check", "from_data"]

# Rows that a shape needs: with one alone no column has a spread.
_SHAPE_ROWS = 2
# The least deviation along a direction that is no axis, in deviations of the columns: a set that solvers can see.
_THIN = 1e-3
# Numbers whose squares are still far from overflow.
_LARGEST = 1e100
# Membership is told up to 1e-8 of the numbers' size; a side must be so much wider for that not to count.
_NARROW, _ROUNDING = 1e-5, 1e-12


class _Shape(NamedTuple):
    """A family of nested sets: ``of_size(t)`` holds exactly the points whose score is at most t."""

    score: Callable[[FloatArray], FloatArray]
    of_size: Callable[[float], UncertaintySet]


def from_data(
    frame: Any,
    coverage: float = 0.95,
    kind: str = "box",
    *,
    confidence: float = 0.95,
    fit: float = 0.5,
    seed: int = 0,
) -> UncertaintySet:
    """An uncertainty set that holds a new draw with probability ``coverage``, with ``confidence``, by a finite sample.

    Parameters
    ----------
    frame : DataFrame or array
        Rows that were drawn independently from one distribution; a column for each entry of the uncertain vector.
    coverage : float
        Probability with which the set must hold a new draw.
    kind : "box", "ellipsoid", "budget" or "polyhedron"
        A BoxSet, EllipsoidalSet, CardinalitySet or PolyhedralSet of PyROS; see Notes.
    confidence : float
        Probability, over the draw of the rows, with which that must be achieved.
    fit : float
        Share of the rows that shape the set; the others size it.
    seed : int
        Of the random split of the rows into these two parts; fixed before the data are looked at.

    Returns
    -------
    UncertaintySet
        An index for :class:`~osilp_pyomo.SemiInfiniteConstraint`, or a set for PyROS.

    Notes
    -----
    **Theorem.** Let n rows size the set, let k be the smallest number with
    ``P(Bin(n, coverage) >= k) <= 1 - confidence``, and let the size be the k-th smallest of their scores. Then,
    whatever the distribution, with probability at least ``confidence`` over these rows the set holds a new draw with
    probability at least ``coverage``.

    *Proof.* Given the rows that shape the set, scores are independent; let F be their distribution function, and q the
    smallest number with ``F(q) >= coverage``. If the k-th smallest score is at least q, the set holds a new draw with
    probability at least ``F(q) >= coverage``. Otherwise k scores or more are below q, each with probability
    ``P(score < q) <= coverage``, which happens with probability at most ``P(Bin(n, coverage) >= k) <= 1 - confidence``.

    There is such a k <= n where ``coverage**n <= 1 - confidence``: 59 rows for 0.95 with confidence 0.95.

    Deviations are from the median of a column, in units of the median absolute one (the mean absolute one if that is
    zero). The scores of a row, whose level sets the kinds are exactly, are

    - box: its largest deviation;
    - ellipsoid: its Mahalanobis distance from the mean, by the sample covariance. Where that is singular (too few rows,
      or columns that depend on each other) correlations are shrunk towards none (Chen, Wiesel, Eldar and Hero, 2010);
    - budget: the larger of its largest deviation and of the sum of its deviations divided by gamma, where gamma is the
      ratio of the ``coverage``-quantiles of sum and largest in the rows that shape it; the set of Bertsimas and Sim;
    - polyhedron: its largest deviation along the axes and along the principal directions of the deviations, where
      typical ones are shrunk alike.

    None of them depends on the units of the columns. A column that is constant in the rows that shape the set has no
    width; an ellipsoid cannot have such a side.

    Examples
    --------
    >>> import numpy as np
    >>> from osilp_pyomo import sets
    >>> demand = np.random.default_rng(1).normal([10, 20], [1, 3], size=(400, 2))
    >>> box = sets.from_data(demand, coverage=0.9)
    >>> np.round(box.bounds, 2)
    array([[ 7.77, 11.81],
           [13.29, 26.54]])

    Fewer rows than the guarantee needs are refused:

    >>> sets.from_data(demand[:100])
    Traceback (most recent call last):
        ...
    osilp_pyomo.errors.OptionError: from_data: a coverage of 0.95 with confidence 0.95 needs at least 59 rows ...
    """
    table = _table(frame, "from_data")
    for name, value in (("coverage", coverage), ("confidence", confidence), ("fit", fit)):
        _check_share(name, value, "from_data")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise OptionError(f"from_data: kind must be one of {', '.join(map(repr, _KINDS))} (got {kind!r}).")
    SEED.check(seed, "from_data")
    shaping = _shaping(len(table), fit)
    rank = _rank(len(table) - shaping, coverage, confidence)
    if rank > len(table) - shaping or shaping < _SHAPE_ROWS:
        raise OptionError(_too_few(len(table), coverage, confidence, fit))
    rows = table.to_numpy()[np.random.default_rng(seed).permutation(len(table))]
    return _sized(rows[:shaping], rows[shaping:], rank, kind, float(coverage), list(table))


def _sized(shaping: FloatArray, sizing: FloatArray, rank: int, kind: str, coverage: float, names: list[Any]) -> Any:
    """The set that the first rows shape, as large as the score of that rank among the others."""
    constant = [names[j] for j in np.flatnonzero(shaping.min(axis=0) == shaping.max(axis=0))]
    if kind == "ellipsoid" and constant:
        raise OptionError(
            f"from_data: an ellipsoid has a width on every side, but {_columns(constant)} constant in the "
            f"{len(shaping)} rows that shape it; leave out what is constant, or choose another kind."
        )
    shape = _KINDS[kind](shaping, coverage)
    size = float(np.sort(shape.score(sizing))[rank - 1])
    if not math.isfinite(size):
        raise OptionError(
            f"from_data: {_columns(constant)} constant in the {len(shaping)} rows that shape the set, but too often "
            f"not in the {len(sizing)} rows that size it, which no size makes up for; give more rows, or a larger fit."
        )
    return shape.of_size(size)


class Held(NamedTuple):
    """How much of some data a set holds, as :func:`check` tells it.

    Attributes
    ----------
    share : float
        Share of the rows inside of the set.
    lower, upper : float
        Exact interval of Clopper and Pearson for the probability that the set holds a new draw.
    rows : int
        Number of rows.
    outside : tuple
        Labels of the rows outside of the set: those of the frame's index, or positions in an array.
    confidence : float
        That of the interval.

    Examples
    --------
    >>> print(Held(0.9, 0.555, 0.997, 10, (3,), 0.95))
    90.0 % of 10 rows inside (55.5 % to 99.7 % with confidence 0.95), 1 outside
    """

    share: float
    lower: float
    upper: float
    rows: int
    outside: tuple[Any, ...]
    confidence: float

    def __str__(self) -> str:
        interval = f"{self.lower:.1%} to {self.upper:.1%} with confidence {self.confidence:g}".replace("%", " %")
        return f"{100 * self.share:.1f} % of {self.rows} rows inside ({interval}), {len(self.outside)} outside"


def check(uncertainty_set: UncertaintySet, frame: Any, *, confidence: float = 0.95) -> Held:
    """The share of rows that a set holds, with its exact interval, and the rows outside.

    Rows that neither shaped nor sized the set say how probably it holds a new draw; those that did flatter it.

    Parameters
    ----------
    uncertainty_set : UncertaintySet
        Any set of PyROS that can be an index.
    frame : DataFrame or array
        Rows with a column for each dimension of the set.
    confidence : float
        That of the interval of Clopper and Pearson (1934).

    Examples
    --------
    >>> import numpy as np
    >>> from osilp_pyomo import sets
    >>> demand = np.random.default_rng(1).normal([10, 20], [1, 3], size=(1400, 2))
    >>> box = sets.from_data(demand[:400], coverage=0.9)
    >>> print(sets.check(box, demand[400:]))
    92.6 % of 1000 rows inside (90.8 % to 94.1 % with confidence 0.95), 74 outside
    """
    if not is_uncertainty_set(uncertainty_set):
        raise OptionError(f"check: the set must be an uncertainty set of PyROS (got {uncertainty_set!r}).")
    _check_share("confidence", confidence, "check")
    table = _table(frame, "check")
    body = body_of(uncertainty_set, "check")
    if table.shape[1] != body.dimension:
        raise OptionError(
            f"check: the rows must have a column for each of the {body.dimension} dimensions of the set "
            f"(got {table.shape[1]} columns)."
        )
    _refuse_narrow(body.lower, body.upper)
    inside = body.contains(table.to_numpy())
    interval = binomtest(int(inside.sum()), len(table)).proportion_ci(confidence, method="exact")
    outside = tuple(table.index[~inside].tolist())
    return Held(float(inside.mean()), float(interval.low), float(interval.high), len(table), outside, confidence)


def _refuse_narrow(lower: FloatArray, upper: FloatArray) -> None:
    """Refuse to tell members where the rounding that membership allows is no longer small beside the set."""
    size, width = np.maximum(1.0, np.maximum(np.abs(lower), np.abs(upper))), upper - lower
    narrow = (width > _ROUNDING * size) & (width < _NARROW * size)
    if narrow.any():
        side = int(np.argmax(narrow))
        raise OptionError(
            f"check: side {side} of the set must be wider than {_NARROW:g} times the size of its numbers, at least 1, "
            f"for rows to be told apart (got a width of {width[side]:.3g} around {(lower + upper)[side] / 2:.6g}); "
            "subtract an offset, or choose smaller units."
        )


def _table(frame: Any, what: str) -> pd.DataFrame:
    """The data as a frame of finite floats, with the names that errors use."""
    try:
        frame = as_pandas(frame)
        table = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(_matrix(frame))
    except (TypeError, ValueError) as error:
        raise OptionError(f"{what}: the data must be a frame or rows of numbers ({error}).") from error
    if not table.size:
        raise OptionError(f"{what}: the data must have rows and columns (got shape {table.shape}).")
    columns = [_numbers(table.iloc[:, j], what) for j in range(table.shape[1])]
    return pd.DataFrame(np.column_stack(columns), index=table.index, columns=table.columns)


def _matrix(data: Any) -> Any:
    array = np.asarray(data)
    if array.ndim not in (1, 2):
        raise ValueError(f"got shape {array.shape}")
    return array


def _numbers(column: pd.Series[Any], what: str) -> FloatArray:
    if column.dtype.kind not in "biuf":
        raise OptionError(f"{what}: column {column.name!r} must hold numbers (got values of type {column.dtype}).")
    numbers: FloatArray = column.to_numpy(dtype=float, na_value=np.nan)
    wrong = ~(np.abs(numbers) <= _LARGEST)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise OptionError(
            f"{what}: column {column.name!r} must hold finite numbers, at most {_LARGEST:g} "
            f"(got {numbers[at]:g} in row {column.index[at]!r}; {int(wrong.sum())} such in all)."
        )
    return numbers


def _check_share(name: str, value: Any, what: str) -> None:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < 1:
        raise OptionError(f"{what}: {name} must be a number between 0 and 1, without these (got {value!r}).")


def _shaping(rows: int, fit: float) -> int:
    return int(fit * rows)


def _rank(rows: int, coverage: float, confidence: float) -> int:
    """The smallest k with ``P(Bin(rows, coverage) >= k) <= 1 - confidence``; ``rows + 1`` where all are too few."""
    risk = 1 - confidence
    rank = int(binom.isf(risk, rows, coverage)) + 1 if rows else 1
    # The quantile is found by rounded numbers; the definition itself has the last word.
    while binom.sf(rank - 1, rows, coverage) > risk:
        rank += 1
    while rank > 1 and binom.sf(rank - 2, rows, coverage) <= risk:
        rank -= 1
    return rank


def _too_few(rows: int, coverage: float, confidence: float, fit: float) -> str:
    sizing = max(1, math.ceil(math.log1p(-confidence) / math.log(coverage)) - 1)
    while _rank(sizing, coverage, confidence) > sizing:
        sizing += 1
    needed = max(sizing, math.floor(sizing / (1 - fit)) - 2)
    while needed - _shaping(needed, fit) < sizing or _shaping(needed, fit) < _SHAPE_ROWS:
        needed += 1
    shaping = _shaping(rows, fit)
    return (
        f"from_data: a coverage of {coverage:g} with confidence {confidence:g} needs at least {sizing} rows to size "
        f"the set and {_SHAPE_ROWS} to shape it, which is {needed} in all with fit={fit:g} (got {rows - shaping} and "
        f"{shaping}, {rows} in all); give more rows, another fit, or ask for less."
    )


def _columns(names: list[Any]) -> str:
    listed = " and ".join(map(repr, names))
    return f"column {listed} is" if len(names) == 1 else f"columns {listed} are"


def _typical(deviations: FloatArray) -> FloatArray:
    """The median absolute deviation of each column; the mean one where half of a column is the same number."""
    distances = np.abs(deviations)
    median = np.median(distances, axis=0)
    return np.asarray(np.where(median > 0, median, distances.mean(axis=0)))


def _centred(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    centre = np.median(rows, axis=0)
    return centre, _typical(rows - centre)


def _deviations(points: FloatArray, centre: FloatArray, scale: FloatArray) -> FloatArray:
    """Distances from the centre in units of the scale: without end where a column that had no spread has moved."""
    moved = np.abs(points - centre)
    return np.divide(moved, scale, out=np.where(moved > 0, np.inf, 0.0), where=scale > 0)


def _box(rows: FloatArray, coverage: float) -> _Shape:
    centre, scale = _centred(rows)
    return _Shape(
        lambda points: _deviations(points, centre, scale).max(axis=1),
        lambda size: BoxSet(np.column_stack([centre - size * scale, centre + size * scale])),
    )


def _budget(rows: FloatArray, coverage: float) -> _Shape:
    """``sum <= gamma size`` and ``largest <= size``: the set grows by its deviations, and gamma stays."""
    centre, scale = _centred(rows)
    own = _deviations(rows, centre, scale)
    largest, total = np.quantile(own.max(axis=1), coverage), np.quantile(own.sum(axis=1), coverage)
    # Between 1 and the number of columns, as it is for each row; with this ratio both limits are met about as often.
    gamma = float(np.clip(total / largest, 1.0, rows.shape[1])) if largest > 0 else 1.0

    def score(points: FloatArray) -> FloatArray:
        deviations = _deviations(points, centre, scale)
        return np.asarray(np.maximum(deviations.max(axis=1), deviations.sum(axis=1) / gamma))

    return _Shape(score, lambda size: CardinalitySet(centre, size * scale, gamma, size * scale))


def _ellipsoid(rows: FloatArray, coverage: float) -> _Shape:
    centre, scale = rows.mean(axis=0), rows.std(axis=0, ddof=1)
    correlation = np.atleast_2d(np.corrcoef(rows, rowvar=False))
    shrunk = _shrinkage(correlation, len(rows))
    correlation = (1 - shrunk) * correlation + shrunk * np.eye(len(centre))
    # By correlations, so that units do not enter.
    root = np.linalg.cholesky(correlation)
    return _Shape(
        lambda points: np.linalg.norm(solve_triangular(root, ((points - centre) / scale).T, lower=True), axis=0),
        lambda size: EllipsoidalSet(centre, correlation * np.outer(scale, scale), scale=size**2),
    )


def _shrinkage(correlation: FloatArray, rows: int) -> float:
    """Zero, or where the matrix is singular the share of the unit matrix by the oracle approximating estimator."""
    d = len(correlation)
    if np.linalg.eigvalsh(correlation)[0] >= _THIN**2:
        return 0.0
    squares = float(np.sum(correlation**2))
    share = ((1 - 2 / d) * squares + d**2) / ((rows + 1 - 2 / d) * (squares - d))
    return min(1.0, max(_THIN**2, share))


def _polyhedron(rows: FloatArray, coverage: float) -> _Shape:
    centre, scale = _centred(rows)
    normals, spread = _principal((rows - centre)[:, scale > 0] / scale[scale > 0])
    across = np.zeros((len(normals), len(centre)))
    across[:, scale > 0] = normals / scale[scale > 0]

    def score(points: FloatArray) -> FloatArray:
        along = np.abs((points - centre) @ across.T) / spread
        return np.asarray(np.maximum(_deviations(points, centre, scale).max(axis=1), along.max(axis=1, initial=0.0)))

    def of_size(size: float) -> UncertaintySet:
        # Rows with coefficients up to 1, whatever the units.
        unit = np.abs(across).max(axis=1, initial=0.0)
        sides = np.concatenate([np.eye(len(centre)), across / unit[:, None]])
        reach = size * np.concatenate([scale, spread / unit])
        return PolyhedralSet(
            np.concatenate([sides, -sides]), np.concatenate([sides @ centre + reach, reach - sides @ centre])
        )

    return _Shape(score, of_size)


def _principal(deviations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Principal directions of standardized deviations, one in a row, with the typical deviation along each."""
    if deviations.shape[1] < 2:
        # That of a single column is its axis.
        return np.empty((0, deviations.shape[1])), np.empty(0)
    directions = np.linalg.eigh(deviations.T @ deviations)[1]
    along = _typical(deviations @ directions)
    # Too few rows show no spread in directions that have one.
    shrunk = _shrinkage(np.atleast_2d(np.corrcoef(deviations, rowvar=False)), len(deviations))
    return directions.T, np.maximum(np.sqrt((1 - shrunk) * along**2 + shrunk), _THIN)


#: What shapes a set of each kind.
_KINDS: dict[str, Callable[[FloatArray, float], _Shape]] = {
    "box": _box,
    "ellipsoid": _ellipsoid,
    "budget": _budget,
    "polyhedron": _polyhedron,
}
