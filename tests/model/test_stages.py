"""What compile_online reads in a model: stages, decisions, data and rows; the oracle is the model itself."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.errors import DataError, HorizonError, ModelError, OptionError
from osilp_pyomo.model.constraint.component import semi_infinite_families

GRID, BASIS = osilp.Midpoint(25), osilp.RBF(4)
POLICIES = (osilp.MirrorDescent(), osilp.Resolve())


def bump(u, place, width=0.2):
    return pyo.exp(-(((u - place) / width) ** 2))


def start(stages=5, labels=None, seed=0):
    random = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(stages) if labels is None else pyo.Set(initialize=labels)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, *t: random.uniform(0.2, 1))
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, *t: random.uniform())
    return m


def plain(stages=5, labels=None):
    m = start(stages, labels)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: used(m, u) <= 1)
    return m


def used(m, u):
    return sum(bump(u, m.place[t]) * m.x[t] for t in m.T)


def options(index):
    """Options a and b of every stage, indexed in different ways; returns the model and x(t, k)."""
    m = start()
    m.K = pyo.Set(initialize=["a", "b"])
    pairs = [(t, k) for t in m.T for k in m.K]
    if index == "product":
        sets, key = (m.T, m.K), lambda t, k: (t, k)
    elif index == "turned":
        sets, key = (m.K, m.T), lambda t, k: (k, t)
    elif index == "within":
        m.P = pyo.Set(within=m.T * m.K, initialize=pairs)
        sets, key = (m.P,), lambda t, k: (t, k)
    else:
        m.P = pyo.Set(dimen=2, initialize=[(k, t) for t, k in pairs])
        sets, key = (m.P,), lambda t, k: (k, t)
    m.x = pyo.Var(*sets, bounds=(0, 1))
    m.fare = pyo.Param(*sets, mutable=True, initialize=1.0)
    for n, (t, k) in enumerate(pairs):
        m.fare[key(t, k)] = 0.3 + 0.07 * n * (-1) ** n
    m.gain = pyo.Objective(expr=sum(m.fare[key(t, k)] * m.x[key(t, k)] for t, k in pairs), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(bump(u, m.place[t]) * m.x[key(t, k)] for t, k in pairs) <= 0.5 + u
    )
    return m, lambda m, column, t: m.x[key(t, column[1])]


def by_name(m, column, t):
    return m.find_component(column if isinstance(column, str) else column[0])[t]


def agrees(m, stages, variable=by_name, own=(), hidden=False, policies=POLICIES):
    """Offline answers, objective, violation and single steps agree with the model that was compiled."""
    program = osilp.compile_online(m, stages=stages, grid=GRID, basis=BASIS)
    for method, options in (("exchange", {}), ("projected", {"grid": GRID, "basis": BASIS})):
        direct = osilp.solve(m, method=method, **options)
        assert program.solve_offline(method=method).objective == pytest.approx(direct.objective, rel=1e-7)
    for policy in policies:
        run = program.replay(policy, progress=False)
        frame = run.decisions.to_frame() if isinstance(run.decisions, pd.Series) else run.decisions
        for t, row in zip(frame.index, frame.to_numpy(), strict=True):
            for column, number in zip(frame.columns, row, strict=True):
                variable(m, column, t).set_value(float(number), skip_validation=True)
        objective = next(m.component_data_objects(pyo.Objective, active=True))
        assert pyo.value(objective) == pytest.approx(run.objective, rel=1e-9, abs=1e-9)
        for name in own:
            for row in m.find_component(name).values():
                assert row.lslack() >= -1e-6
                assert row.uslack() >= -1e-6
        for number, family in enumerate(semi_infinite_families(m)):
            told = run.violation if len(program.template.families) == 1 else run.violation[family.name]
            assert told == pytest.approx(worst(family, program.evaluator.points[number]), rel=1e-7, abs=1e-8)
        if hidden:
            continue
        controller = program.controller(policy)
        steps = [controller.step(row, **one(program.profiles, n)) for n, (_, row) in enumerate(program.data.iterrows())]
        decided = [list(step.x.values()) if isinstance(step.x, dict) else [step.x] for step in steps]
        np.testing.assert_allclose(decided, frame.to_numpy(), rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose([step.reward for step in steps], run.rewards.to_numpy())
        np.testing.assert_allclose(controller.remaining, run.remaining, rtol=1e-7, atol=1e-8)
    return program


def worst(family, points):
    largest = 0.0
    for point in points:
        sides = [pyo.value(side) for side in family.at(*map(float, point)).args]
        largest = max(largest, *(low - high for low, high in pairwise(sides)))
    return largest


def one(profiles, number):
    return {name: curves[number] for name, curves in profiles.items()}


# -- where the stage stands ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", ["product", "turned", "within", "sparse"])
def test_stage_stands_anywhere_in_the_index(index):
    m, variable = options(index)
    program = agrees(m, m.T, variable)
    assert [str(label) for label in program.template.decisions] == ["x[a]", "x[b]"]
    assert program.data.columns.tolist() == [("fare", "a"), ("fare", "b"), "place"]


@pytest.mark.parametrize("index", ["product", "turned"])
def test_stages_as_a_function_of_the_index(index):
    m, variable = options(index)
    agrees(
        m, lambda i: next((part for part in np.atleast_1d(np.array(i, dtype=object)) if part in m.T), None), variable
    )


@pytest.mark.parametrize(
    "labels", [["a", "b", "c"], [-1, 0, 3], [0.5, -2.5], [(1, "a"), (1, "b"), (2, "a")], ["x[1]", "t", ""]]
)
def test_any_labels_of_stages(labels):
    m = plain(labels=labels)
    program = agrees(m, m.T)
    assert program.data.index.tolist() == labels


def test_other_labels_may_equal_those_of_stages():
    m = start()
    m.K = pyo.Set(initialize=[1, 2])
    m.x = pyo.Var(m.K, m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.value[t] * k * m.x[k, t] for k in m.K for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.K, m.u, rule=lambda m, k, u: sum(bump(u, m.place[t]) * m.x[k, t] for t in m.T) <= k
    )
    agrees(m, m.T, lambda m, column, t: m.x[column[1], t])


def test_subset_of_stages_as_index():
    m = start()
    m.S = pyo.Set(within=m.T, initialize=list(m.T))
    m.x = pyo.Var(m.S, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.S), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: used(m, u) <= 1)
    agrees(m, m.T)


def test_block_of_a_stage_with_variables_data_and_rows():
    m = start()

    @m.Block(m.T)
    def stop(b, t):
        b.cap = pyo.Param(mutable=True, initialize=0.4 + 0.1 * t)
        b.x = pyo.Var(bounds=(0, b.cap))
        b.y = pyo.Var(bounds=(0, 1))
        b.both = pyo.Constraint(expr=b.x + 2 * b.y <= 1 + b.cap)
        b.earned = pyo.Expression(expr=m.value[t] * b.x + 0.5 * b.y)

    m.gain = pyo.Objective(expr=sum(m.stop[t].earned for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(bump(u, m.place[t]) * (m.stop[t].x + m.stop[t].y) for t in m.T) <= 1
    )
    program = agrees(m, m.T, lambda m, column, t: getattr(m.stop[t], column))
    assert sorted(program.data.columns) == ["cap", "place", "value"]
    assert [label.column for label in program.template.decisions] == ["x", "y"]


def test_block_over_stages_and_options():
    m = start()
    m.K = pyo.Set(initialize=["a", "b"])

    @m.Block(m.K, m.T)
    def offer(b, k, t):
        b.fare = pyo.Param(mutable=True, initialize=0.3 + 0.1 * t + (k == "a"))
        b.x = pyo.Var(bounds=(0, 1))

    pairs = [(k, t) for k in m.K for t in m.T]
    m.gain = pyo.Objective(expr=sum(m.offer[i].fare * m.offer[i].x for i in pairs), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(bump(u, m.place[t]) * m.offer[k, t].x for k, t in pairs) <= 1
    )
    agrees(m, m.T, lambda m, column, t: m.offer[column[1], t].x)


# -- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sense", [pyo.maximize, pyo.minimize])
@pytest.mark.parametrize("upper", [True, False])
def test_rows_of_every_kind(sense, upper):
    sign = 1 if sense == pyo.maximize else -1
    m = start()
    m.need = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 0.1 + 0.02 * t)
    m.scale = pyo.Param(mutable=True, initialize=1.5)
    m.x = pyo.Var(m.T, bounds=lambda m, t: (0, 10 * m.need[t]))
    m.y = pyo.Var(m.T, bounds=(-1, 1))
    m.gain = pyo.Objective(
        expr=sum(sign * m.value[t] * m.x[t] + sign * 0.3 * m.y[t] + m.need[t] + 2 for t in m.T) + 7, sense=sense
    )

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        body = sum(bump(u, m.place[t]) * (m.x[t] + 0.2 * m.y[t]) - m.need[t] * u for t in m.T)
        return body <= m.scale + u if upper else -body >= -m.scale - u

    m.least = pyo.Constraint(expr=sum(m.need[t] * m.x[t] + 1 for t in m.T) >= 5.1)
    m.level = pyo.Constraint(expr=sum(m.y[t] for t in m.T) == m.scale - 0.5)
    m.between = pyo.Constraint(expr=pyo.inequality(-3, sum(m.x[t] - m.y[t] * m.need[t] for t in m.T), 4 * m.scale))
    m.own = pyo.Constraint(m.T, rule=lambda m, t: (-m.need[t], m.x[t] + 3 * m.y[t], 2 + m.need[t]))
    m.floor = pyo.Constraint(m.T, rule=lambda m, t: m.y[t] * m.need[t] >= -0.5 * m.need[t] - m.scale + 1)
    agrees(m, m.T, own=("own", "floor"))


def test_balance_of_every_stage():
    m = start()
    m.demand = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 0.2 * t)
    m.x = pyo.Var(m.T, bounds=(0, None))
    m.bought = pyo.Var(m.T, bounds=(0, None))
    m.cost = pyo.Objective(expr=sum(m.value[t] * m.x[t] + 3 * m.bought[t] for t in m.T))
    m.balance = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] + m.bought[t] == m.demand[t])
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: used(m, u) <= 1.2)
    agrees(m, m.T, own=("balance",))


def test_several_families_and_kinds_of_variables():
    m = start()
    m.K = pyo.Set(initialize=["a", "b"])
    m.x = pyo.Var(m.T, within=pyo.Binary)
    m.y = pyo.Var(m.T, m.K, bounds=(0, 1))
    m.unused = pyo.Var(m.T)
    m.gain = pyo.Objective(
        expr=sum(m.value[t] * m.x[t] + m.place[t] * m.y[t, k] for t in m.T for k in m.K), sense=pyo.maximize
    )
    m.each = osilp.SemiInfiniteConstraint(
        m.K,
        m.u,
        rule=lambda m, k, u: sum(bump(u, m.place[t]) * m.y[t, k] + 0.1 * m.x[t] for t in m.T) <= 1 + (k == "b"),
    )
    m.all = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum((1 + u * m.value[t]) * m.x[t] for t in m.T) <= 2.5 - u
    )
    variable = lambda m, column, t: m.x[t] if column == "x" else m.y[t, column[1]]  # noqa: E731
    agrees(m, m.T, variable, policies=POLICIES[:1])
    m.each["a"].deactivate()
    program = agrees(m, m.T, variable)
    assert [family.name for family in program.template.families] == ["each[b]", "all"]


def test_index_of_two_dimensions_and_part_of_it():
    m = start()
    m.v = ContinuousSet(bounds=(0, 2))
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u,
        m.v,
        rule=lambda m, u, v: (
            sum(bump(u, m.place[t]) * bump(v, 2 * m.value[t]) * m.x[t] for t in m.T) <= 0.6 + 0.1 * u * v
        ),
        where=lambda m, u, v: u + v <= 2,
    )
    agrees(m, m.T, policies=POLICIES[:1])


@pytest.mark.parametrize("kind", ["linear", "previous", "nearest"])
def test_profiles_of_stages(kind):
    curves = np.random.default_rng(5).uniform(0.2, 1, (6, 6))
    m = start()
    m.a = osilp.Profile(m.T, over=m.u, points=np.linspace(0, 1, 6), initialize=lambda m, t: curves[t], kind=kind)
    m.cap = osilp.Profile(over=m.u, points=[0, 0.4, 1], initialize=[1.5, 0.8, 2])
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.a[t](u) * m.x[t] for t in m.T) <= m.cap(u))
    program = agrees(m, m.T)
    np.testing.assert_array_equal(program.profiles["a"], curves[1:])
    again = program.replay(osilp.MirrorDescent(), program.data, profiles=program.profiles, progress=False)
    assert again.objective == program.replay(osilp.MirrorDescent(), progress=False).objective


def test_curves_that_are_functions_or_series():
    m = start()
    m.a = osilp.Profile(
        m.T,
        over=m.u,
        initialize=lambda m, t: (lambda u: 1 + np.sin(t * u)) if t % 2 else pd.Series([1.0, 2, 1], index=[0, t / 6, 1]),
    )
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.a[t](u) * m.x[t] for t in m.T) <= 1.5 + u)
    agrees(m, m.T, hidden=True)


# -- data and constants ----------------------------------------------------------------------------------------------


def test_constants_of_stages_without_a_mutable_param_can_be_replayed_only():
    m = start()
    m.w = pyo.Param(m.T, initialize={1: 0, 2: 1, 3: 2, 4: 1, 5: -1})
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.value[t] * m.x[t] + m.w[t] * m.x[t] + m.w[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: used(m, u) + sum(m.w[t] * u * m.x[t] for t in m.T) <= 1
    )
    m.own = pyo.Constraint(m.T, rule=lambda m, t: m.w[t] + m.x[t] <= 1.5 + m.w[t] * m.w[t])
    program = agrees(m, m.T, own=("own",), hidden=True)
    with pytest.raises(DataError) as caught:
        program.controller(osilp.MirrorDescent()).step(value=1, place=0.5)
    assert str(caught.value) == (
        "step: Objective 'gain' holds constants that differ between the stages and are no mutable Param, so a new arrival "
        "cannot bring its own; declare them as Param(m.T, mutable=True). The model's own arrivals can be replayed."
    )


def test_fixed_variables_are_numbers():
    m = start()
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.y = pyo.Var(m.T, initialize=lambda m, t: 0.1 * t)
    m.z = pyo.Var(initialize=0.5)
    m.y.fix()
    m.z.fix()
    m.gain = pyo.Objective(expr=sum((m.value[t] + m.y[t]) * m.x[t] for t in m.T) + m.z, sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(bump(u, m.place[t]) * (m.x[t] + m.y[t]) for t in m.T) <= 2 * m.z + 1
    )
    agrees(m, m.T, hidden=True)


def test_named_expressions_sum_product_and_constants_in_stage_terms():
    m = start()
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.net = pyo.Expression(m.T, rule=lambda m, t: m.value[t] * m.x[t] - m.place[t])
    m.size = pyo.Expression(m.T, rule=lambda m, t: m.value[t] ** 2 + 1)
    m.gain = pyo.Objective(expr=sum(m.net[t] + m.size[t] for t in m.T) + 2, sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(m.size[t] * m.net[t] * u for t in m.T) + pyo.sum_product(m.value, m.x) <= 1
    )
    agrees(m, m.T)


def test_known_answer_of_equal_arrivals():
    """Four arrivals that use 1 + u each of 3: 1.5 of them fit, worth 1.5; guarded, the first and half the second."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(2)
    m.value = pyo.Param(m.T, mutable=True)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[t] for t in m.T) <= 3)
    program = osilp.compile_online(m, stages=m.T, horizon=4, basis=BASIS)
    data = pd.DataFrame({"value": [1.0] * 4}, index=list("abcd"))
    assert program.solve_offline(data).objective == pytest.approx(1.5)
    run = program.replay(osilp.Greedy(), data, progress=False)
    assert run.decisions.tolist() == pytest.approx([1, 0.5, 0, 0])
    assert run.decisions.index.tolist() == list("abcd")
    with pytest.raises(DataError) as caught:
        program.replay(osilp.Greedy(), pd.concat([data, data]))
    assert str(caught.value) == (
        "replay: 8 arrivals came where the program expects 4; compile with horizon=, or use program.rescaled(horizon)."
    )


