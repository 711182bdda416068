"""Guards: what fits, whatever came before, in every loop."""

import math

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.core.expr.numeric_expr import MaxExpression
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.demo import demo_model
from osilp_pyomo.errors import DataError
from osilp_pyomo.index.enclosures.enclosure import Opening, coordinates
from osilp_pyomo.online.kernels import fitting
from osilp_pyomo.online.kernels import linear as kernels
from osilp_pyomo.online.kernels.single import share_that_fits
from osilp_pyomo.online.stages.index_guard import IndexGuard
from osilp_pyomo.online.stages.linear import Room

MODEL = demo_model(arrivals=50)
PROGRAM = osilp.compile_online(MODEL, stages=MODEL.T, basis=osilp.RBF(5), horizon=1000)


def packing(limit, horizon, grid=10, domain=pyo.Reals, use=lambda a, u: a * (1 - u)):
    """Arrivals that earn 1 and use a share ``a`` of some function of the index."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.a = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(0, 1), domain=domain)
    m.gain = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(use(m.a[t], u) * m.x[t] for t in m.T) <= limit(u))
    return osilp.compile_online(m, stages=m.T, horizon=horizon, grid=osilp.Midpoint(grid))


@pytest.mark.parametrize("domain", [pyo.Reals, pyo.Integers])
@pytest.mark.parametrize("low", [-1, -0.0])
def test_zero_has_no_sign(domain, low):
    """What is cut down to nothing, or is at a bound of zero, prints as 0."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.a = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(low, 1), domain=domain)
    m.cost = pyo.Objective(expr=sum(m.x[t] for t in m.T))
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(-m.a[t] * (1 + u) * m.x[t] for t in m.T) <= 0)
    program = osilp.compile_online(m, stages=m.T, horizon=9, grid=5, basis=3)
    controller, data = program.controller(osilp.MirrorDescent(), "projected"), pd.DataFrame({"a": [1.0, 2.0]})
    found = [controller.step(a=1.0).x, controller.decide(a=1.0).x, *controller.steps(data)["x"]]
    found += program.replay(osilp.Greedy(), data, "projected").decisions.tolist()
    assert [math.copysign(1.0, x) for x in found] == [1.0] * 6


