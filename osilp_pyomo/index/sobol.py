"""Sobol points of the unit box."""

from __future__ import annotations

from osilp_pyomo._arrays import FloatArray


def sobol_points(count: int, dimension: int, seed: int | None = None) -> FloatArray:
    """The first points of a Sobol sequence in the unit box, an array (count, dimension); scrambled with a seed.

    Examples
    --------
    >>> sobol_points(3, 1).tolist()
    [[0.0], [0.5], [0.75]]
    """
    # scipy.stats takes longer to load than everything that a declaration needs.
    from scipy.stats import qmc

    engine = qmc.Sobol(dimension, scramble=seed is not None, rng=seed)
    # A power of two keeps the sequence balanced; what is beyond the count is cut off.
    return engine.random_base2(max(0, (count - 1).bit_length()))[:count]