def fares():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(3)
    m.K = pyo.Set(initialize=["a", "b"])
    m.place = pyo.Param(m.T, mutable=True, within=pyo.UnitInterval)
    m.fare = pyo.Param(m.T, m.K, mutable=True)
    m.seats = pyo.Param(m.T, mutable=True, within=pyo.NonNegativeIntegers, default=1)
    m.tier = pyo.Param(m.T, mutable=True, within=[0, 1, 5], default=1)
    m.shape = osilp.Profile(m.T, over=m.u, points=[0, 0.5, 1], initialize=lambda m, t: [1, 1, 1])
    m.x = pyo.Var(m.T, m.K, bounds=(0, 1))
    m.gain = pyo.Objective(
        expr=sum(m.fare[t, k] * m.seats[t] * m.tier[t] * m.x[t, k] for t in m.T for k in m.K), sense=pyo.maximize
    )
    m.usage = osilp.SemiInfiniteConstraint(
        m.u,
        rule=lambda m, u: sum(bump(u, m.place[t]) * m.shape[t](u) * m.x[t, k] for t in m.T for k in m.K) <= 10,
    )
    return osilp.compile_online(m, stages=m.T, horizon=6, grid=GRID, basis=BASIS)


GOOD = {"place": 0.4, "fare": {"a": 1.0, "b": -2.0}, "shape": [1, 1, 1]}