def bumps(column, limit, horizon=200):
    """Arrivals that earn ``value`` and use a function of the index around ``place``."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.value = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.place = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.high = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(column(m.high[t], u - m.place[t]) * m.x[t] for t in m.T) <= limit(u)
    )
    return osilp.compile_online(m, stages=m.T, horizon=horizon, grid=osilp.Midpoint(100), basis=osilp.RBF(8))


def bump_arrivals(count, low=0.45, high=0.95):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"value": rng.uniform(size=count), "place": rng.uniform(low, high, count), "high": 1.0})


BUMPS = {
    "hat": lambda high, away: pyo.Expr_if(abs(away) < 0.05, 1 - abs(away) / 0.05, 0),
    "high hat": lambda high, away: high * pyo.Expr_if(abs(away) < 0.05, 1 - abs(away) / 0.05, 0),
    "kernel": lambda high, away: high * pyo.exp(-((away / 0.03) ** 2)),
}


# -- what fits ------------------------------------------------------------------------------------------


def by_the_definition(use, left, slack, reserve, tail):
    """What fits, in words: what uses nothing, what leaves the reserve, a tail, or exactly what is left."""
    if use <= 1e-9 * slack or use <= left - reserve + slack:
        return True
    return (use <= tail and use <= left + slack) or left - slack <= use <= left + slack


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_all_loops_share_one_definition_of_what_fits(data):
    size = data.draw(st.integers(1, 4))
    amounts = st.sampled_from([0.0, 1e-22, 1e-13, 1e-9, 1e-6, 0.5, 1.0, 1.0 + 1e-13, 2.0])
    use, left, total = (np.array(data.draw(st.lists(amounts, min_size=size, max_size=size))) for _ in range(3))
    left = left * data.draw(st.sampled_from([1.0, -1.0]))
    ahead = data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    margins = fitting.make_margins(total, np.ones(size), 1000)
    slack, reserve, tail = margins
    expected = all(map(by_the_definition, use, left, slack, ahead * reserve, tail))
    assert kernels._fits_loop(left, margins, ahead, use) == expected
    assert kernels._fits_numpy(left, margins, ahead, use) == expected
    assert kernels.fits(left, margins, ahead, use) == expected
    assert (share_that_fits(use[None, None], 0, 1.0, left, margins, ahead) == 1.0) == expected
    shrunk = np.stack([slack, ahead * reserve, tail])
    assert Room(use[None], np.zeros(size), left, shrunk, lambda x: x @ use[None]).fits(np.ones(1)) == expected


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_what_fits_never_overruns(seed):
    """Whatever comes, nothing falls further below zero than by its slack."""
    rng = np.random.default_rng(seed)
    total = rng.choice([0.0, 1e-9, 1.0, 5.0], size=3)
    margins = fitting.make_margins(total, np.full(3, total.max() or 1.0), 500)
    left = total.copy()
    for t in range(600):
        use = 10.0 ** rng.uniform(-18, 0, size=3) * rng.integers(0, 2, size=3)
        ahead = fitting.share_ahead(500.0, t)
        left -= use * min(kernels.room(left, margins, ahead, use), 1.0)
        assert np.all(left >= -2 * margins[fitting.SLACK])


def test_tiny_uses_do_not_add_up():
    controller = packing(lambda u: u, horizon=2_000_000).controller(osilp.Greedy(), "pointwise")
    assert controller.decide(a=0.01).x == 0.0
    for _ in range(3):
        controller.steps(pd.DataFrame({"a": np.full(100_000, 9.5e-13)}))
    assert [controller.step(a=0.01).x for _ in range(3)] == [0.0, 0.0, 0.0]
    assert controller.point_remaining.min() >= -1e-12


@pytest.mark.parametrize("how", ["a smaller budget", "what was really done"])
def test_an_overrun_point_is_guarded_for_ever(how):
    controller = PROGRAM.controller(osilp.Greedy(), "pointwise")
    if how == "a smaller budget":
        controller.add_budget("usage", -1000.0)
    else:
        for _ in range(400):
            controller.update(value=0.5, place=0.5, x=1.0)
    overrun = controller.point_remaining
    reasons = {controller.step(value=0.5, place=0.3 + k / 100).reason for k in range(40)}
    assert reasons == {"null"}
    np.testing.assert_array_equal(controller.point_remaining, overrun)


@pytest.mark.parametrize("column", BUMPS)
@pytest.mark.parametrize("exact", [False, True])
def test_a_closed_stretch_far_away_stops_nobody(column, exact):
    """Caution is about uses: where there is no room at all, a tail or a lift of 1e-300 is none."""
    program = bumps(BUMPS[column], lambda u: pyo.Expr_if(u < 0.1, 0, 20))
    run = program.replay(osilp.Resolve(exact=exact), bump_arrivals(200), "pointwise")
    assert run.decisions.sum() > 150
    assert run.objective > program.replay(osilp.Greedy(), bump_arrivals(200), "pointwise").objective


def test_a_point_without_budget_asks_for_no_price_of_what_is_nothing():
    """At the kink of the limit nothing is left, and lifts there are 1e-307: arrivals elsewhere are ordinary ones."""
    program = bumps(
        lambda high, away: high * pyo.Expr_if(abs(away) < 0.1, 1 - abs(away) / 0.1, 0),
        lambda u: 1.2 * abs(u - 0.5605292666972036),
        horizon=12,
    )
    data = pd.DataFrame({"value": [0.75, 0.33, 0.5, 0.4, 0.3], "place": [0.4, 0.1, 0.56, 0.57, 0.9], "high": 2.0})
    controller = program.controller(osilp.Resolve(exact=True), "pointwise")
    taken, prices = [], []
    for row in data.to_dict("records"):
        taken.append(controller.step(**row).x)
        prices.append(controller.dual.max())
    assert taken == program.replay(osilp.Resolve(exact=True), data, "pointwise").decisions.tolist()
    assert min(taken[0], taken[1], taken[4]) > 0.01
    assert max(prices) < 100


@pytest.mark.parametrize("exact", [False, True])
def test_a_place_that_was_overrun_far_away_stops_nobody(exact):
    controller = bumps(BUMPS["kernel"], lambda u: 20 + 0 * u).controller(osilp.Resolve(exact=exact), "pointwise")
    for _ in range(25):
        controller.update(value=1.0, place=0.05, high=1.0, x=1.0)
    assert controller.steps(bump_arrivals(170))["x"].sum() > 150
    assert controller.step(value=1.0, place=0.06, high=1.0).x == 0.0


def test_the_last_of_whole_units_is_taken():
    controller = packing(lambda u: 120 + 0 * u, 1000, domain=pyo.Binary, use=lambda a, u: a + 0 * u).controller(
        osilp.Greedy(), "pointwise"
    )
    taken = controller.steps(pd.DataFrame({"a": np.ones(1000)}))["x"]
    assert taken.sum() == 120.0
    assert taken.head(120).sum() == 120.0


def test_nothing_of_the_reserve_is_left_at_the_end():
    controller = packing(lambda u: 5 + 0 * u, 1000, use=lambda a, u: a + 0 * u).controller(osilp.Greedy(), "pointwise")
    controller.steps(pd.DataFrame({"a": np.full(1000, 0.3)}))
    assert controller.point_remaining.min() == pytest.approx(0.0, abs=1e-11)
    assert controller.reward == pytest.approx(5 / 0.3)


def test_tails_of_far_arrivals_pass_a_point_that_is_used_up():
    """A kernel reaches everywhere: what uses less than a billionth of a used-up point is not refused for it."""
    program = packing(
        lambda u: 20 + 0 * u, 1000, grid=200, use=lambda place, u: pyo.exp(-(((u - place) / 0.05) ** 2) / 2)
    )
    data = pd.DataFrame({"a": np.repeat([0.3, 0.63], 500)})
    run = program.replay(osilp.Greedy(), data, "pointwise")
    assert run.violation == 0.0
    assert run.decisions.tail(500).sum() == pytest.approx(20.0, rel=1e-2)


# -- between the points -----------------------------------------------------------------------------------

COLUMNS = {
    "kernels": (
        lambda m, t, u: pyo.exp(-(((u - m.place[t]) / m.width[t]) ** 2)),
        lambda place, width, u: np.exp(-(((u - place) / width) ** 2)),
    ),
    "waves": (
        lambda m, t, u: 1 + pyo.sin(u / m.width[t] + m.place[t]),
        lambda place, width, u: 1 + np.sin(u / width + place),
    ),
    "triangles": (
        lambda m, t, u: MaxExpression((0, 1 - abs(u - m.place[t]) / m.width[t])),
        lambda place, width, u: np.maximum(0, 1 - np.abs(u - place) / width),
    ),
    "bookings": (
        lambda m, t, u: pyo.Expr_if((u >= m.place[t]) & (u <= m.place[t] + m.width[t]), 1.0, 0.0),
        lambda place, width, u: ((u >= place) & (u <= place + width)).astype(float),
    ),
    "ramps that end": (
        lambda m, t, u: pyo.Expr_if(u <= m.place[t], 1 + u**2, 0.1),
        lambda place, width, u: np.where(u <= place, 1 + u**2, 0.1),
    ),
    "hyperbolas": (
        lambda m, t, u: 1 / (m.width[t] + (u - m.place[t]) ** 2),
        lambda place, width, u: 1 / (width + (u - place) ** 2),
    ),
}
LIMITS = {
    "smooth": (lambda m, u: 8 * (1 + 0.5 * pyo.sin(9 * u)), lambda u: 8 * (1 + 0.5 * np.sin(9 * u))),
    "measured": (lambda m, u: m.capacity(u), lambda u: np.interp(u, KNOTS, MEASURED)),
    "in steps": (lambda m, u: pyo.Expr_if(u < 0.3337, 8.0, 5.0), lambda u: np.where(u < 0.3337, 8.0, 5.0)),
}
KNOTS = np.sort(np.concatenate([[0, 1], np.random.default_rng(3).uniform(size=60)]))
MEASURED = 8 + np.random.default_rng(4).normal(size=62)


def of_columns(column, limit, horizon=200, grid=100):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(4)
    m.capacity = osilp.Profile(over=m.u, points=KNOTS, initialize=MEASURED)
    m.value = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.place = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.width = pyo.Param(m.T, mutable=True, initialize=0.1)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(COLUMNS[column][0](m, t, u) * m.x[t] for t in m.T) <= LIMITS[limit][0](m, u)
    )
    return osilp.compile_online(m, stages=m.T, horizon=horizon, grid=osilp.Midpoint(grid))


def excess_anywhere(column, limit, data, x):
    """The largest overrun on many points: a fine grid, all knots, switches and their neighbours."""
    special = np.concatenate([KNOTS, data["place"], data["place"] + data["width"], [0.3337]])
    special = np.concatenate([special, np.nextafter(special, -1), np.nextafter(special, 2)])
    points = np.unique(np.clip(np.concatenate([np.linspace(0, 1, 4001), special]), 0, 1))
    use = sum(
        amount * COLUMNS[column][1](place, width, points)
        for amount, place, width in zip(x, data["place"], data["width"], strict=True)
    )
    return float(np.max(use - LIMITS[limit][1](points)))


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("limit", LIMITS)
def test_no_point_of_the_index_is_overrun(column, limit):
    program = of_columns(column, limit)
    rng = np.random.default_rng([len(column), len(limit)])
    for policy in (osilp.Greedy(), osilp.MirrorDescent()):
        data = pd.DataFrame(
            {"value": rng.uniform(size=200), "place": rng.uniform(size=200), "width": rng.uniform(0.003, 0.3, size=200)}
        )
        run = program.replay(policy, data, "pointwise")
        assert excess_anywhere(column, limit, data, run.decisions) <= 1e-9
        assert "anywhere on its index, at" in str(run)
        controller = program.controller(policy, "pointwise")
        stepped = [controller.step(data.iloc[k]).x for k in range(40)]
        np.testing.assert_allclose(stepped, run.decisions.head(40), atol=1e-12)


@pytest.mark.parametrize(("column", "most"), [("kernels", 1e-3), ("triangles", 2e-2)])
def test_guarding_the_index_costs_little(column, most, monkeypatch):
    program = of_columns(column, "smooth", grid=1000)
    rng = np.random.default_rng(8)
    data = pd.DataFrame(
        {"value": rng.uniform(size=200), "place": rng.uniform(size=200), "width": rng.uniform(0.1, 0.3, size=200)}
    )
    whole = program.replay(osilp.Greedy(), data, "pointwise").objective
    monkeypatch.setattr(IndexGuard, "lifted", lambda self, batch: batch)
    monkeypatch.setattr(IndexGuard, "lowered", lambda self: self._evaluator.resources["pointwise"].total)
    assert whole >= (1 - most) * program.replay(osilp.Greedy(), data, "pointwise").objective


def test_knots_and_jumps_of_a_limit_are_among_the_points():
    measured, stepped = (of_columns("kernels", limit).evaluator.points[0][:, 0] for limit in ("measured", "in steps"))
    assert set(KNOTS) <= set(measured)
    assert {np.nextafter(0.3337, 0), 0.3337} <= set(stepped)


@pytest.mark.parametrize("below", [True, False])
def test_a_small_jump_beside_a_point_of_the_guard_is_seen(below):
    """A column that falls, and jumps up by less than it falls in a cell, at a point of the guard or just behind it."""
    program = packing(
        lambda u: 10 + 0 * u,
        50,
        grid=40,
        use=lambda place, u: pyo.Expr_if(u > place, 3 - 2 * u, 3 - 2 * u - 0.004),
    )
    assert program.index_guard.gaps == {}
    order, places = program.evaluator.neighbours[0]
    node = float(places[17])
    batch = program.batch(pd.DataFrame({"a": [np.nextafter(node, 1) if below else node]}))
    lifted = program.index_guard.lifted(batch).use["pointwise"][0, 0, order]
    inside = np.nextafter(np.nextafter(node, 1), 1)
    assert 3 - 2 * inside <= np.interp(inside, places, lifted) + 1e-12


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_a_lift_is_above_what_a_column_has_between_points(seed):
    """The lifted chord of each column lies above it, for data of any size."""
    rng = np.random.default_rng(seed)
    column = str(rng.choice(list(COLUMNS)))
    program = of_columns(column, "smooth", grid=int(rng.integers(25, 90)))
    evaluator, guard = program.evaluator, program.index_guard
    data = pd.DataFrame({"value": [1.0], "place": [rng.uniform(-0.2, 1.2)], "width": [10.0 ** rng.uniform(-3, 1)]})
    batch = program.batch(data)
    assert guard.lifted(batch) is not batch
    order, places = evaluator.neighbours[0]
    lifted = guard.lifted(batch).use["pointwise"][0, 0, order]
    fine = np.linspace(0, 1, 5001)
    values = COLUMNS[column][1](data["place"][0], data["width"][0], fine)
    if guard.stepped:
        (((_, steps),),) = guard.lifted(batch).steps
        assert np.array_equal(steps.at(fine)[0], values)
        return
    assert np.all(values <= np.interp(fine, places, lifted) + 1e-9 * np.abs(values).max())


def test_rows_of_which_only_points_are_kept_say_so():
    m = demo_model(arrivals=50)
    m.del_component("usage")
    m.usage = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: sum(pyo.exp(-(((u - m.place[t]) / 0.1) ** 2)) * m.x[t] for t in m.T) <= 2 + u,
        where=lambda m, u: u <= 0.5,
    )
    program = osilp.compile_online(m, stages=m.T)
    assert program.index_guard.gaps == {"usage": "its index is unbounded or restricted by where="}
    text = str(program.replay(osilp.Greedy(), guard="pointwise"))
    assert "grid points; between them nothing is kept, for its index is unbounded or restricted by where=" in text


def test_limits_of_a_rescaled_program_are_those_of_its_formulas():
    """A proof of the rows of hindsight is one of the limits that were solved for."""
    program = of_columns("kernels", "measured").rescaled(50)
    (group,) = program.template.families[0].limits.upper
    points = np.linspace(0, 1, 7)
    found = group.enclose(slice(None), coordinates(points[None], points[None]), Opening(1, 0)).value
    for end in found:
        np.testing.assert_allclose(np.broadcast_to(end, (1, 7))[0], group.total(points[:, None]), rtol=1e-12)


def kernels_of_any_width(limit=20.0, horizon=200):
    """The amplitude, the place and the width of a kernel come with the arrival."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.place = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.width = pyo.Param(m.T, mutable=True, initialize=0.1)
    m.size = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: (
            sum(m.size[t] * pyo.exp(-(((u - m.place[t]) / m.width[t]) ** 2)) * m.x[t] for t in m.T) <= limit
        ),
    )
    return osilp.compile_online(m, stages=m.T, horizon=horizon)


