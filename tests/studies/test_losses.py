"""Where a regret comes from: parts that sum to it, each by hand where it can be worked out."""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.dae import ContinuousSet
from study_inputs import POLICIES, packing_program, uniform_requests

import osilp_pyomo as osilp
from osilp_pyomo.errors import DataError
from osilp_pyomo.studies.losses import earned_by, losses_against
from osilp_pyomo.studies.trial import FRAMES

KEYS = ["trial", "policy", "guard"]


def seats(values, sense=pyo.maximize, domain=pyo.Reals):
    """One seat at every u of [0, 1], and arrivals that each want one: the best is the one who pays most."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(len(values))
    m.value = pyo.Param(m.T, mutable=True, initialize=dict(zip(m.T, values, strict=True)))
    m.x = pyo.Var(m.T, bounds=(0, 1), domain=domain)
    m.gain = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=sense)

    @m.SemiInfiniteConstraint(m.u)
    def one(m, u):
        return sum((1 + 0 * u) * m.x[t] for t in m.T) <= 1 + u * (1 - u)

    return m


def compared(m, policies, **options):
    program = osilp.compile_online(m, stages=m.T, basis=osilp.Dirac(), grid=[0.0, 0.5, 1.0])
    return osilp.compare(program, policies, benchmarks=["exchange"], progress=False, **options)


def sums(study):
    return study.losses.groupby(KEYS, sort=False)["value"].sum()


def regrets(study, benchmark="exchange"):
    return study.runs.set_index(KEYS)[f"regret_{benchmark}"]


def test_by_hand_who_comes_first_takes_the_seat_of_who_pays_more():
    # The seat is worth 3 in hindsight (the second gets it, the third would pay 2). Giving it to the first, who pays 1,
    # loses 3 - 1 there; the second is then refused by the guard, which loses nothing more: it is worth 3 - 3 = 0.
    study = compared(seats([1.0, 3.0, 2.0]), osilp.Greedy())
    parts = study.losses.set_index("part")["value"].to_dict()
    price = study.offline["objective"].iloc[0]
    assert price == pytest.approx(3.0)
    assert sum(parts.values()) == pytest.approx(2.0, abs=1e-6)
    assert parts["left"] == pytest.approx(0.0, abs=1e-6)
    # The price in hindsight is anything from 2 to 3, and what the first loses is that price less 1.
    assert 1 - 1e-6 <= parts["priced"] <= 2 + 1e-6
    assert parts["guard"] == pytest.approx(2.0 - parts["priced"], abs=1e-6)


def test_by_hand_what_nobody_used_is_left_over():
    # A price of 10 refuses everybody: the seat is left, at its price in hindsight, and who paid more than that is lost.
    study = compared(seats([1.0, 3.0, 2.0]), osilp.FixedPrice([10.0, 0.0, 0.0]))
    parts = study.losses.set_index("part")["value"].to_dict()
    assert 2 - 1e-6 <= parts["left"] <= 3 + 1e-6
    assert parts["priced"] == pytest.approx(3.0 - parts["left"], abs=1e-6)
    assert parts["guard"] == parts["tie"] == 0


@pytest.mark.parametrize("guard", ["none", "projected", "pointwise"])
def test_parts_sum_to_the_regret_of_every_run(guard):
    study = osilp.compare(
        packing_program(60), [*POLICIES, osilp.Greedy()], sampler=uniform_requests, trials=3, guards=guard,
        progress=False,
    )  # fmt: skip
    pd.testing.assert_series_equal(sums(study), regrets(study), check_names=False, rtol=0, atol=1e-6)
    decided = study.losses[study.losses["part"] != "left"]
    assert (decided["value"] >= -1e-9).all()
    if guard == "none":
        assert (decided.loc[decided["part"] == "guard", "value"] == 0).all()


@pytest.mark.parametrize("benchmark", ["projected", "discretized"])
def test_parts_sum_to_the_regret_against_any_benchmark(benchmark):
    study = osilp.compare(packing_program(40), POLICIES, order="iid", trials=2, benchmarks=[benchmark], progress=False)
    assert set(study.losses["benchmark"]) == {benchmark}
    pd.testing.assert_series_equal(sums(study), regrets(study, benchmark), check_names=False, rtol=0, atol=1e-6)


def with_many_kinds(random, count):
    """A minimum with options of which one must be chosen, a lower and an upper limit, and an ordinary row."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T, m.K = pyo.RangeSet(count), pyo.Set(initialize=["a", "b", "c"])
    drawn = random.uniform(size=(count, 3))
    m.cost = pyo.Param(m.T, m.K, mutable=True, initialize=lambda m, t, k: drawn[t - 1, "abc".index(k)])
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: drawn[t - 1].sum() / 3)
    m.x = pyo.Var(m.T, m.K, bounds=(0, 1))
    m.total = pyo.Objective(expr=5 + sum(m.cost[t, k] * m.x[t, k] for t in m.T for k in m.K))
    m.choose = pyo.Constraint(m.T, rule=lambda m, t: sum(m.x[t, k] for k in m.K) <= 1)
    m.some = pyo.Constraint(expr=sum(m.x[t, "c"] for t in m.T) >= count / 8)

    @m.SemiInfiniteConstraint(m.u)
    def covered(m, u):
        return sum(pyo.exp(-((u - m.place[t]) ** 2)) * (m.x[t, "a"] + 2 * m.x[t, "b"]) for t in m.T) >= count / 4

    return m


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_identity_holds_whatever_was_decided(seed):
    random = np.random.default_rng(seed)
    count = 24
    m = with_many_kinds(random, count)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4), grid=osilp.Midpoint(20))
    best = program.solve_offline()
    arrivals = program.arrivals()
    told = losses_against(program.evaluator, arrivals, {"exchange": best})
    # Options of which at most one is taken, chosen by chance.
    taken = random.dirichlet([1.0, 1.0, 1.0, 1.0], size=count)[:, :3]
    batch = program.evaluator.batch(arrivals)
    parts = told.of(taken, random.choice(["priced", "tie", "guard", "null", "overrun"], size=count))
    paid = float(program.evaluator.reward(batch, taken).sum()) + 5
    assert sum(parts.values()) == pytest.approx(paid - best.objective, abs=1e-5)
    assert min(parts[part] for part in ("priced", "tie", "guard")) >= -1e-9
    assert earned_by(program.evaluator, arrivals, best).sum() + 5 == pytest.approx(best.objective, rel=1e-9)