@pytest.mark.parametrize(
    "row",
    [
        GOOD,
        {**GOOD, "fare": pd.Series({"b": -2.0, "a": 1.0})},
        {**GOOD, "fare": [1.0, -2.0]},
        {**GOOD, "shape": pd.Series([1.0, 1.0], index=[0, 1])},
        {**GOOD, "shape": lambda u: 1 + 0 * u},
        {**GOOD, "seats": 1, "tier": np.int64(1), "beyond the data": "ignored"},
        {"place": 0.4, ("fare", "a"): 1.0, ("fare", "b"): -2.0, "shape": [1, 1, 1]},
        pd.Series({("place", ""): 0.4, ("fare", "a"): 1.0, ("fare", "b"): -2.0, ("shape", ""): [1, 1, 1]}),
    ],
)
def test_one_arrival_said_in_many_ways(row):
    program = fares()
    assert program.controller(osilp.MirrorDescent()).step(row).x == {("x", "a"): 1.0, ("x", "b"): 0.0}
    assert program.controller(osilp.MirrorDescent()).step(row) == program.controller(osilp.MirrorDescent()).step(**GOOD)


def saved(controller, path):
    controller.save(path)
    with np.load(path) as arrays:
        return {name: arrays[name] for name in arrays.files}


REFUSED = [
    ({"place": None}, "An arrival must bring 'place' (got nothing, and it has no default)."),
    ({"place": np.nan}, "An arrival's 'place' must be a finite number (got nan)."),
    ({"place": -np.inf}, "An arrival's 'place' must be a finite number (got -inf)."),
    ({"place": "0.4"}, "An arrival's 'place' must be one number (got str '0.4')."),
    ({"place": [0.4]}, "An arrival's 'place' must be one number (got list of shape (1,))."),
    ({"place": 1.5}, "An arrival's 'place' must lie in [0, 1] (got 1.5)."),
    ({"seats": 1.5}, "An arrival's 'seats' must lie in whole numbers in [0, inf) (got 1.5)."),
    ({"tier": 2}, "An arrival's 'tier' must lie in {0, 1, 5} (got 2)."),
    ({"fare": {"a": 1.0}}, "An arrival must bring 'fare[b]' (got nothing, and it has no default)."),
    ({"fare": [1.0, np.nan]}, "An arrival's 'fare[b]' must be a finite number (got nan)."),
    (
        {"fare": [1.0, 2.0, 3.0]},
        "An arrival's 'fare' must be a mapping by its index, or 2 numbers in the order of its Set (got list of shape (3,)).",
    ),
    ({"shape": None}, "An arrival must bring the curve 'shape' (got nothing)."),
    ({"shape": [1, 1]}, "An arrival's curve 'shape' must have one value a point, shape (3,) (got (2,))."),
    ({"shape": [1, np.nan, 1]}, "An arrival's curve 'shape' must hold finite numbers only."),
    ({"shape": "abc"}, "An arrival's curve 'shape' must hold numbers (got str 'abc')."),
    ({"shape": pd.Series([1.0, 1], index=[1, 0])}, "An arrival's curve 'shape': its index must increase."),
    (
        {"vlue": 1},
        "An arrival has no data 'vlue'; its data are fare, seats, tier, place, shape.",
    ),
]