def test_a_lift_depends_on_its_arrival_alone():
    rng = np.random.default_rng(2)
    data = pd.DataFrame(
        {
            "place": rng.uniform(size=60),
            "width": 10.0 ** rng.uniform(-3.5, 0, size=60),
            "size": 10.0 ** rng.uniform(-2, 3, size=60),
        }
    )
    together, alone = kernels_of_any_width(), kernels_of_any_width()
    lifted = together.index_guard.lifted(together.batch(data)) if together.index_guard.gaps == {} else None
    assert alone.index_guard.gaps == {}
    for k in reversed(range(60)):
        one = alone.index_guard.lifted(alone.batch(data.iloc[[k]]))
        np.testing.assert_array_equal(one.use["pointwise"][0], lifted.use["pointwise"][k])


def test_what_is_given_back_is_what_was_taken(tmp_path):
    program = kernels_of_any_width()
    controller = program.controller(osilp.Greedy(), "pointwise")
    controller.step(place=0.9, width=0.0004, size=1.0)
    narrow = {"place": 0.4003, "width": 0.0035, "size": 1.0}
    taken = [controller.step(narrow).x for _ in range(15)]
    controller.save(tmp_path / "state.npz")
    other = osilp.load_controller(tmp_path / "state.npz", kernels_of_any_width())
    for x in taken:
        other.release(narrow, x=x)
    assert other.point_remaining.max() <= 20 + 1e-9
    np.testing.assert_allclose(
        controller.step(narrow).x, osilp.load_controller(tmp_path / "state.npz", program).step(narrow).x
    )


