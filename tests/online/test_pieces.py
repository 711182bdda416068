"""Rows whose columns are steps, such as bookings: guarded exactly, piece by piece, whatever the grid."""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo._files import read_state, write_state
from osilp_pyomo.errors import SavedStateError
from osilp_pyomo.online.stages import portions
from osilp_pyomo.online.stages.pieces import Looked, Pieces
from osilp_pyomo.online.stages.steps import Steps, find_steps


def bookings(horizon, capacity, closed=False, domain=pyo.Binary, grid=40, limit=None):
    """Stays with a beginning and an end; so many places at every moment."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.value = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.first = pyo.Param(m.T, mutable=True, initialize=0.2)
    m.last = pyo.Param(m.T, mutable=True, initialize=0.4)
    m.x = pyo.Var(m.T, domain=domain, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    def stays(m, t, u):
        ends = u <= m.last[t] if closed else u < m.last[t]
        return pyo.Expr_if(u >= m.first[t], 1, 0) * pyo.Expr_if(ends, 1, 0)

    @m.SemiInfiniteConstraint(m.u)
    def places(m, u):
        return sum(stays(m, t, u) * m.x[t] for t in m.T) <= (capacity if limit is None else limit(u))

    return osilp.compile_online(m, stages=m.T, horizon=horizon, grid=grid, basis=5)


def stays(count, mean, rng, lattice=None):
    first = rng.uniform(-0.05, 1, count)
    last = first + rng.exponential(mean, count)
    if lattice:
        first, last = np.round(first * lattice) / lattice, np.round(last * lattice + 0.5) / lattice
    return pd.DataFrame({"value": rng.uniform(size=count), "first": first, "last": last})


def moments(data):
    """Every moment at which something can change, and its neighbours among the numbers."""
    ends = np.concatenate([[0, 1], data["first"], data["last"]])
    around = np.concatenate([ends, np.nextafter(ends, -9), np.nextafter(ends, 9)])
    return np.unique(np.clip(around, 0, 1))


def occupied(data, x, at, closed=False):
    first, last = data["first"].to_numpy(), data["last"].to_numpy()
    ends = at[:, None] <= last if closed else at[:, None] < last
    return ((first <= at[:, None]) & ends) @ x


def decided_by_hand(data, limit, closed=False):
    """Take everybody who fits at every moment, by adding up who is there."""
    at = moments(data)
    column = occupied(data, np.eye(len(data)), at, closed).T
    left, taken = limit(at) + 1e-9, np.zeros(len(data))
    for k in range(len(data)):
        if np.all(column[k] <= left):
            taken[k], left = 1.0, left - column[k]
    return taken


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("lattice", [None, 24])
def test_bookings_are_guarded_exactly(seed, closed, lattice):
    rng = np.random.default_rng([seed, closed, lattice or 0])
    data = stays(150, float(rng.choice([0.01, 0.1, 0.4])), rng, lattice)
    capacity = int(rng.integers(1, 8))
    run = bookings(150, capacity, closed).replay(osilp.Greedy(), data)
    assert run.decisions.tolist() == decided_by_hand(data, lambda at: np.full(len(at), capacity), closed).tolist()
    assert "anywhere on its index" in str(run)


@pytest.mark.parametrize(
    "policy", [osilp.MirrorDescent(), osilp.SimpleGD(), osilp.Resolve(), osilp.Resolve(exact=True)]
)
@pytest.mark.parametrize("domain", [pyo.Binary, pyo.Reals], ids=["whole", "parts"])
def test_no_policy_overbooks(policy, domain):
    data = stays(400, 0.05, np.random.default_rng(3))
    run = bookings(400, 9, domain=domain).replay(policy, data)
    most = occupied(data, run.decisions.to_numpy(), moments(data)).max()
    assert 8.5 <= most <= 9 + 1e-9


def test_steps_of_the_limit_and_a_limit_that_bends():
    rng = np.random.default_rng(5)
    data = stays(200, 0.1, rng)
    steps = bookings(200, 0, limit=lambda u: pyo.Expr_if(u < 0.5, 3, 6))
    by_hand = decided_by_hand(data, lambda at: np.where(at < 0.5, 3.0, 6.0))
    assert steps.replay(osilp.Greedy(), data).decisions.tolist() == by_hand.tolist()
    bent = bookings(200, 0, limit=lambda u: 5 + 2 * pyo.sin(6 * u), grid=400)
    taken = bent.replay(osilp.Greedy(), data).decisions.to_numpy()
    at = np.unique(np.concatenate([moments(data), np.linspace(0, 1, 20_001)]))
    assert np.max(occupied(data, taken, at) - (5 + 2 * np.sin(6 * at))) <= 1e-9
    exact = decided_by_hand(data, lambda at: 5 + 2 * np.sin(6 * at))
    assert taken.sum() >= 0.97 * exact.sum()


def test_single_steps_batches_and_saved_controllers_agree(tmp_path):
    program, data = bookings(120, 3), stays(120, 0.1, np.random.default_rng(7))
    whole = program.replay(osilp.MirrorDescent(), data)
    controller = program.controller(osilp.MirrorDescent())
    taken = [controller.step(**row).x for row in data.iloc[:50].to_dict("records")]
    controller.save(tmp_path / "state.npz")
    again = osilp.load_controller(tmp_path / "state.npz", program)
    taken += again.steps(data.iloc[50:90])["x"].tolist()
    taken += [again.step(**row).x for row in data.iloc[90:].to_dict("records")]
    assert taken == whole.decisions.tolist()


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: {"pieces:0:left": arrays["pieces:0:left"] + 1.0},
        lambda arrays: {"pieces:0:total": arrays["pieces:0:total"] + 1.0},
        lambda arrays: {
            "pieces:0:places": arrays["pieces:0:places"] + np.linspace(0, 1, len(arrays["pieces:0:places"]))
        },
        lambda arrays: {"pieces:0:left": np.full(len(arrays["pieces:0:left"]), 3.0)},
    ],
    ids=["left", "total", "places", "nothing taken"],
)
def test_saved_pieces_that_have_more_than_the_budget_are_refused(change, tmp_path):
    program = bookings(60, 3)
    controller = program.controller(osilp.Greedy())
    controller.steps(stays(40, 0.3, np.random.default_rng(1)))
    controller.add_budget("places", lambda u: 1 + u)
    controller.release(value=1.0, first=0.1, last=0.5)
    controller.save(tmp_path / "state.npz")
    header, arrays = read_state(tmp_path / "state.npz")
    write_state(tmp_path / "state.npz", header, arrays)
    again = osilp.load_controller(tmp_path / "state.npz", program)
    assert again.remaining.tolist() == controller.remaining.tolist()
    write_state(tmp_path / "state.npz", header, arrays | change(arrays))
    with pytest.raises(SavedStateError, match="the pieces of a row have more left than its points"):
        osilp.load_controller(tmp_path / "state.npz", program)


def test_cancellations_and_budgets_are_counted_on_pieces():
    program = bookings(20, 1)
    controller = program.controller(osilp.Greedy())
    stay = {"value": 1.0, "first": 0.2001, "last": 0.4003}
    assert controller.step(**stay).x == 1.0
    assert controller.decide(**stay).x == 0.0
    assert controller.decide(value=1.0, first=0.4003, last=0.5).x == 1.0
    assert controller.decide(value=1.0, first=float(np.nextafter(0.4003, 0)), last=0.5).x == 0.0
    controller.release(**stay, x=1.0)
    assert controller.step(**stay).x == 1.0
    controller.add_budget("places", 1.0)
    assert controller.step(**stay).x == 1.0
    assert controller.step(**stay).x == 0.0
    controller.add_budget("places", lambda u: np.where(u < 0.5, 0.0, -5.0))
    assert controller.step(value=1.0, first=0.6, last=0.7).x == 0.0
    controller.update(value=1.0, first=0.0, last=0.1, x=1.0)
    controller.update(value=1.0, first=0.0, last=0.1, x=1.0)
    assert controller.step(value=1.0, first=0.05, last=0.06).x == 0.0
    assert controller.step(value=1.0, first=0.1, last=0.15).x == 1.0


def test_options_in_several_rooms():
    """Whole options, each in a room of its own, side by side with an ordinary row."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T, m.R = pyo.RangeSet(3), pyo.Set(initialize=["a", "b"])
    m.pay = pyo.Param(m.T, m.R, mutable=True, initialize=1.0)
    m.first = pyo.Param(m.T, mutable=True, initialize=0.2)
    m.last = pyo.Param(m.T, mutable=True, initialize=0.4)
    m.x = pyo.Var(m.T, m.R, domain=pyo.Binary)
    m.reward = pyo.Objective(expr=sum(m.pay[t, r] * m.x[t, r] for t in m.T for r in m.R), sense=pyo.maximize)
    m.one = pyo.Constraint(m.T, rule=lambda m, t: m.x[t, "a"] + m.x[t, "b"] <= 1)
    m.all = pyo.Constraint(expr=sum(m.x[t, r] for t in m.T for r in m.R) <= 40)

    @m.SemiInfiniteConstraint(m.R, m.u)
    def places(m, r, u):
        return sum(pyo.Expr_if(pyo.inequality(m.first[t], u, m.last[t]), 1, 0) * m.x[t, r] for t in m.T) <= 2

    program = osilp.compile_online(m, stages=m.T, horizon=100, grid=30, basis=4)
    rng = np.random.default_rng(0)
    data = stays(100, 0.2, rng).drop(columns="value")
    data[("pay", "a")], data[("pay", "b")] = rng.uniform(1, 2, 100), rng.uniform(0, 1, 100)
    data.columns = pd.Index(list(data.columns), tupleize_cols=False)
    run = program.replay(osilp.Greedy(), data)
    for room in ("a", "b"):
        x = run.decisions[("x", room)].to_numpy()
        assert occupied(data, x, moments(data), closed=True).max() == 2
    assert run.decisions.to_numpy().sum() <= 40