@pytest.mark.parametrize("policy", [osilp.MirrorDescent(), osilp.Resolve()])
def test_bad_arrivals_are_refused_and_change_nothing(policy, tmp_path):
    controller = fares().controller(policy)
    controller.step(**GOOD)
    before = saved(controller, tmp_path / "state")
    for change, text in REFUSED:
        for call in (controller.step, controller.decide, controller.update):
            with pytest.raises(DataError) as caught:
                call(**{**GOOD, **change})
            assert str(caught.value) == text
    with pytest.raises(DataError) as caught:
        controller.step([1, 2])
    assert str(caught.value) == "An arrival's data must come as keywords, a mapping or a Series (got list)."
    after = saved(controller, tmp_path / "state")
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
    assert controller.step(**GOOD).t == 2


def frame():
    data = pd.DataFrame({"place": [0.1, 0.3, 0.5, 0.9]}, index=list("wxyz"))
    data[("fare", "a")] = [1.0, 2.0, -1.0, 0.5]
    data[("fare", "b")] = [-1.0, 1.0, 3.0, 0.2]
    return data


def test_frames_give_what_single_steps_give():
    program, data, curves = fares(), frame(), np.linspace(0.5, 1.5, 12).reshape(4, 3)
    run = program.replay(osilp.MirrorDescent(), data, profiles={"shape": curves}, progress=False)
    controller = program.controller(osilp.MirrorDescent())
    single = [controller.step(row, shape=curves[n]) for n, (_, row) in enumerate(data.iterrows())]
    assert [list(step.x.values()) for step in single] == run.decisions.to_numpy().tolist()
    assert run.decisions.columns.tolist() == [("x", "a"), ("x", "b")]
    assert run.decisions.index.tolist() == list("wxyz")
    levels = data.copy()
    levels.columns = pd.MultiIndex.from_tuples([("place", ""), ("fare", "a"), ("fare", "b")])
    again = program.replay(osilp.MirrorDescent(), levels, profiles={"shape": list(curves)}, progress=False)
    assert again.objective == pytest.approx(run.objective, rel=1e-12)
    steps = program.controller(osilp.MirrorDescent()).steps(data, {"shape": curves})
    assert steps["reward"].tolist() == pytest.approx(run.rewards.tolist(), rel=1e-12)