def test_an_exponential_that_overflows_between_points_is_bounded():
    program = packing(lambda u: 5 + 0 * u, 100, grid=100, use=lambda place, u: 1 / (1 + pyo.exp((place - u) / 0.001)))
    controller, places = program.controller(osilp.Greedy(), "pointwise"), np.linspace(0.7001, 0.7299, 60)
    taken = controller.steps(pd.DataFrame({"a": places}))["x"].to_numpy()
    assert controller.gaps == {}
    at = np.linspace(0.6, 0.8, 20_001)
    with np.errstate(over="ignore"):
        used = taken @ (1 / (1 + np.exp((places[:, None] - at) / 0.001)))
    assert 3 < used.max() <= 5 + 1e-9


def test_a_formula_that_overflows_between_points_is_refused():
    program = packing(
        lambda u: 5 + 0 * u, 100, grid=100, use=lambda place, u: 1 / (1 + pyo.exp((place - u) / 0.001) ** 2)
    )
    controller = program.controller(osilp.Greedy(), "pointwise")
    with pytest.raises(DataError, match="cannot be bounded between the points of the guard, for a part of its formula"):
        controller.step(a=0.9)
    assert np.isfinite(controller.point_remaining).all()
    assert controller.t == 0


def test_whole_numbers_do_not_round_up():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.a = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(0, 10), domain=pyo.Integers)
    m.gain = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((m.a[t] + 0 * u) * m.x[t] for t in m.T) <= 3 - 1e-9)
    program = osilp.compile_online(m, stages=m.T, horizon=20)
    for guard in ("projected", "pointwise"):
        assert program.controller(osilp.Greedy(), guard).step(a=1.0).x == 2.0


