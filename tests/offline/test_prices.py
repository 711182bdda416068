"""Prices are measures: integrals do not depend on the grid."""

import numpy as np
import pytest
from models import packing, tent

import osilp_pyomo as osilp
from osilp_pyomo import errors
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.offline.prices import AtomicPrice


def capacity(u):
    return 40 * (0.06 + 0.02 * np.sin(6 * u))


@pytest.mark.parametrize("method", ["discretized", "projected"])
def test_integrals_do_not_depend_on_how_fine_the_grid_is(method):
    m = packing()
    options = {"basis": osilp.RBF(8)} if method == "projected" else {}
    prices = [osilp.solve(m, method=method, grid=osilp.Midpoint(n), **options).price for n in (400, 1600)]
    for h in (lambda u: 1.0 + 0 * u, capacity, lambda u: u**2):
        assert prices[0].integrate(h) == pytest.approx(prices[1].integrate(h), rel=2e-2)
    assert prices[0].of(place=0.4) == pytest.approx(prices[1].of(place=0.4), rel=2e-2)


@pytest.mark.parametrize("method", ["exchange", "discretized", "projected"])
def test_complementarity_and_opportunity_cost(method):
    m = packing()
    result = osilp.solve(m, method=method)
    cost = result.price.of(place=[m.place[t].value for t in m.T])
    for t, price in zip(m.T, cost, strict=True):
        margin = m.value[t].value - price
        if margin > 1e-3:
            assert m.x[t].value == pytest.approx(1.0, abs=1e-6)
        elif margin < -1e-3:
            assert m.x[t].value == pytest.approx(0.0, abs=1e-6)
    surplus = sum(max(0.0, m.value[t].value - price) for t, price in zip(m.T, cost, strict=True))
    assert result.price.integrate(capacity) + surplus == pytest.approx(result.objective, rel=1e-4)


def test_one_arrival_gives_a_number_and_arrays_give_arrays():
    price = osilp.solve(packing()).price
    assert isinstance(price.of(place=0.4), float)
    assert price.of(place=np.full((2, 3), 0.4)).shape == (2, 3)
    with pytest.raises(errors.PriceError) as error:
        price.of(position=0.4)
    assert str(error.value) == "The price of 'usage' needs the data place of an arrival (got position)."


def test_prices_that_know_no_arrivals():
    with pytest.raises(errors.PriceError) as error:
        osilp.solve(tent()).price.of(place=0.4)
    assert str(error.value) == (
        "The price of 'below' knows no arrivals: no coefficient of the row holds an indexed mutable Param; use "
        "integrate(h) with the column as a function h."
    )


def test_atoms_have_no_density_and_densities_no_atoms():
    m = packing()
    exact, projected = osilp.solve(m).price, osilp.solve(m, method="projected").price
    with pytest.raises(errors.PriceError) as error:
        exact(0.3)
    count = len(exact.atoms)
    assert str(error.value) == (
        f"The price of 'usage' sits on {count} single points and has no density; see price.atoms, or "
        "price.smooth(width) for a density."
    )
    with pytest.raises(errors.PriceError) as error:
        _ = projected.atoms
    assert str(error.value) == (
        "The price of 'usage' is a density and has no atoms; call price(u), or price.to_frame()."
    )
    assert list(projected.to_frame().columns) == ["u", "density"]
    assert list(exact.to_frame().columns) == ["u", "weight"]
    assert projected(np.array([0.1, 0.5])).shape == (2,)
    with pytest.raises(errors.PriceError) as error:
        projected(0.1, 0.2)
    assert str(error.value) == "The price of 'usage' is a function of u (got 2 coordinates)."


@pytest.mark.parametrize("width", [0.01, 0.1, 1.0])
def test_smoothing_keeps_the_mass_and_stays_inside(width):
    box = Domain.box(u=(0, 1))
    price = AtomicPrice("row", box, np.array([[0.0], [0.4]]), np.array([1.0, 2.0]))
    smooth = price.smooth(width)
    assert smooth.total == pytest.approx(3.0, rel=1e-4)
    u = np.linspace(0, 1, 20_001)
    assert np.trapezoid(smooth(u), u) == pytest.approx(3.0, rel=1e-4)
    assert smooth.integrate(lambda u: 1.0) == pytest.approx(3.0, rel=1e-4)
    with pytest.raises(errors.PriceError) as error:
        price.smooth(0)
    assert str(error.value) == "The price of 'row': smooth(width) needs a width > 0 (got 0)."


def test_densities_outside_the_index_are_refused():
    price = osilp.solve(packing(), method="projected").price
    with pytest.raises(errors.DomainError) as error:
        price(1.5)
    assert str(error.value) == ("Index u in [0, 1]: the point u = 1.5 lies outside; give points within the bounds.")