ONES = {"shape": np.ones((4, 3))}


@pytest.mark.parametrize(
    ("change", "profiles", "text"),
    [
        ({"place": [0.1, np.nan, 0.2, 0.3]}, ONES, "Arrivals: 'place' must be a finite number (got nan in row 'x')."),
        ({"place": 2.0}, ONES, "Arrivals: 'place' must lie in [0, 1] (got 2 in row 'w')."),
        ({"place": ["a"] * 4}, ONES, "Arrivals: the column 'place' must hold numbers only."),
        ({"tier": 3}, ONES, "Arrivals: 'tier' must lie in {0, 1, 5} (got 3 in row 'w')."),
        (
            {},
            {"shape": np.ones((3, 3))},
            "Arrivals: the Profile 'shape' must have one curve an arrival, 4 of them (got 3).",
        ),
        (
            {},
            {"shape": np.ones((4, 2))},
            "Arrivals: a curve of the Profile 'shape' must have the shape (3,), one value a point (got (2,)).",
        ),
        ({}, {"shap": np.ones((4, 3))}, "profiles=: the program has no Profile 'shap' among its data."),
        (
            {},
            None,
            "Arrivals: there are no curves for the Profile 'shape'; give profiles={'shape': array with one row an arrival "
            "and one column a point}.",
        ),
    ],
)
def test_bad_frames_are_refused_and_change_nothing(change, profiles, text, tmp_path):
    controller = fares().controller(osilp.MirrorDescent())
    before = saved(controller, tmp_path / "state")
    with pytest.raises(DataError) as caught:
        controller.steps(frame().assign(**change), profiles)
    assert str(caught.value) == text
    after = saved(controller, tmp_path / "state")
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