def test_the_seam_of_a_limit_that_comes_again_is_not_lowered():
    served = {}
    for outside in ("clamp", "wrap"):
        m = pyo.ConcreteModel()
        m.u = ContinuousSet(bounds=(0, 24))
        m.T = pyo.RangeSet(3)
        m.capacity = osilp.Profile(over=m.u, points=[0, 6, 12, 18, 24], initialize=[20, 5, 40, 60, 20], outside=outside)
        m.place = pyo.Param(m.T, mutable=True, initialize=5.0)
        m.x = pyo.Var(m.T, bounds=(0, 1))
        m.gain = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)
        m.row = osilp.SemiInfiniteConstraint(
            m.u, rule=lambda m, u: sum(pyo.exp(-((u - m.place[t]) ** 2)) * m.x[t] for t in m.T) <= m.capacity(u)
        )
        program = osilp.compile_online(m, stages=m.T, horizon=200)
        data = pd.DataFrame({"place": np.full(200, 23.5)})
        served[outside] = program.replay(osilp.Greedy(), data, "pointwise").objective
    assert served["wrap"] == pytest.approx(served["clamp"])


def test_a_curve_that_is_a_function_leaves_a_gap_of_its_own_controller(tmp_path):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(2)
    m.curve = osilp.Profile(m.T, over=m.u, points=[0, 1], initialize=1.0)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.curve[t](u) * m.x[t] for t in m.T) <= 5)
    program = osilp.compile_online(m, stages=m.T, horizon=50)
    one, two = (program.controller(osilp.Greedy(), "pointwise") for _ in range(2))
    one.decide(curve=lambda u: 1 + u)
    assert one.gaps == {}
    one.step(curve=lambda u: 1 + u)
    assert one.gaps == {"row": "a curve that is a Python function, or an integral, has values that nothing is known of"}
    assert two.gaps == {}
    one.save(tmp_path / "state.npz")
    assert osilp.load_controller(tmp_path / "state.npz", program).gaps == one.gaps


