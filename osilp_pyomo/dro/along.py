"""Losses of one linear function of a random vector with a mean and a covariance: what is left is one random number.

Where the pieces of a loss are ``a_k w(x) @ xi + b_k(x)``, a vector with the mean m and the covariance C gives
``w @ xi`` every distribution with the mean ``w @ m`` and the variance ``w @ C w``, and no other (Popescu, 2007). In
deviations from that mean the number is ``s t``, with t of mean 0 and variance 1 and ``s >= |C^(1/2) w(x)|``: rows over
a line and a ball, in place of rows over all of space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.dro.losses import SumOfMaxima
from osilp_pyomo.index.convex_sets import EllipsoidBody
from osilp_pyomo.model.affine import affine_trace
from osilp_pyomo.model.arrays.dot import dot
from osilp_pyomo.model.arrays.expressions import Vector
from osilp_pyomo.model.arrays.trees import IndexPlaceholder
from osilp_pyomo.model.constraint.component import SemiInfiniteConstraint
from osilp_pyomo.model.sets import OneSet

# How far pieces may be from multiples of one function and count as such, relative: a rounding.
_ROUNDING = 4 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class AlongOneLine:
    """A loss as ``factors[k] * (w(x) @ xi) + b_k(x)``.

    ``slope`` (d, 1 + n) is w as an affine function of the variables, ``means`` (k, 1 + n) each piece at the mean.
    """

    variables: tuple[Any, ...]
    slope: FloatArray
    factors: FloatArray
    means: FloatArray

    @classmethod
    def of(cls, block: Any, loss: Callable[..., Sequence[Any]], mean: FloatArray) -> AlongOneLine | None:
        """None where pieces depend on the vector in other ways, all in one way, or on data that may change later.

        ``block`` has the variable ``level``.
        """
        placeholders = [IndexPlaceholder(mutable=True, name=f"xi{k}") for k in range(len(mean))]
        for placeholder in placeholders:
            placeholder.construct()
        axes = {id(each): entry for entry, each in enumerate(placeholders)}
        try:
            pieces = loss(block.parent_block(), Vector(placeholders))
            traces = [None if isinstance(piece, SumOfMaxima) else affine_trace(piece <= block.level, axes)
                      for piece in pieces]  # fmt: skip
        except Exception:  # a loss that needs numbers is called with them
            return None
        read = [each for each in traces if each is not None and each.lasting]
        if len(read) < len(traces):
            return None
        variables = {id(each): each for trace in read for each in trace.variables if each is not block.level}
        places = {key: 1 + place for place, key in enumerate(variables)}
        parts = np.zeros((len(read), 1 + len(mean), 1 + len(variables)))
        for part, trace in zip(parts, read, strict=True):
            sign, limit = (1.0, trace.upper) if trace.upper is not None else (-1.0, trace.lower)
            assert limit is not None
            part[:, 0] = -sign * limit
            for variable, column in zip(trace.variables, trace.matrix.T, strict=True):
                if variable is not block.level:
                    part[:, places[id(variable)]] += sign * column
        slopes = parts[:, 1:]
        sizes = np.abs(slopes).max(axis=(1, 2), initial=0.0)
        if not sizes.any():
            return None
        slope = slopes[int(np.argmax(sizes))]
        factors = np.einsum("kij,ij->k", slopes, slope) / float((slope * slope).sum())
        if np.any(np.abs(slopes - factors[:, None, None] * slope).max(axis=(1, 2), initial=0.0) > _ROUNDING * sizes):
            return None
        if np.all(np.abs(factors - 1.0) <= _ROUNDING):
            # Of one multiple the mean is all that counts, and deviations would be free to grow.
            return None
        return cls(tuple(variables.values()), slope, factors, np.concatenate([[1.0], mean]) @ parts)

    def write(self, block: Any, factor: FloatArray, region: Callable[..., Any]) -> Any:
        """Multipliers and rows on a block that has the variable ``level``; the value of the dual.

        ``factor`` is C^(1/2), and ``region`` makes rows over the line.
        """
        block.slope, block.bend, block.deviation = pyo.Var(), pyo.Var(), pyo.Var(bounds=(0, None))
        spread = factor.T @ self.slope

        def largest(b: Any, way: Any) -> Any:
            return b.deviation >= self._affine(way @ spread)

        def rule(b: Any, piece: int, t: Any) -> Any:
            here = self._affine(self.means[piece]) + float(self.factors[piece]) * t * b.deviation
            return b.level + t * b.slope + t**2 * b.bend >= here

        ball = OneSet(EllipsoidBody(np.zeros(len(factor)), np.eye(len(factor))))
        block.deviations = SemiInfiniteConstraint(ball, rule=largest)
        block.rows = region(block, range(len(self.factors)), rule=rule)
        return block.level + block.bend

    def _affine(self, numbers: Any) -> Any:
        """An affine function of the variables, by its constant and coefficients."""
        return numbers[0] + dot(numbers[1:], list(self.variables)) if self.variables else numbers[0]


def in_space(atoms: pd.DataFrame, way: FloatArray, mean: FloatArray, factor: FloatArray, names: list[str]) -> Any:
    """Atoms of the number t, as column ``along``, as atoms of a vector with that mean and the covariance.

    ``way`` points to where the loss grows, in coordinates of which the vector is ``mean + factor @ them``. Across it
    every atom is spread to both sides of all other axes, so that the covariance is as given.
    """
    size = len(mean)
    whole, _, _ = np.linalg.svd(way[:, None])
    across = np.sqrt(max(1, size - 1)) * whole[:, 1:].T
    sides = np.concatenate([across, -across]) if size > 1 else np.zeros((1, size))
    t = atoms["along"].to_numpy(dtype=float)
    points = mean + (t[:, None, None] * way + sides).reshape(-1, size) @ factor.T
    rest = atoms.drop(columns="along").loc[atoms.index.repeat(len(sides))].reset_index(drop=True)
    rest["probability"] = rest["probability"] / len(sides)
    return pd.concat([pd.DataFrame(points, columns=names), rest], axis=1)