def test_missing_column_is_named():
    with pytest.raises(DataError) as caught:
        fares().replay(osilp.MirrorDescent(), frame().rename(columns={"place": "plcae"}), profiles=ONES)
    assert str(caught.value) == (
        "Arrivals: the frame has no column 'place' (its columns are 'plcae', ('fare', 'a'), ('fare', 'b')), and the Param "
        "has no default."
    )


def test_more_arrivals_than_the_horizon():
    controller = fares().controller(osilp.MirrorDescent(), beyond="error")
    controller.steps(frame(), ONES)
    with pytest.raises(HorizonError) as caught:
        controller.steps(frame(), ONES)
    assert str(caught.value) == (
        "The horizon of 6 arrivals is reached (4 were met, 4 more came); use revise(horizon=...), or beyond='continue'."
    )
    assert controller.t == 4


# -- models that are refused -----------------------------------------------------------------------------------------


def product_across(m):
    m.gain.set_value(expr=m.x[1] * m.x[2] + sum(m.x[t] for t in m.T))


def ramp(m):
    m.c = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] - m.x[t - 1] <= 1 if t > 1 else pyo.Constraint.Skip)


def running(m):
    m.c = pyo.Constraint(m.T, rule=lambda m, t: sum(m.x[s] for s in m.T if s <= t) <= t)