# -- points that were overrun, and what is beside them -----------------------------------------------------------

WAVES = {
    "linear": (lambda h, p, u: h * (u - p), lambda h, p, u: h * (u - p)),
    "wave": (lambda h, p, u: h * pyo.cos(9 * u + 6 * p), lambda h, p, u: h * np.cos(9 * u + 6 * p)),
    "bump": (
        lambda h, p, u: h * pyo.exp(-(((u - p) / 0.15) ** 2)),
        lambda h, p, u: h * np.exp(-(((u - p) / 0.15) ** 2)),
    ),
    "hat": (
        lambda h, p, u: h * pyo.Expr_if(abs(u - p) < 0.2, 1 - abs(u - p) / 0.2, 0),
        lambda h, p, u: h * np.where(np.abs(u - p) < 0.2, 1 - np.abs(u - p) / 0.2, 0),
    ),
}
NEAR_ZERO = {
    "touches zero": (lambda u: 10 * (u - 0.31) ** 2, lambda u: 10 * (u - 0.31) ** 2),
    "near zero": (lambda u: 1 + pyo.sin(15 * u), lambda u: 1 + np.sin(15 * u)),
    "even": (lambda u: 2 + 0 * u, lambda u: 2 + 0 * u),
}


def waves(column, limit, count=1):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.K = pyo.RangeSet(count)
    m.h = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.p = pyo.Param(m.T, mutable=True, initialize=0.5)
    m.x = pyo.Var(m.T, m.K, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.x[t, k] for t in m.T for k in m.K), sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: sum(column(m.h[t], m.p[t] / k, u) * m.x[t, k] for t in m.T for k in m.K) <= limit(u),
    )
    return osilp.compile_online(m, stages=m.T, horizon=60, grid=osilp.Midpoint(20), basis=osilp.RBF(4))