def test_the_path_in_hindsight_ends_at_the_optimum():
    study = osilp.compare(packing_program(60), POLICIES, order="permutation", trials=2, progress=False)
    last = study.paths[study.paths["t"] == 60].set_index(KEYS)["hindsight"]
    optima = study.offline[study.offline["benchmark"] == "exchange"].set_index("trial")["objective"]
    assert last.to_numpy() == pytest.approx(optima.loc[last.index.get_level_values("trial")].to_numpy(), rel=1e-9)


def test_what_is_drawn_of_losses_is_their_mean(tmp_path):
    study = osilp.compare(packing_program(40), POLICIES, order="iid", trials=3, progress=False)
    figure = study.plot("loss")
    summary = study.summary()["relative_regret_exchange", "mean"]
    for ax, policy in zip(figure.axes, ("MirrorDescent", "Resolve"), strict=True):
        heights = [bar.get_height() for bar in ax.patches]
        assert ax.get_title() == policy
        assert sum(heights[:-1]) == pytest.approx(heights[-1], abs=1e-9)
        (mean,) = summary[summary.index.get_level_values("policy") == policy]
        assert heights[-1] == pytest.approx(100 * mean, abs=1e-4)
        ends = np.cumsum(heights[:-1])
        assert [bar.get_y() for bar in ax.patches] == pytest.approx([0, *ends[:-1], 0])
    assert figure.axes[0].get_ylabel() == "lost, % of the optimum in hindsight"
    study.save(tmp_path / "kept")
    pd.testing.assert_frame_equal(osilp.load_study(tmp_path / "kept").losses, study.losses, check_exact=True)


def test_policies_under_one_guard_have_one_scale():
    policies = {"a": osilp.Greedy(), "b": osilp.MirrorDescent(), "c": osilp.Resolve(), "d": osilp.SimpleGD()}
    study = osilp.compare(
        packing_program(40), policies, order="iid", trials=2, guards=["none", "pointwise"], progress=False
    )
    figure = study.plot("loss")
    limits = {}
    for ax in figure.axes:
        limits.setdefault(ax.get_title().partition("\n")[2], []).append(ax.get_ylim())
    assert {guard: len(set(each)) for guard, each in limits.items()} == {"guard none": 1, "guard pointwise": 1}
    assert [len(each) for each in limits.values()] == [4, 4]


def test_rewards_are_drawn_as_they_came():
    study = osilp.compare(packing_program(40), POLICIES, order="iid", trials=3, progress=False)
    figure = study.plot("reward")
    left, right = figure.axes
    paths = study.paths[study.paths["policy"] == "Resolve"].groupby("t")
    (line,) = [line for line in left.lines if line.get_label() == "Resolve"]
    assert line.get_ydata() == pytest.approx(paths["reward"].mean().to_numpy())
    (best,) = [line for line in left.lines if line.get_label() == "in hindsight"]
    assert best.get_ydata() == pytest.approx(paths["hindsight"].mean().to_numpy())
    (line,) = [line for line in right.lines if line.get_label() == "Resolve"]
    assert line.get_ydata() == pytest.approx((paths["hindsight"].mean() - paths["reward"].mean()).to_numpy())


def test_a_loss_that_cannot_be_told_is_said():
    study = compared(seats([1.0, 3.0, 2.0], domain=pyo.Binary), osilp.Greedy())
    assert not len(study.losses)
    with pytest.raises(DataError) as refused:
        study.plot("loss")
    assert str(refused.value) == (
        "LossDisplay: there is nothing to draw, for no trial is finished, or none tells where its regret comes from: that "
        "takes stages that are linear in the decision, and a benchmark whose prices prove its optimum, as whole numbers "
        "have none; plot('regret') shows how much it is."
    )
    # All the others are drawn without it.
    assert "Where the loss comes from" not in [part.get_suptitle() for part in study.plot().subfigs]


def test_studies_of_an_earlier_version_have_no_losses():
    study = osilp.compare(packing_program(20), POLICIES, order="iid", trials=2, progress=False)
    tables = {name: getattr(study, name) for name in FRAMES if name != "losses"}
    before = osilp.Study(study.settings, {**tables, "paths": study.paths.drop(columns="hindsight")})
    assert len(before.plot("reward").axes) == 1
    assert not len(before.losses)