def lone_row(m):
    m.c = pyo.Constraint(expr=m.x[1] <= 0.1)


def no_stage(m):
    m.w = pyo.Var(bounds=(0, 1))
    m.gain.set_value(expr=m.gain.expr - m.w)


def one_fixed(m):
    m.x[2].fix(0.5)


def others_data(m):
    m.gain.set_value(expr=m.gain.expr + m.place[1] * m.x[2])


def no_objective(m):
    m.gain.deactivate()


def nothing_couples(m):
    m.usage.deactivate()


def test_stages_of_another_model_are_refused():
    m, other = plain(4), plain(4)
    with pytest.raises(OptionError) as caught:
        osilp.compile_online(m, stages=other.T)
    assert str(caught.value) == ("compile_online: stages='T' is a Set of another model; give that of the model itself.")


def test_own_rows_of_very_different_coefficients_bound_their_variables():
    """Coefficients a thousand million times smaller than others of their row were lost, and x was unbounded."""
    m = plain(4)
    m.x.setub(None)
    m.y = pyo.Var(m.T, within=pyo.NonNegativeReals)
    m.gain.set_value(sum(m.value[t] * m.x[t] + m.y[t] for t in m.T))
    m.own = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] + 1e11 * m.y[t] <= 1)
    decision = osilp.compile_online(m, stages=m.T).controller(osilp.Greedy()).step(value=1.0, place=0.5)
    assert decision.x["x"] == pytest.approx(1.0, abs=1e-6)


PART = (
    "; online, the objective and every row that joins stages must hold all of them (rows over part of the past, ramps and "
    "running sums cannot be decided arrival by arrival)."
)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            product_across,
            "Objective 'gain': the term x[1]*x[2] joins several stages; online, objective and rows must be sums of terms "
            "that each belong to one arrival.",
        ),
        (ramp, "Constraint 'c[2]': it holds decisions of stage 1 but none of stage 3" + PART),
        (running, "Constraint 'c[2]': it holds decisions of stage 1 but none of stage 3" + PART),
        (
            lone_row,
            "Constraint 'c': it holds decisions of stage 1 only and is not indexed by the stages, so other stages have no "
            "such row; index it by the stages.",
        ),
        (
            no_stage,
            "compile_online: the variable 'w' has no stage; every decision must belong to one arrival. Fix it, or index it "
            "by the stages.",
        ),
        (
            one_fixed,
            "compile_online: stage 2 has no free variable x in the objective or a row, where other stages have one; all "
            "stages must have the same decisions.",
        ),
        (
            others_data,
            "Objective 'gain': a term of stage 2 uses 'place[1]', the data of another stage; each arrival may use its own "
            "data only.",
        ),
        (no_objective, "compile_online: the model has no active objective."),
        (
            nothing_couples,
            "compile_online: nothing couples the stages: the model has no semi-infinite row and no ordinary row over all "
            "stages; each arrival could be decided alone.",
        ),
    ],
)
def test_models_that_are_no_sum_of_stages(change, text):
    m = plain()
    change(m)
    with pytest.raises(ModelError) as caught:
        osilp.compile_online(m, stages=m.T)
    assert str(caught.value) == text


def test_a_ramp_over_all_of_two_stages_is_a_row_like_any_other():
    m = plain(2)
    m.c = pyo.Constraint(expr=m.x[2] - m.x[1] <= 0.1)
    agrees(m, m.T, hidden=True)