@pytest.mark.parametrize("column", WAVES)
@pytest.mark.parametrize("limit", NEAR_ZERO)
@pytest.mark.parametrize(("policy", "count"), [("Greedy", 1), ("Greedy", 2), ("SimpleGD", 1), ("Resolve", 1)])
def test_what_is_kept_between_points_stays_kept_beside_overrun_ones(column, limit, policy, count):
    """On a grid ten times as fine: no decision takes what is left below zero, nor further below, whatever was done."""
    program = waves(WAVES[column][0], NEAR_ZERO[limit][0], count)
    how = osilp.Resolve(exact=True) if policy == "Resolve" else getattr(osilp, policy)()
    u = np.unique(np.concatenate([np.linspace(0, 1, 201), program.evaluator.points[0][:, 0]]))
    taken = 0.0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        controller = program.controller(how, "pointwise")
        assert not controller.gaps
        left, done = NEAR_ZERO[limit][1](u), 0.0
        for t in range(60):
            h, p = rng.uniform(0, 1), rng.uniform(0, 1)
            columns = np.stack([WAVES[column][1](h, p / k, u) for k in range(1, count + 1)])
            if t in (3, 20, 40):
                slope, cut = rng.uniform(-4, 4), rng.uniform(-2, 1)
                controller.add_budget("row", lambda at, slope=slope, cut=cut: cut + slope * (at - 0.5))
                left = left + cut + slope * (u - 0.5)
            if t in (10, 30):
                x = np.ones(count)
                controller.update(h=h, p=p, x=x)
                left = left - x @ columns
                continue
            found = controller.step(h=h, p=p).x
            after = left - np.array(list(found.values())) @ columns
            assert np.all(after >= np.minimum(left, 0.0) - 1e-10)
            left, done = after, done + sum(found.values())
        taken += done
    assert taken > 1


