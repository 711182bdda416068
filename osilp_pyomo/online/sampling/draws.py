"""Random numbers that belong to an arrival by its number, whatever it comes together with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osilp_pyomo._arrays import FloatArray

_Words = NDArray[np.uint64]


def uniform_draws(seed: int, first: int, shape: tuple[int, int]) -> FloatArray:
    """Numbers (B, n) in [0, 1): those of the arrivals ``first``, ``first + 1``, ... (SplitMix64 of seed and place).

    Examples
    --------
    >>> together = uniform_draws(7, 0, (3, 2))
    >>> bool((together[2] == uniform_draws(7, 2, (1, 2))[0]).all())
    True
    """
    count, width = shape
    numbers: _Words = np.arange(first, first + count).astype(np.uint64)[:, None]
    places = numbers * np.uint64(width) + np.arange(width).astype(np.uint64)
    with np.errstate(over="ignore"):
        start = _mixed(np.array([seed % 2**64], dtype=np.uint64))
        mixed = _mixed(start + places * np.uint64(0x9E3779B97F4A7C15))
    return (mixed >> np.uint64(11)).astype(float) * 2.0**-53


def _mixed(words: _Words) -> _Words:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