def test_stage_set_at_two_places_of_an_index():
    m = start()
    m.x = pyo.Var(m.T, m.T, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.x[i] for i in m.x), sense=pyo.maximize)
    m.usage = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum((1 + u) * m.x[i] for i in m.x) <= 1)
    with pytest.raises(ModelError) as caught:
        osilp.compile_online(m, stages=m.T)
    assert str(caught.value) == (
        "'x': the stage set 'T' may stand at 2 places of its index; give stages= as a function of the index instead."
    )


@pytest.mark.parametrize("stages", [3, 2.5, None, [1, 2]])
def test_stages_must_be_a_set_or_a_function(stages):
    with pytest.raises(OptionError) as caught:
        osilp.compile_online(plain(), stages=stages)
    assert str(caught.value) == (
        "compile_online: stages must be a Set of the model, such as stages=m.T, or a function of an index (got "
        f"{type(stages).__name__})."
    )


def test_one_example_stage_is_too_few():
    m = plain(1)
    with pytest.raises(ModelError) as caught:
        osilp.compile_online(m, stages=m.T, horizon=10)
    assert str(caught.value) == (
        "compile_online: there must be at least two example stages, so that data of a stage can be told from shared data "
        "(got 1); declare two or more, and horizon= for how many will come."
    )


def test_the_model_is_left_as_it_was():
    m = plain()
    m.x.set_values(dict.fromkeys(m.T, 0.25))
    before = m.gain.expr.to_string(), {t: m.x[t].value for t in m.T}
    program = osilp.compile_online(m, stages=m.T, basis=BASIS)
    program.replay(osilp.MirrorDescent(), progress=False)
    program.solve_offline()
    assert before == (m.gain.expr.to_string(), {t: m.x[t].value for t in m.T})


@pytest.mark.parametrize("seed", range(6))
def test_random_linear_models(seed):
    random = np.random.default_rng(seed)
    chance = lambda: bool(random.uniform() < 0.5)  # noqa: E731
    stages, integer, other, shifted, upper = int(random.integers(2, 6)), chance(), chance(), chance(), chance()
    m = start(stages, seed=seed)
    m.K = pyo.Set(initialize=["a", "b", "c"][: int(random.integers(1, 4))])
    m.q = pyo.Param(m.T, m.K, mutable=True, initialize=lambda m, t, k: random.normal())
    m.shared = pyo.Param(m.K, mutable=True, initialize=lambda m, k: random.uniform(0.5, 1.5))
    m.cap = pyo.Param(m.T, mutable=True, initialize=lambda m, t: random.uniform(0.5, 2))
    m.x = pyo.Var(m.T, m.K, bounds=lambda m, t, k: (0, m.cap[t]), within=pyo.Integers if integer else pyo.Reals)
    pairs = [(t, k) for t in m.T for k in m.K]
    m.gain = pyo.Objective(
        expr=2 * sum((m.value[t] * m.q[t, k] + m.shared[k]) * m.x[t, k] + m.place[t] ** 2 for t, k in pairs) + 3,
        sense=pyo.maximize if chance() else pyo.minimize,
    )

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        body = sum(
            (bump(u, m.place[t]) + 0.3 * u * m.shared[k]) * (m.x[t, k] - (0.1 * m.cap[t] if shifted else 0))
            for t, k in pairs
        )
        return body <= 1 + 0.3 * stages * (1 + pyo.sin(3 * u)) if upper else -body >= 0.1 * u - 1 - 0.3 * stages

    if other:
        m.each = osilp.SemiInfiniteConstraint(
            m.K,
            m.u,
            rule=lambda m, k, u: sum(m.x[t, k] * (1 + u * m.cap[t]) for t in m.T) <= m.shared[k] * stages * (0.5 + u),
        )
        m.total = pyo.Constraint(expr=pyo.inequality(-10, sum(m.cap[t] * m.x[t, k] for t, k in pairs) - 1, 2 * stages))
    else:
        m.own = pyo.Constraint(m.T, rule=lambda m, t: sum(m.x[t, k] for k in m.K) + 0.2 * m.cap[t] <= 2 * m.cap[t])
    agrees(m, m.T, lambda m, column, t: m.x[t, column[1]], own=() if other else ("own",), policies=POLICIES[:1])