def test_nothing_is_taken_beside_a_limit_that_is_zero_at_a_point():
    """Near 0 the uses h u cross a limit of 10 u**2, whatever is taken: at the next point there is room for them."""
    program = packing(lambda u: 10 * u**2, 20, use=lambda a, u: a * u)
    assert program.replay(osilp.Greedy(), pd.DataFrame({"a": np.full(20, 0.1)}), "pointwise").decisions.sum() == 0.0


def test_a_point_beside_one_that_was_overrun_counts_as_overrun():
    left, slack = np.array([3.0, -1.0, 2.0, np.inf, 5.0, 7.0]), np.full(6, 1e-12)
    beside = np.array([[0, 0, 1, 2, 3], [1, 2, 3, 4, 4]])
    for form in (fitting._left_beside_loop, fitting._left_beside_numpy, fitting.left_beside):
        assert form(left, slack, beside).tolist() == [-1.0, -1.0, -1.0, np.inf, 5.0, 7.0]
        # What rounding leaves of a point that is used up is no overrun.
        used_up = np.array([3.0, -1.9e-12, 2.0])
        assert form(used_up, slack[:3], beside[:, :2]).tolist() == used_up.tolist()


# -- what runs tell --------------------------------------------------------------------------------------------


def test_what_a_guard_counts_between_points_is_no_violation_at_them():
    """Nothing was decided, and nothing is used; the limit is lowered below zero at the end of the index."""
    program = packing(lambda u: 10 * u**2, 20, use=lambda a, u: a * u)
    data = pd.DataFrame({"a": np.full(20, 0.1)})
    run = program.replay(osilp.Greedy(), data, "pointwise")
    long = program.replay(osilp.Greedy(), iter([data.iloc[:7], data.iloc[7:]]), "pointwise")
    for each in (run, long):
        assert (each.violation, each.relative_violation, each.test_violation) == (0.0, 0.0, 0.0)
        assert str(each).splitlines()[3] == (
            "  violation  none of 'row' at 12 grid points; they are too far apart to tell it of what is between them"
        )
    assert run.violation_between == 0.0


@pytest.mark.parametrize("column", BUMPS)
def test_violations_at_points_are_those_of_the_decisions(column):
    program, data = bumps(BUMPS[column], lambda u: 5 + 4 * pyo.sin(9 * u)), bump_arrivals(200)
    run = program.replay(osilp.Resolve(), data, "pointwise")
    long = program.replay(osilp.Resolve(), iter([data.iloc[:90], data.iloc[90:]]), "pointwise")
    family, points = program.template.families[0], program.evaluator.points[0]
    use = program.evaluator.at_points(family, program.arrivals(data), run.decided, points)
    for each in (run, long):
        np.testing.assert_allclose(each.uses[0].excess, use - (5 + 4 * np.sin(9 * points[:, 0])), atol=1e-11)
        assert "anywhere on its index" in str(each)
    free = program.replay(osilp.Greedy(), data, "none")
    assert free.violation == pytest.approx(free.uses[0].excess.max())
    assert free.violation > 1
