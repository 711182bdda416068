"""Units: checked with the index's own among them, told with results and on axes, and nothing without them."""

import subprocess
import sys

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import BoxSet
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import errors

U = pyo.units
if "EUR" not in dir(U.pint_registry):
    U.load_definitions_from_strings(["EUR = [currency]"])


def road():
    """Loads at places along a road, each felt nearby."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(4)
    m.value = pyo.Param(m.T, initialize=lambda m, t: 4 - t % 3, units=U.EUR / U.MW, mutable=True)
    m.place = pyo.Param(m.T, initialize=lambda m, t: 0.2 * t, units=U.km, mutable=True)
    m.width = pyo.Param(initialize=0.1, units=U.km, mutable=True)
    m.x = pyo.Var(m.T, bounds=(0, 9), units=U.MW)
    m.cap = osilp.Profile(over=m.u, points=[0, 1], initialize=[3, 4], units=U.MW)
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u, units=U.km)
    def usage(m, u):
        return sum(pyo.exp(-(((u - m.place[t]) / m.width) ** 2)) * m.x[t] for t in m.T) <= m.cap(u)

    return m


def without_units():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u * (1 - u))
    return m


def robust():
    """Orders that react to a demand in MW."""
    m = pyo.ConcreteModel()
    demand = BoxSet([(2, 6)])
    m.price = pyo.Param(initialize=3, units=U.EUR / U.MW, mutable=True)
    m.stock = pyo.Var(bounds=(0, 4), units=U.MW)
    m.order = osilp.FunctionVar(over=demand, bounds=(0, 100), units=U.MW)
    m.cost = pyo.Var(units=U.EUR)
    m.total = pyo.Objective(expr=m.cost)

    @m.SemiInfiniteConstraint(demand, units=U.MW)
    def enough(m, xi):
        return m.stock + m.order(xi) >= xi[0]

    @m.SemiInfiniteConstraint(demand, units=U.MW)
    def worst(m, xi):
        return m.cost >= m.price * m.stock + 2 * m.price * m.order(xi)

    return m


def test_units_that_fit_are_told():
    assert osilp.check_units(road()) == {"usage": "MW", "reward": "EUR"}
    assert osilp.check_units(robust()) == {"enough": "MW", "worst": "EUR", "order.limits": "MW", "total": "EUR"}
    assert osilp.check_units(road().clone()) == {"usage": "MW", "reward": "EUR"}
    assert osilp.check_units(without_units()) == {}


def curve(m, row, unit=U.km):
    m.f = osilp.FunctionVar(over=m.u, units=U.MW)
    m.slope = pyo.Var(units=U.MW / U.km)
    m.bad = osilp.SemiInfiniteConstraint(m.u, units=unit, rule=row)


def changed(change):
    def make():
        m = road()
        change(m)
        return m

    return make


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            changed(lambda m: setattr(m, "bad", osilp.SemiInfiniteConstraint(m.u, units=U.m, rule=lambda m, u: m.x[1] * (u - m.place[1]) / m.place[1] <= m.cap(u)))),
            "'bad': 'u' has the unit m, and '- place[1]' has the unit km.",
        ),
        (
            changed(lambda m: setattr(m, "bad", osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x[1] * (u - m.place[1]) / m.place[1] <= m.cap(u)))),
            "'bad': 'u' has no unit, and '- place[1]' has the unit km.",
        ),
        (
            changed(lambda m: setattr(m, "bad", osilp.SemiInfiniteConstraint(m.u, units=U.km, rule=lambda m, u: m.x[1] * u <= m.cap(u)))),
            "'bad': 'u*x[1]' has the unit km*MW, and 'cap(u)' has the unit MW.",
        ),
        (
            changed(lambda m: setattr(m, "bad", osilp.SemiInfiniteConstraint(m.u, units=U.km, rule=lambda m, u: m.x[1] * pyo.exp(-u) <= m.cap(u)))),
            "'bad': exp takes a number without a unit (got km in 'exp(- u)').",
        ),
        (
            changed(lambda m: setattr(m, "bad", pyo.Constraint(expr=m.x[1] <= 5))),
            "'bad': 'x[1]' has the unit MW, and '5' has no unit.",
        ),
        (
            changed(lambda m: setattr(m.reward, "expr", m.x[1] + m.width)),
            "'reward': 'x[1]' has the unit MW, and 'width' has the unit km.",
        ),
        (changed(lambda m: curve(m, lambda m, u: m.f.derivative(u) <= m.cap(u))), "MW/km, and 'cap(u)' has the unit MW."),
    ],
)  # fmt: skip
def test_a_wrong_unit_is_an_error_that_names_both(make, text):
    with pytest.raises(errors.UnitsError) as error:
        osilp.check_units(make())
    assert str(error.value).endswith(text)
    assert text.startswith("'") is (str(error.value) == text)


def test_curves_and_rules_have_units_of_their_own():
    m = road()
    curve(m, lambda m, u: m.f.derivative(u) <= m.slope)
    assert osilp.check_units(m)["bad"] == "MW/km"
    for basis in (osilp.RBF(4), osilp.BSpline(5)):
        m = road()
        m.f = osilp.FunctionVar(over=m.u, basis=basis, units=U.MW)
        m.slope = pyo.Var(units=U.MW / U.km)
        rows = {
            "at": lambda m, u: m.f.derivative(u) <= m.slope,
            "number": lambda m, u: m.f.derivative(0.5) * u <= m.cap(u),
            "both": lambda m, u: m.f(u) + u * m.f.derivative(u) <= m.cap(u),
        }
        for name, row in rows.items():
            m.add_component(name, osilp.SemiInfiniteConstraint(m.u, units=U.km, rule=row))
        told = osilp.check_units(m.clone())
        assert [told[name] for name in rows] == ["MW/km", "MW", "MW"]
        m.bad = osilp.SemiInfiniteConstraint(m.u, units=U.km, rule=lambda m, u: m.f.derivative(u) <= m.cap(u))
        with pytest.raises(errors.UnitsError, match=r"MW/km, and 'cap\(u\)' has the unit MW\."):
            osilp.check_units(m)
    m = robust()
    m.worst.deactivate()
    m.bad = osilp.SemiInfiniteConstraint(
        m.order.over[0], units=U.MW, rule=lambda m, xi: m.cost >= m.stock + m.order(xi)
    )
    with pytest.raises(errors.UnitsError) as error:
        osilp.check_units(m)
    assert "'bad': " in str(error.value)
    assert "the unit EUR" in str(error.value)
    assert "the unit MW" in str(error.value)


def test_rows_by_arrays_and_quadratic_rules_have_units():
    m = road()
    m.parts = pyo.Var([0, 1, 2], units=U.MW)
    m.cost = pyo.Var(units=U.EUR)
    m.each = pyo.Param([0, 1, 2], initialize=2, units=U.EUR / U.MW, mutable=True)
    m.paid = osilp.SemiInfiniteConstraint(
        m.u, units=U.km, rule=lambda m, u: osilp.dot(osilp.array(m.each) * np.exp(u / U.km), m.parts) <= m.cost
    )
    assert osilp.check_units(m)["paid"] == "EUR"
    m.wrong = osilp.SemiInfiniteConstraint(m.u, units=U.km, rule=lambda m, u: osilp.dot([1, u, 2], m.parts) <= 3 * U.MW)
    with pytest.raises(errors.UnitsError) as error:
        osilp.check_units(m)
    assert str(error.value).startswith("'wrong': ")
    assert "km" in str(error.value)
    m = pyo.ConcreteModel()
    demand = BoxSet([(2, 6), (1, 2)])
    m.order = osilp.FunctionVar(over=demand, basis="quadratic", units=U.MW)
    m.most = pyo.Var(units=U.MW)
    m.least = pyo.Objective(expr=m.most)
    m.kept = osilp.SemiInfiniteConstraint(demand, units=(U.MW, U.hour), rule=lambda m, xi: m.order(xi) <= m.most)
    m.met = osilp.SemiInfiniteConstraint(demand, units=(U.MW, U.hour), rule=lambda m, xi: m.order(xi) >= xi[0])
    assert osilp.check_units(m) == {"kept": "MW", "met": "MW", "least": "MW"}
    assert osilp.solve(m).objective == pytest.approx(6.0)


def test_a_model_that_was_made_robust_keeps_its_units():
    m = pyo.ConcreteModel()
    m.demand = pyo.Param([1, 2], initialize=4, mutable=True, units=U.MW)
    m.price = pyo.Param(initialize=3, mutable=True, units=U.EUR / U.MW)
    m.make = pyo.Var(bounds=(0, 9), units=U.MW)
    m.buy = pyo.Var([1, 2], bounds=(0, None), units=U.MW)
    m.cost = pyo.Objective(expr=m.price * m.make + 2 * m.price * sum(m.buy[t] for t in [1, 2]))
    m.meet = pyo.Constraint([1, 2], rule=lambda m, t: m.make + m.buy[t] >= m.demand[t] + 1 * U.MW)
    uncertain = [(m.demand, BoxSet([(2, 7), (2, 6)]))]
    robust = osilp.robustify(m, uncertain=uncertain, adjustable=[m.buy], objective="worst")
    told = osilp.check_units(robust)
    assert {told["meet[1]"], told["meet[2]"]} == {"MW"}
    assert set(told.values()) == {"MW", "EUR"}
    assert osilp.solve(robust).units.objective == "EUR"


def test_a_rule_that_is_called_at_points_is_told_as_not_checked():
    m = road()
    m.sampled = osilp.SemiInfiniteConstraint(m.u, sample=True, rule=lambda m, u: m.x[1] * float(pyo.value(u)) <= 8)
    assert osilp.check_units(m)["sampled"] == "not checked: its rule is called at each point"


def test_results_and_axes_name_units():
    m = road()
    result = osilp.solve(m)
    plain = road()
    assert result.units.objective == "EUR"
    assert (result.units.rows, result.units.prices, result.units.index) == (
        {"usage": "MW"}, {"usage": "EUR/MW"}, {"u": "km"}
    )  # fmt: skip
    assert f"  objective  {result.objective:.10g} EUR (maximize)" in str(result)
    assert "  units      'usage' MW, price EUR/MW; u km" in str(result)
    figure = osilp.plot_rows(m, result)
    labels = [text for ax in figure.axes for text in (ax.get_xlabel(), ax.get_ylabel())]
    assert labels == ["", "MW", "u [km]", "price of\nsingle points [EUR/MW]"]
    program = osilp.compile_online(plain, stages=plain.T)
    assert program.solve_offline().objective == pytest.approx(result.objective, rel=1e-6)


def test_a_unit_in_a_rule_is_a_factor_of_one():
    m, other = without_units(), without_units()
    m.d = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * U.km >= (0.1 + u) * U.km)
    other.d = osilp.SemiInfiniteConstraint(other.u, rule=lambda m, u: m.x >= 0.1 + u)
    assert osilp.solve(m).objective == osilp.solve(other).objective
    m, other = road(), road()
    m.usage.deactivate()
    other.usage.deactivate()
    m.own = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: sum(pyo.exp(-(((u * U.km - m.place[t]) / m.width) ** 2)) * m.x[t] for t in m.T) <= 3 * U.MW,
    )
    other.own = osilp.SemiInfiniteConstraint(
        other.u, rule=lambda m, u: sum(pyo.exp(-(((u - m.place[t]) / m.width) ** 2)) * m.x[t] for t in m.T) <= 3
    )
    assert osilp.check_units(m)["own"] == "MW"
    ours, theirs = (osilp.compile_online(each, stages=each.T).replay(osilp.Greedy()).decisions for each in (m, other))
    assert ours.tolist() == theirs.tolist()
    m = robust()
    assert osilp.solve(m).objective == pytest.approx(3 * 4 + 2 * 3 * 2)


def test_models_without_units_never_import_pint():
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "import osilp_pyomo as osilp\nfrom models import tent, packing\n"
        "result = osilp.solve(tent()); print(result.units, osilp.check_units(tent()), 'pint' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "Units(objective='', rows={}, prices={}, index={}) {} False"


def test_wrong_declarations_of_units_are_refused():
    m = without_units()
    for given, text in (
        (3, "units= must be a unit of Pyomo, such as pyo.units.km (got 3)."),
        ((U.km, U.m), "units= must be one unit, or one for each of the 1 coordinates of its index (got 2)."),
    ):
        with pytest.raises(errors.DeclarationError) as error:
            m.bad = osilp.SemiInfiniteConstraint(m.u, units=given, rule=lambda m, u: m.x >= u)
        assert str(error.value) == f"SemiInfiniteConstraint 'bad': {text}"
        assert m.component("bad") is None
