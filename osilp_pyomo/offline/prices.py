"""Shadow prices as measures on the index set.

The dual of "for all u" is not a number but a measure pi on the index: relaxing the right-hand side
b(u) by h(u) changes the objective by the integral of h against pi. An exact or discretized answer
has its price on single points (atoms); a projected one has a density, the sum of its duals times the
test functions. Integrals do not depend on how fine the grid was. The sign is Pyomo's: d objective /
d right-hand side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo._displays import Shown, draw
from osilp_pyomo.errors import PriceError
from osilp_pyomo.index.bases import Functionals
from osilp_pyomo.index.domain import Domain, on_points
from osilp_pyomo.index.grids import tensor_points
from osilp_pyomo.offline.rows import TermGroup

# Points along each axis that stand for one smoothed atom, by dimension.
_SHARES = {1: 201, 2: 25, 3: 9, 4: 5}


class Price(Shown, ABC):
    """A measure on the index of one family of rows.

    Attributes
    ----------
    family : str
        Name of the constraint it prices.
    points, masses : arrays
        The measure as far as integrals need it: mass ``masses[i]`` at ``points[i]``.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_model
    >>> price = osilp.solve(demo_model(arrivals=40)).price
    >>> isinstance(price, osilp.Price), abs(price.integrate(lambda u: 1.0) - price.total) < 1e-9
    (True, True)
    >>> price.plot().axes[0].get_xlabel()
    'u'
    """

    card = "price"

    def __init__(
        self, family: str, domain: Domain, points: FloatArray, masses: FloatArray, templates: Sequence[TermGroup] = ()
    ) -> None:
        self.family = family
        self.domain = domain
        self.points = points
        self.masses = masses
        self.templates = tuple(templates)

    @property
    def total(self) -> float:
        """Mass of the whole measure: what one more unit of b everywhere is worth."""
        return float(self.masses.sum())

    def integrate(self, function: Callable[..., Any]) -> float:
        """Integral of ``function(u)`` (or ``function(u, v)``) against the price."""
        if not len(self.points):
            return 0.0
        return float(self.masses @ on_points(function, self.points).astype(float))

    def of(self, **theta: ArrayLike) -> Any:
        """Opportunity cost of one arrival with the data ``theta``: the integral of its column.

        The names are those of the Params in the rule, such as ``price.of(place=0.4)``. Arrays give
        arrays. Where a stage has several variables in the row, the answer is keyed by variable.
        """
        templates = [group for group in self.templates if any(name is not None for name in group.parameters)]
        if not templates:
            raise PriceError(
                f"The price of '{self.family}' knows no arrivals: no coefficient of the row holds an indexed mutable "
                "Param; use integrate(h) with the column as a function h."
            )
        known = sorted({name for group in templates for name in group.parameters if name is not None})
        if set(theta) != set(known):
            raise PriceError(
                f"The price of '{self.family}' needs the data {', '.join(known)} of an arrival "
                f"(got {', '.join(sorted(theta)) or 'nothing'})."
            )
        costs: dict[str, Any] = {}
        for group in templates:
            cost = self._cost(group, theta)
            for variable in group.variables:
                if variable in costs and not np.allclose(costs[variable], cost, rtol=1e-9, atol=0):
                    raise PriceError(
                        f"The price of '{self.family}' cannot be asked for one arrival: the columns of '{variable}' "
                        "have several forms; use integrate(h) with the column as a function h."
                    )
                costs[variable] = cost
        return next(iter(costs.values())) if len(costs) == 1 else costs

    def _cost(self, group: TermGroup, theta: dict[str, ArrayLike]) -> Any:
        given = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in theta.values()))
        data = dict(zip(theta, given, strict=True))
        shape = given[0].shape
        slots: list[Any] = []
        for name, slot in zip(group.parameters, group.slots, strict=True):
            if name is not None:
                slots.append(data[name].ravel())
            elif isinstance(slot, np.ndarray) and np.all(slot == slot[0]):
                slots.append(np.full(given[0].size, slot[0]))
            else:
                raise PriceError(
                    f"The price of '{self.family}' cannot be asked for one arrival: its columns differ in data "
                    "that is not a mutable Param indexed by the arrival."
                )
        arrival = TermGroup(group.kernel, tuple(slots), np.arange(given[0].size))
        cost = arrival.block(slice(None), self.points) @ self.masses if len(self.points) else np.zeros(given[0].size)
        return float(cost[0]) if shape == () else cost.reshape(shape)

    def plot(self, *, figure: Any = None) -> Any:
        """Draw it along its index: spikes for single points, a curve or colours for a density; needs matplotlib.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib Figure or SubFigure
        """
        return draw("price", self, figure=figure)

    @property
    @abstractmethod
    def atoms(self) -> pd.DataFrame:
        """Points that carry mass, one row each: the index and its ``weight``."""

    @abstractmethod
    def __call__(self, *coordinates: ArrayLike) -> Any:
        """Density at a point or at arrays of points."""

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """The measure as a tidy table."""

    def _frame(self, name: str, values: FloatArray) -> pd.DataFrame:
        columns = {axis: self.points[:, k] for k, axis in enumerate(self.domain.names)}
        return pd.DataFrame({**columns, name: values})


class AtomicPrice(Price):
    """A price that sits on single points.

    Examples
    --------
    >>> price = AtomicPrice("cover", Domain.box(u=(0, 1)), np.array([[0.25], [1.0]]), np.array([2.0, 0.5]))
    >>> price.atoms
          u  weight
    0  0.25     2.0
    1  1.00     0.5
    >>> price.to_frame().equals(price.atoms), price.total
    (True, 2.5)
    >>> price.integrate(lambda u: u**2)
    0.625
    >>> round(price.smooth(0.05)(0.25), 3)
    15.958
    """

    @property
    def atoms(self) -> pd.DataFrame:
        return self._frame("weight", self.masses)

    def to_frame(self) -> pd.DataFrame:
        return self.atoms

    def __call__(self, *coordinates: ArrayLike) -> Any:
        raise PriceError(
            f"The price of '{self.family}' sits on {len(self.masses)} single points and has no density; see "
            "price.atoms, or price.smooth(width) for a density."
        )

    def smooth(self, width: float) -> DensityPrice:
        """Spread each atom into a Gaussian of standard deviation ``width``, cut at the domain's ends.

        The mass of each atom is kept. ``width`` is in units of the index; in several dimensions it is
        the same along each axis.
        """
        if not np.isfinite(width) or width <= 0:
            raise PriceError(f"The price of '{self.family}': smooth(width) needs a width > 0 (got {width!r}).")
        if not self.domain.bounded:
            raise PriceError(f"The price of '{self.family}' cannot be smoothed on the unbounded index {self.domain}.")
        density = _Gaussians(self.domain, self.points, self.masses, width)
        points, masses = density.quadrature()
        return DensityPrice(self.family, self.domain, points, masses, density, self.templates)

    def __repr__(self) -> str:
        count = len(self.masses)
        if not count:
            return f"none of '{self.family}': more room at any {self.domain} would change nothing"
        points = "1 point" if count == 1 else f"{count} points"
        return f"{self.total:.6g} a unit of right-hand side of '{self.family}', on {points} of {self.domain}"


class DensityPrice(Price):
    """A price with a density over the index, per unit of the index.

    ``points`` and ``masses`` are the quadrature points and the mass each stands for.

    Examples
    --------
    >>> import osilp_pyomo as osilp
    >>> from osilp_pyomo.demo import demo_model
    >>> m = demo_model(arrivals=40)
    >>> program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(5))
    >>> price = osilp.solve(m, method="projected", basis=osilp.RBF(5)).price
    >>> round(price(0.5), 3), round(price.integrate(lambda u: 1.0), 3), round(price.total, 3)
    (4.346, 4.029, 4.029)
    >>> round(price.of(place=0.4), 3)  # opportunity cost of an arrival there
    0.674
    >>> price.to_frame().round(3).head(2)
           u  density
    0  0.000    1.661
    1  0.002    1.665
    >>> price.smooth(0.1) is price
    True
    """

    def __init__(
        self,
        family: str,
        domain: Domain,
        points: FloatArray,
        masses: FloatArray,
        density: Callable[[FloatArray], FloatArray],
        templates: Sequence[TermGroup] = (),
    ) -> None:
        super().__init__(family, domain, points, masses, templates)
        self._density = density

    @property
    def atoms(self) -> pd.DataFrame:
        raise PriceError(
            f"The price of '{self.family}' is a density and has no atoms; call price(u), or price.to_frame()."
        )

    def __call__(self, *coordinates: ArrayLike) -> Any:
        if len(coordinates) != self.domain.dimension:
            raise PriceError(
                f"The price of '{self.family}' is a function of {', '.join(self.domain.names)} "
                f"(got {len(coordinates)} coordinates)."
            )
        given = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in coordinates))
        points = self.domain.points(np.stack([axis.ravel() for axis in given], axis=1))
        values = self._density(points)
        if self.domain.inside is not None:
            values = np.where(self.domain.inside(points), values, 0.0)
        return float(values[0]) if given[0].shape == () else values.reshape(given[0].shape)

    def smooth(self, width: float) -> DensityPrice:
        """Return the price itself: a density is smooth already."""
        return self

    def to_frame(self) -> pd.DataFrame:
        return self._frame("density", self._density(self.points))

    def __repr__(self) -> str:
        return f"{self.total:.6g} a unit of right-hand side of '{self.family}', a density over {self.domain}"


@dataclass(frozen=True, eq=False)
class _Combination:
    """Density of a projected price: test functions times their duals."""

    functionals: Functionals
    duals: FloatArray

    def __call__(self, points: FloatArray) -> FloatArray:
        return self.functionals.basis.evaluate(self.functionals.domain, points) @ self.duals


@dataclass(frozen=True, eq=False)
class _Gaussians:
    """Density of smoothed atoms: Gaussians cut at the domain's ends, each with the mass of its atom."""

    domain: Domain
    centres: FloatArray
    masses: FloatArray
    width: float

    def _quantiles(self, centre: FloatArray) -> FloatArray:
        """Points that stand for equal shares of one Gaussian within the domain."""
        dimension = self.domain.dimension
        shares = (np.arange(_SHARES.get(dimension, 3)) + 0.5) / _SHARES.get(dimension, 3)
        low, high = (ndtr((end - centre) / self.width) for end in (self.domain.lower, self.domain.upper))
        axes = [
            centre[axis] + self.width * ndtri(low[axis] + shares * (high[axis] - low[axis]))
            for axis in range(dimension)
        ]
        points = np.clip(tensor_points(axes), self.domain.lower, self.domain.upper)
        return points if self.domain.inside is None else points[self.domain.inside(points)]

    def quadrature(self) -> tuple[FloatArray, FloatArray]:
        """Points and masses whose sum is exactly that of the atoms."""
        places, masses = [np.empty((0, self.domain.dimension))], [np.empty(0)]
        for centre, mass in zip(self.centres, self.masses, strict=True):
            points = self._quantiles(centre)
            if not len(points):
                points = centre[None]
            places.append(points)
            masses.append(np.full(len(points), mass / len(points)))
        return np.concatenate(places), np.concatenate(masses)

    def __call__(self, points: FloatArray) -> FloatArray:
        result = np.zeros(len(points))
        full = _SHARES.get(self.domain.dimension, 3) ** self.domain.dimension
        for centre, mass in zip(self.centres, self.masses, strict=True):
            z = (points - centre) / self.width
            low, high = (ndtr((end - centre) / self.width) for end in (self.domain.lower, self.domain.upper))
            inside = np.prod(high - low)
            if self.domain.inside is not None:
                inside *= max(1, len(self._quantiles(centre))) / full
            norm = (np.sqrt(2 * np.pi) * self.width) ** self.domain.dimension * inside
            result += mass * np.exp(-(z**2).sum(axis=1) / 2) / norm
        return result


def projected_price(
    family: str, functionals: Functionals, duals: FloatArray, templates: Sequence[TermGroup] = ()
) -> Price:
    """Turn the duals of projected rows into a measure: atoms for Dirac functionals, else a density."""
    if functionals.atomic:
        return atomic_price(family, functionals.domain, functionals.points, duals, templates)
    masses = functionals.matrix @ duals
    density = _Combination(functionals, duals)
    return DensityPrice(family, functionals.domain, functionals.points, masses, density, templates)


def atomic_price(
    family: str, domain: Domain, points: FloatArray, duals: FloatArray, templates: Sequence[TermGroup] = ()
) -> AtomicPrice:
    """Price atoms sorted by index."""
    order = np.lexsort(points.T[::-1]) if len(points) else np.empty(0, dtype=int)
    return AtomicPrice(family, domain, points[order], duals[order], templates)