@pytest.mark.parametrize("step", [0.5, 0.3, 0.1])
def test_stays_that_end_where_the_limit_falls(step):
    program = bookings(20, 0, limit=lambda u: pyo.Expr_if(u < step, 6, 3))
    controller = program.controller(osilp.Greedy())
    taken = [controller.step(value=1.0, first=step / 2, last=step).x for _ in range(8)]
    assert taken == [1.0] * 6 + [0.0] * 2
    assert [controller.step(value=1.0, first=step, last=0.9).x for _ in range(4)] == [1.0] * 3 + [0.0]


def test_a_condition_in_other_units_that_switches_at_zero():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(-1, 1))
    m.T = pyo.RangeSet(3)
    m.first = pyo.Param(m.T, mutable=True, initialize=0.0)
    m.last = pyo.Param(m.T, mutable=True, initialize=3.0)
    m.x = pyo.Var(m.T, domain=pyo.Binary)
    m.reward = pyo.Objective(expr=sum((1 + m.first[t] ** 2) * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def places(m, u):
        hours = [pyo.Expr_if(24 * u >= m.first[t], 1, 0) * pyo.Expr_if(24 * u < m.last[t], 1, 0) for t in m.T]
        return sum(hours[k] * m.x[t] for k, t in enumerate(m.T)) <= 1

    controller = osilp.compile_online(m, stages=m.T, horizon=20).controller(osilp.Greedy())
    assert [controller.step(first=a, last=b).x for a, b in ((-5.0, 0.0), (0.0, 5.0), (-1.0, 1.0))] == [1.0, 1.0, 0.0]


def test_negative_decisions_where_not_all_is_kept_by_pieces():
    """A limit below zero somewhere: the row is kept at points, and between them nothing is said of decisions below 0."""
    program = bookings(20, 0, domain=pyo.Reals, limit=lambda u: 1 - 1.5 * pyo.Expr_if(u < 0.05, 1, 0))
    assert program.controller(osilp.Greedy()).gaps == {}
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.first = pyo.Param(m.T, mutable=True, initialize=0.2)
    m.x = pyo.Var(m.T, bounds=(-1, 1))
    m.reward = pyo.Objective(expr=sum(m.first[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.places = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: (
            sum(pyo.Expr_if(u >= m.first[t], 1, 0) * m.x[t] for t in m.T) <= 1 - 1.5 * pyo.Expr_if(u < 0.05, 1, 0)
        ),
    )
    gaps = osilp.compile_online(m, stages=m.T).controller(osilp.Greedy()).gaps
    assert gaps == {"places": "the decision 'x' may be negative"}


def test_a_held_price_and_portions(monkeypatch):
    """Decisions at one price, in portions of any size: the same as all at once."""
    program, data = bookings(300, 4), stays(300, 0.05, np.random.default_rng(9))
    whole = program.controller(osilp.MirrorDescent()).steps(data, hold_price=True)["x"].tolist()
    monkeypatch.setattr(portions, "_TOGETHER", 7)
    assert program.controller(osilp.MirrorDescent()).steps(data, hold_price=True)["x"].tolist() == whole


@pytest.mark.parametrize("policy", [osilp.Greedy(), osilp.MirrorDescent(), osilp.Resolve()])
def test_stays_in_two_rooms(policy):
    """An arrival that one row refuses is not paid for in the other."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.value = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.first = pyo.Param(m.T, mutable=True, initialize=0.2)
    m.last = pyo.Param(m.T, mutable=True, initialize=0.4)
    m.size = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, domain=pyo.Binary)
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def beds(m, u):
        here = {t: pyo.Expr_if(u >= m.first[t], m.size[t], 0) * pyo.Expr_if(u < m.last[t], 1, 0) for t in m.T}
        return sum(here[t] * m.x[t] for t in m.T) <= 5

    @m.SemiInfiniteConstraint(m.u)
    def cleaned(m, u):
        after = {t: pyo.Expr_if(u >= m.last[t], 1, 0) * pyo.Expr_if(u < m.last[t] + 0.02, 1, 0) for t in m.T}
        return sum(after[t] * m.x[t] for t in m.T) <= 1

    rng = np.random.default_rng(12)
    data = stays(600, 0.05, rng).assign(size=rng.integers(1, 4, 600).astype(float))
    program = osilp.compile_online(m, stages=m.T, horizon=600, grid=30, basis=5)
    run = program.replay(policy, data)
    at = moments(pd.concat([data, data.assign(last=data["last"] + 0.02)]))
    first, last = data["first"].to_numpy(), data["last"].to_numpy()
    columns = (
        np.where((first <= at[:, None]) & (at[:, None] < last), data["size"].to_numpy(), 0.0),
        ((last <= at[:, None]) & (at[:, None] < last + 0.02)).astype(float),
    )
    left = [np.full(len(at), 5.0), np.full(len(at), 1.0)]
    for wanted, taken, *used in zip(run.wanted, run.decisions, *(each.T for each in columns), strict=True):
        fits = all(np.all(use <= rest + 1e-9) for use, rest in zip(used, left, strict=True))
        assert taken == (wanted if fits else 0.0)
        left = [rest - taken * use for use, rest in zip(used, left, strict=True)]
    assert run.decisions.sum() > 30


# -- the parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        lambda m, t, u: (u - m.first[t]) ** 2 <= m.last[t] ** 2 / 16,
        lambda m, t, u: pyo.sin(20 * u * (1 + m.first[t])) <= m.last[t],
        lambda m, t, u: pyo.inequality(m.first[t], u, m.first[t] + 1e-12 * m.last[t]),
        lambda m, t, u: 3 * u <= m.first[t] + m.last[t],
        lambda m, t, u: abs(u - m.first[t]) <= m.last[t] / 5,
    ],
    ids=["square", "wave", "hair", "half-line", "distance"],
)
def test_steps_are_where_the_column_changes(condition):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.first = pyo.Param(m.T, mutable=True, initialize=0.2)
    m.last = pyo.Param(m.T, mutable=True, initialize=0.4)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.first[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.places = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(pyo.Expr_if(condition(m, t, u), 2, 0.5) * m.x[t] for t in m.T) <= 3
    )
    program = osilp.compile_online(m, stages=m.T, horizon=50)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"first": rng.uniform(size=30), "last": rng.uniform(size=30)})
    arrivals, (term,) = program.arrivals(frame), program.template.families[0].terms
    steps = find_steps(term, arrivals, 0.0, 1.0)
    known = steps.places[np.isfinite(steps.places)]
    points = np.unique(np.concatenate([np.linspace(0, 1, 5001), known, np.nextafter(known, 0), np.nextafter(known, 1)]))
    values = np.broadcast_to(term.values(arrivals, [points[None]]), (30, len(points)))
    assert np.array_equal(steps.at(points), values)


def test_what_rounding_leaves_open_is_on_the_safe_side():
    """A condition that is true up to rounding on more numbers than can be tried: near zero there are very many."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 30))
    m.T = pyo.RangeSet(3)
    m.first = pyo.Param(m.T, mutable=True, initialize=0.0)
    m.last = pyo.Param(m.T, mutable=True, initialize=3.3)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.last[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def places(m, u):
        far = [abs(u - (m.first[t] + m.last[t]) / 2) <= (m.last[t] - m.first[t]) / 2 for t in m.T]
        return sum(pyo.Expr_if(each, 1, 0) * m.x[t] for t, each in zip(m.T, far, strict=True)) <= 2

    program = osilp.compile_online(m, stages=m.T, horizon=50)
    frame = pd.DataFrame({"first": np.zeros(40), "last": np.random.default_rng(0).uniform(1, 20, 40)})
    arrivals, (term,) = program.arrivals(frame), program.template.families[0].terms
    steps = find_steps(term, arrivals, 0.0, 30.0)
    points = np.unique(np.concatenate([np.linspace(0, 30, 3001), 10.0 ** np.arange(-300.0, 0), frame["last"]]))
    values = np.broadcast_to(term.values(arrivals, [points[None]]), (40, len(points)))
    assert np.all(steps.at(points) >= values)
    assert np.mean(steps.at(points) != values) < 0.2
    assert np.array_equal(steps.at(points[points > 1e-12]), values[:, points > 1e-12])


@pytest.mark.parametrize("sign", [1, -1])
def test_conditions_that_overflow_far_out(sign):
    """``exp(u - a) >= 1`` on an index along which the exponential is too large for a number."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1e5))
    m.T = pyo.RangeSet(3)
    m.a = pyo.Param(m.T, mutable=True, initialize=1.0)
    m.x = pyo.Var(m.T, domain=pyo.Binary)
    m.reward = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)
    m.row = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(pyo.Expr_if(pyo.exp(sign * (u - m.a[t])) >= 1, 1, 0) * m.x[t] for t in m.T) <= 1
    )
    program = osilp.compile_online(m, stages=m.T, horizon=9)
    data = pd.DataFrame({"a": [7.0, 2000.0, 90_000.0]})
    (term,), arrivals = program.template.families[0].terms, program.arrivals(data)
    steps = find_steps(term, arrivals, 0.0, 1e5)
    assert np.all(np.abs(steps.places[:, 0] - data["a"]) <= 1e-9 * data["a"])
    assert steps.values.tolist() == [[0.0, 1.0] if sign > 0 else [1.0, 0.0]] * 3
    assert program.replay(osilp.Greedy(), data).decisions.tolist() == [1.0, 0.0, 0.0]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_pieces_are_what_adding_up_says(data):
    """Cut, paid and raised in any order: the same as adding up at every place."""
    numbers = st.integers(0, 20).map(lambda k: k / 20)
    grid = np.linspace(0, 1, 6)
    pieces = Pieces.of_cells(grid, np.full(6, 10.0))
    at = np.unique(np.concatenate([np.arange(21) / 20, np.arange(20) / 20 + 0.01]))
    truth = np.full(len(at), 10.0)
    for _ in range(data.draw(st.integers(1, 8))):
        ends = sorted(data.draw(st.lists(numbers, min_size=2, max_size=2)))
        amount = data.draw(st.sampled_from([-1.0, 0.5, 1.0, 2.0]))
        steps = Steps(np.array([ends]), np.array([[0.0, 1.0, 0.0]]))
        pieces = pieces.paid(steps, np.array([amount]))
        truth = truth - amount * ((at >= ends[0]) & (at < ends[1]))
    here = np.searchsorted(pieces.places, at, side="right") - 1
    assert pieces.left[here] == pytest.approx(truth)
    # Nothing is told apart that is the same.
    assert np.all((np.diff(pieces.left) != 0) | (np.diff(pieces.total) != 0))
    raised = pieces.raised(grid, grid)
    assert np.all(raised.left[np.searchsorted(raised.places, at, side="right") - 1] <= truth + at + 1e-12)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_what_is_looked_at_decides(data):
    """Who is refused fits nowhere near; whoever is not is looked at, and paid for, wherever something is used."""
    numbers = st.integers(-3, 20).map(lambda k: k / 20)
    left = data.draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]), min_size=20, max_size=20))
    pieces = Pieces(np.arange(20) / 20, np.full(20, 2.0), np.array(left)).merged()
    ends = np.array([sorted(data.draw(st.sets(numbers, min_size=3, max_size=3))) for _ in range(4)])
    values = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=16, max_size=16))
    uses = Steps(ends, np.reshape(values, (4, 4)))
    known = np.array(data.draw(st.lists(st.booleans(), min_size=4, max_size=4)))
    looked, refused = Looked.where_it_matters(pieces, uses, 2.0, known)
    every = np.unique(np.clip(np.concatenate([np.arange(20) / 20, ends.ravel()]), 0, 1))
    rest, used = pieces.left[pieces.holding(every)], uses.at(every)
    assert refused.tolist() == (known | np.any((used > 0) & (used > rest + 1e-9), axis=1)).tolist()
    assert looked.left.tolist() == pieces.left[pieces.holding(looked.points)].tolist()
    # Those that this row refuses are refused at the points that are looked at.
    here = uses.at(looked.points)
    assert np.all(np.any((here > 0) & (here > looked.left + 1e-9), axis=1)[refused & ~known])
    # Of the others some are taken; whether one fits then is seen at the points, and what was taken is paid everywhere.
    taken = np.zeros(4)
    for b in np.flatnonzero(~refused):
        now = rest - taken @ used
        fits = not np.any((used[b] > 0) & (used[b] > now + 1e-9))
        assert fits == (not np.any((here[b] > 0) & (here[b] > looked.left - taken @ here + 1e-9)))
        taken[b] = fits
    after = looked.after(looked.left - taken @ here, taken[:, None])
    assert after.left[after.holding(every)].tolist() == (rest - taken @ used).tolist()
    assert looked.after(looked.left, np.zeros((4, 1))) is pieces


def test_where_all_is_given_out_hardly_anything_is_looked_at():
    full = Pieces(np.arange(1000) / 1000, np.full(1000, 3.0), np.arange(1000) % 2 * 0.5)
    uses = Steps(np.array([[0.1, 0.9]]), np.array([[0.0, 1.0, 0.0]]))
    looked, refused = Looked.where_it_matters(full, uses, 3.0, np.zeros(1, dtype=bool))
    assert refused.all()
    assert len(looked.points) == 1
    assert np.isin(looked.cut.places, full.places).all()


def test_very_many_pieces_are_taken_together_on_the_safe_side(monkeypatch):
    from osilp_pyomo.online.stages import pieces as module

    monkeypatch.setattr(module, "_MOST", 8)
    rng = np.random.default_rng(0)
    data = stays(80, 0.1, rng)
    run = bookings(80, 4).replay(osilp.Greedy(), data)
    assert occupied(data, run.decisions.to_numpy(), moments(data)).max() <= 4


def test_wide_gaps_stay_free_where_very_many_pieces_are_taken_together(monkeypatch):
    """A machine for one: whoever wants a wide gap between hundreds of stays gets it, as if all pieces were kept."""
    from osilp_pyomo.online.stages import pieces as module

    monkeypatch.setattr(module, "_MOST", 64)
    # Stays leave a thousandth of their length free to the next one, but for every tenth.
    first = np.arange(200) / 200
    last = first + np.where(np.arange(200) % 10 == 9, 0.0025, 0.004995)
    wide = pd.DataFrame({"value": 1.0, "first": last[9::10] + 1e-4, "last": last[9::10] + 2e-3})
    controller = bookings(300, 1).controller(osilp.Greedy(), "pointwise")
    given = pd.DataFrame({"value": 1.0, "first": first, "last": last})
    assert controller.steps(given)["x"].sum() == 200
    for _, stay in wide.iterrows():
        assert controller.step(stay).x == 1
        assert controller.step(stay).x == 0


@given(st.data())
def test_pieces_taken_together_have_nowhere_more_than_before(data):
    lefts = st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.0]), min_size=9, max_size=40)
    left = np.array(data.draw(lefts))
    widths = data.draw(st.lists(st.sampled_from([0.0, 1e-3, 1.0]), min_size=len(left), max_size=len(left)))
    places = np.cumsum(np.array(widths) + 1e-9)
    pieces = Pieces(places, np.full(len(left), 9.0), left)
    coarser = pieces._coarser()
    at = coarser.holding(places)
    assert len(coarser.places) <= len(places) - len(places) // 8
    assert coarser.places[0] == places[0]
    assert np.all(coarser.left[at] <= left)
    # Two that are neighbours have what one of them had.
    assert np.all(coarser.left[at] >= np.minimum(left, np.minimum(np.append(left[1:], 9), np.append(9, left[:-1]))))


@pytest.mark.parametrize("seed", range(20))
def test_only_pieces_that_an_arrival_uses_are_touched(seed):
    """A short stay costs what its part of the index does, and what is left is as if all had been gone through."""
    rng = np.random.default_rng([seed, 18])
    places = np.concatenate([[0.0], np.sort(rng.uniform(size=20_000))])
    left = rng.integers(0, 3, len(places)).astype(float)
    pieces = Pieces(places, np.full(len(places), 9.0), left).merged()
    first = rng.choice([0.0, rng.uniform(), *rng.choice(pieces.places, 2)])
    last = min(first + rng.choice([1e-9, 1e-3, 0.03]), 1.0)
    uses = Steps(np.array([[first, last]]), np.array([[0.0, 1.0, 0.0]]))
    if seed % 4 == 0:
        uses = Steps(np.array([[last]]), np.array([[1.0, 0.0]]))
        first = 0.0
    looked, refused = Looked.where_it_matters(pieces, uses, 9.0, np.zeros(1, dtype=bool))
    inside = pieces.left[int(pieces.holding(np.array([first]))[0]) : np.searchsorted(pieces.places, last)]
    assert refused[0] == (inside.min() < 1)
    assert len(looked.cut.places) <= len(inside) + 6
    assert looked.left.tolist() == [inside.min()]
    paid = looked.after(looked.left, np.array([[float(not refused[0])]]))
    expected = pieces if refused[0] else pieces.paid(uses, np.ones(1))
    for one, other in zip(vars(paid).values(), vars(expected).values(), strict=True):
        assert np.array_equal(one, other)


def test_arrivals_that_use_nothing_of_the_index_look_at_nothing():
    pieces = Pieces(np.array([0.0, 0.5]), np.full(2, 9.0), np.array([1.0, 2.0]))
    uses = Steps(np.array([[np.inf]]), np.array([[0.0, 0.0]]))
    looked, refused = Looked.where_it_matters(pieces, uses, 9.0, np.zeros(1, dtype=bool))
    assert not refused[0]
    assert not len(looked.points)
    assert looked.after(looked.left, np.ones((1, 1))) is pieces
