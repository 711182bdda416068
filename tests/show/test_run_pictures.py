"""Pictures of runs, prices, results, controllers and sweeps: what is drawn is what the numbers say."""

import io

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from models import one_variable, packing, tent, two_families
from pyomo.contrib.pyros import BoxSet
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.errors import DataError, OptionError, PriceError
from osilp_pyomo.show.drawing import cell_edges
from osilp_pyomo.show.results import ConflictDisplay
from osilp_pyomo.show.runs import MOST_DOTS, ServedDisplay

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def program():
    m = packing(80)
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6), grid=osilp.Midpoint(80))


@pytest.fixture(scope="module")
def run(program):
    return program.replay(osilp.MirrorDescent(), progress=False)


def dots(ax):
    """What is scattered, by its label."""
    return {each.get_label(): np.asarray(each.get_offsets()) for each in ax.collections}


# -- who was served ---------------------------------------------------------------------------------------------------


def test_every_arrival_is_drawn_where_its_data_are_and_as_what_was_decided(program, run):
    (ax,) = run.plot("served").axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("place", "value")
    data, drawn = program.data, dots(ax)
    guarded = run.reasons.isin(["guard", "null", "overrun"]).to_numpy()
    x = run.decisions.to_numpy()
    wanted = {
        "served": (x == 1) & ~guarded, "refused": (x == 0) & ~guarded, "served in part": (x > 0) & (x < 1) & ~guarded,
        "changed by the guard": guarded,
    }  # fmt: skip
    assert set(drawn) == {name for name, chosen in wanted.items() if chosen.any()}
    for name, places in drawn.items():
        np.testing.assert_array_equal(places, data.loc[wanted[name], ["place", "value"]].to_numpy())
    assert ax.get_title() == f"{int((x > 0).sum())} of 80 arrivals served"


def test_the_border_is_what_a_unit_costs(program, run):
    best = program.solve_offline()
    for price, figure, called in (
        (run.price, run.plot("served"), "worth what it uses, at the last price online"),
        (best.price, run.plot("served", benchmark=best), "worth what it uses, at the price in hindsight"),
    ):
        (ax,) = figure.axes
        (border,) = [line for line in ax.lines if line.get_label() == called]
        assert border.get_ydata() == pytest.approx(price.of(place=border.get_xdata()), rel=1e-9, abs=1e-12)


def options(random, count=50):
    """Two ways to serve a stay; its use depends on two numbers, and a row over all stages has a price too."""
    drawn = random.uniform(size=(count, 4))
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T, m.K = pyo.RangeSet(count), pyo.Set(initialize=["fast", "slow"])
    m.pays = pyo.Param(m.T, m.K, mutable=True, initialize=lambda m, t, k: drawn[t - 1, "fs".index(k[0])])
    m.begin = pyo.Param(m.T, mutable=True, initialize=lambda m, t: drawn[t - 1, 2])
    m.width = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 0.1 + drawn[t - 1, 3] / 5)
    m.x = pyo.Var(m.T, m.K, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.pays[t, k] * m.x[t, k] for t in m.T for k in m.K), sense=pyo.maximize)
    m.one = pyo.Constraint(m.T, rule=lambda m, t: sum(m.x[t, k] for k in m.K) <= 1)
    m.few = pyo.Constraint(expr=sum(m.x[t, "fast"] for t in m.T) <= 9)

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        return sum(pyo.exp(-(((u - m.begin[t]) / m.width[t]) ** 2)) * (2 * m.x[t, "fast"] + m.x[t, "slow"])
                   for t in m.T) <= 6  # fmt: skip

    return m


def test_with_several_data_the_border_is_the_diagonal_of_worth_and_cost():
    m = options(np.random.default_rng(5))
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(5), grid=osilp.Midpoint(60))
    best = program.solve_offline()
    run = program.replay(osilp.MirrorDescent(), progress=False)
    figure = run.plot("served", benchmark=best)
    assert [ax.get_title().split(":")[0] for ax in figure.axes] == ["x[fast]", "x[slow]"]
    data = program.data
    for ax, option, factor in zip(figure.axes, ("fast", "slow"), (2, 1), strict=True):
        drawn = np.concatenate(list(dots(ax).values()))
        column = [factor * best.price.integrate(lambda u, b=begin, w=width: np.exp(-(((u - b) / w) ** 2)))
                  for begin, width in zip(data["begin"], data["width"], strict=True)]  # fmt: skip
        costs = np.array(column) + (best.duals["few"] if option == "fast" else 0.0)
        wanted = np.column_stack([costs, data[("pays", option)]])
        np.testing.assert_allclose(drawn[np.lexsort(drawn.T)], wanted[np.lexsort(wanted.T)], rtol=1e-9, atol=1e-12)
        (border,) = [line for line in ax.lines if line.get_label().startswith("worth")]
        np.testing.assert_array_equal(border.get_xdata(), border.get_ydata())
        assert ax.get_xlabel() == "what a unit of it uses, at the price in hindsight"


def test_a_hundred_thousand_arrivals_are_cells_that_hold_shares():
    count = 100_000
    m = packing(3)
    program = osilp.compile_online(m, stages=m.T, horizon=count, basis=osilp.RBF(6), grid=osilp.Midpoint(30))
    random = np.random.default_rng(2)
    data = pd.DataFrame({"value": random.uniform(size=count), "place": random.uniform(size=count)})
    run = program.replay(osilp.MirrorDescent(), data, progress=False)
    figure = run.plot()
    served = figure.subfigs[0].axes[0]
    (cells,) = served.collections
    x, y = (np.linspace(data[name].min(), data[name].max(), size + 1) for name, size in (("place", 64), ("value", 44)))
    met = np.histogram2d(data["place"], data["value"], [x, y])[0]
    taken = np.histogram2d(data["place"], data["value"], [x, y], weights=run.decisions.to_numpy())[0]
    np.testing.assert_allclose(cells.get_array().filled(np.nan), (100 * taken / met).T, rtol=1e-9)
    for kind, most in (("svg", 800_000), ("png", 400_000)):
        file = io.BytesIO()
        figure.savefig(file, format=kind)
        assert len(file.getvalue()) < most


def test_what_a_border_cannot_be_drawn_for_is_said():
    m = packing(20)
    m.del_component(m.reward)
    m.reward = pyo.Objective(expr=sum(m.value[t] * pyo.sqrt(m.x[t] + 0.1) for t in m.T), sense=pyo.maximize)
    run = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4)).replay(osilp.MirrorDescent(), progress=False)
    with pytest.raises(DataError) as refused:
        run.plot("served")
    assert str(refused.value) == (
        "plot: 'served' draws the border where an arrival is worth what it uses, which stages that are linear in the "
        "decision have, and these are not; plot('use') shows what was used."
    )
    assert [ax.get_title() for ax in run.plot().axes[:2]] == ["'usage': what was used so far", "at the end"]
    with pytest.raises(OptionError) as refused:
        run.plot("luck")
    assert str(refused.value) == "plot: what must be 'served' or 'use', or nothing for both (got 'luck')."


def test_without_a_price_arrivals_are_drawn_in_their_order():
    """At a price of zero all would stand on one vertical line."""
    m = pyo.ConcreteModel()
    m.h = ContinuousSet(bounds=(0, 24))
    m.T = pyo.RangeSet(3)
    m.begin = pyo.Param(m.T, mutable=True, initialize={1: 2.0, 2: 5.0, 3: 9.0})
    m.end = pyo.Param(m.T, mutable=True, initialize={1: 4.0, 2: 8.0, 3: 12.0})
    m.pays = pyo.Param(m.T, mutable=True, initialize={1: 3.0, 2: 1.0, 3: 2.0})
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.income = pyo.Objective(expr=sum(m.pays[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.h)
    def room(m, h):
        return sum(pyo.exp(-((h - m.begin[t]) ** 2) - (h - m.end[t]) ** 2) * m.x[t] for t in m.T) <= 9

    (ax,) = osilp.compile_online(m, stages=m.T).replay(osilp.Greedy()).plot("served").axes
    assert ax.get_xlabel() == "arrivals t"
    assert dots(ax)["served"].tolist() == [[1.0, 3.0], [2.0, 1.0], [3.0, 2.0]]
    assert not ax.lines


def test_the_optimum_of_another_problem_is_no_benchmark(run):
    with pytest.raises(OptionError, match="the benchmark is the optimum of another problem"):
        run.plot("served", benchmark=osilp.solve(packing(80, seed=9)))


def test_no_arrivals_are_nothing_to_draw():
    empty = pd.DataFrame({name: [] for name in ("decision", "arrival", "x", "y", "share", "outcome")})
    with pytest.raises(DataError) as refused:
        ServedDisplay(empty, pd.DataFrame(), "p", "x", {}).plot()
    assert str(refused.value) == "ServedDisplay: there is nothing to draw, for no arrival was met."
    assert MOST_DOTS == 5000


# -- what was used ----------------------------------------------------------------------------------------------------


def test_use_over_time_is_what_the_decisions_used(program, run):
    ax, end, _ = run.plot("use").axes
    (cells,) = [each for each in ax.collections if hasattr(each, "get_coordinates")]
    drawn = cells.get_array()
    points = np.unique(program.evaluator.points[0][:, 0])
    assert drawn.shape == (len(points), 80)
    data, x = program.data, run.decisions.to_numpy()
    columns = np.exp(-(((points[:, None] - data["place"].to_numpy()) / 0.1) ** 2)) * x
    limit = 80 * (0.06 + 0.02 * np.sin(6 * points))
    np.testing.assert_allclose(drawn, 100 * columns.cumsum(axis=1) / limit[:, None], rtol=1e-9, atol=1e-9)
    lines = {line.get_label(): line.get_xdata() for line in end.lines}
    np.testing.assert_allclose(lines["use"], columns.sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(lines["limit"], limit, rtol=1e-12)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("arrivals so far", "u")


def test_over_a_plane_the_use_is_drawn_at_the_end_without_gaps():
    random = np.random.default_rng(1)
    places = random.uniform(size=(30, 2))
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(0, 2)), ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(30)
    m.a = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 2 * places[t - 1, 0])
    m.b = pyo.Param(m.T, mutable=True, initialize=lambda m, t: places[t - 1, 1])
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.o = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u, m.v, where=lambda m, u, v: u + v <= 2.5)
    def cover(m, u, v):
        return sum(pyo.exp(-10 * ((u - m.a[t]) ** 2 + (v - m.b[t]) ** 2)) * m.x[t] for t in m.T) <= 3

    program = osilp.compile_online(m, stages=m.T, basis=osilp.Indicator(3), grid=osilp.Midpoint(12))
    run = program.replay(osilp.Greedy(), progress=False)
    ax = run.plot("use").axes[0]
    (cells,) = ax.collections
    drawn, edges = cells.get_array(), cells.get_coordinates()
    x, y = (edges[:-1, :-1] + edges[1:, 1:])[..., 0] / 2, (edges[:-1, :-1] + edges[1:, 1:])[..., 1] / 2
    np.testing.assert_array_equal(np.ma.getmaskarray(drawn), x + y > 2.5)
    used = sum(
        taken * np.exp(-10 * ((x - 2 * a) ** 2 + (y - b) ** 2))
        for (a, b), taken in zip(places, run.decisions, strict=True)
    )
    np.testing.assert_allclose(drawn.compressed(), (100 * used / 3)[x + y <= 2.5], rtol=1e-9)
    assert (edges[0, 0] == 0).all()
    assert edges[-1, -1].tolist() == pytest.approx([2, 1])


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_controller_draws_what_is_used_so_far(program, share):
    controller = program.controller(osilp.MirrorDescent())
    met = int(share * 80)
    if met:
        controller.steps(program.data.head(met))
    body, price = controller.plot().axes
    left = controller.remaining_over_index
    lines = {line.get_label(): line.get_ydata() for line in body.lines}
    np.testing.assert_allclose(lines["used so far"], left["limit"] - left["remaining"], atol=1e-12)
    np.testing.assert_allclose(lines["upper limit"], left["limit"])
    assert price.get_ylabel() == "price per\nunit of u"


def test_a_run_of_chunks_draws_its_end(program, tmp_path):
    program.data.to_csv(tmp_path / "arrivals.csv", index=False)
    long = program.replay(osilp.MirrorDescent(), tmp_path / "arrivals.csv", progress=False)
    short = program.replay(osilp.MirrorDescent(), progress=False)
    body, _ = long.plot().axes
    lines = {line.get_label(): (line.get_xdata(), line.get_ydata()) for line in body.lines}
    places, used = lines["used so far"]
    data, x = program.data, short.decisions.to_numpy()
    columns = np.exp(-(((np.asarray(places)[:, None] - data["place"].to_numpy()) / 0.1) ** 2)) @ x
    np.testing.assert_allclose(used, columns, rtol=1e-9)


# -- prices and results -----------------------------------------------------------------------------------------------


def test_spikes_stand_where_the_price_sits_and_a_density_is_a_curve():
    result = osilp.solve(tent())
    (ax,) = result.price.plot().axes
    (spikes,) = [each for each in ax.collections if hasattr(each, "get_segments")]
    (spike,) = spikes.get_segments()
    assert np.asarray(spike)[:, 0] == pytest.approx([0.3, 0.3], abs=1e-6)
    assert np.asarray(spike)[:, 1] == pytest.approx([0.0, 1.0])
    smooth = result.price.smooth(0.05)
    (ax,) = smooth.plot().axes
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), smooth.to_frame().sort_values("u")["density"])
    assert ax.get_title() == "price of 'below': 1 for a unit everywhere"


def test_a_price_over_many_dimensions_names_its_atoms():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(3), bounds=(0, 9))
    m.o = pyo.Objective(expr=sum(m.x[k] for k in m.x))
    m.c = osilp.SemiInfiniteConstraint(
        BoxSet([(0, 1)] * 3), rule=lambda m, xi: sum(m.x[k] for k in range(3)) >= sum(xi)
    )
    (ax,) = osilp.solve(m).plot().axes
    assert [text.get_text() for text in ax.get_yticklabels()] == ["1, 1, 1"]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([1.0])
    assert ax.get_xlabel() == "price of single points: (xi[0], xi[1], xi[2])"


def test_a_price_over_very_many_dimensions_leaves_room_for_its_bar():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(30), bounds=(0, 9))
    m.o = pyo.Objective(expr=sum(m.x[k] for k in m.x))
    m.c = osilp.SemiInfiniteConstraint(
        BoxSet([(0, 1.234)] * 30), rule=lambda m, xi: sum(m.x[k] for k in m.x) >= sum(xi)
    )
    figure = osilp.solve(m).plot()
    figure.draw_without_rendering()
    (ax,) = figure.axes
    assert ax.get_position().width > 0.5
    assert ax.get_position().height > 0.4
    (bar,) = ax.patches
    assert bar.get_window_extent().height < 0.25 * ax.get_window_extent().height


def test_a_result_draws_the_price_of_each_family():
    result = osilp.solve(two_families())
    figure = result.plot()
    assert [part.axes[0].get_title().split(":")[0] for part in figure.subfigs] == [
        "price of 'cap[a]'",
        "price of 'cap[b]'",
    ]


def test_what_conflicts_is_drawn_with_its_place():
    m = tent()
    m.high = pyo.Constraint(expr=m.x >= 1.5)
    result = osilp.solve(m)
    figure = result.plot()
    ax, other = figure.axes
    (row,) = result.conflict[result.conflict["kind"] == "row"].itertuples()
    told = f"'below' at u = {row.place:.4g}: at most {1 + abs(row.place - 0.3):.6g}"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["'high': at least 1.5", told]
    weights = (result.conflict["limit"] * result.conflict["weight"]).groupby(result.conflict["side"]).sum()
    assert [bar.get_width() for bar in other.patches] == pytest.approx([weights["at least"], weights["at most"]])
    assert sum(bar.get_width() for bar in ax.patches) == pytest.approx(1)
    assert weights["at least"] > weights["at most"]
    asked, allowed = weights["at least"], weights["at most"]
    assert (
        figure.get_suptitle() == f"these 2 limits cannot hold together: {asked:.4g} is asked for, {allowed:.4g} allowed"
    )


def test_many_bounds_are_one_bar_and_their_sum():
    m = one_variable()
    m.y = pyo.Var(range(40), bounds=(0, 1))
    m.many = pyo.Constraint(expr=sum(m.y[k] for k in m.y) >= 41)
    m.low = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= u)
    result = osilp.solve(m)
    ax, _ = result.plot().axes
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        "'many': at least 41", "bounds of 40 variables: at most 1",
    ]  # fmt: skip
    bars = ConflictDisplay(result.conflict, result.indices).bars
    assert bars["part"].sum() == pytest.approx((result.conflict["limit"] * result.conflict["weight"]).sum())


def test_what_a_result_cannot_draw_is_said():
    m = pyo.ConcreteModel()
    m.x = pyo.Var(bounds=(0, 1))
    m.o = pyo.Objective(expr=m.x)
    with pytest.raises(DataError) as refused:
        osilp.solve(m).plot()
    assert str(refused.value) == (
        "plot: the solved model has no rows over an index, so that there is no price to draw; result.values and "
        "result.duals hold the numbers."
    )
    m = tent()
    m.height.deactivate()
    m.unlimited = pyo.Objective(expr=m.x)
    with pytest.raises(DataError) as refused:
        osilp.solve(m).plot()
    assert str(refused.value).startswith(
        "plot: there is nothing to draw, for the exchange method ended with status 'unbou"
    )


def test_units_stand_on_axes_and_in_texts():
    pytest.importorskip("pint")
    unit = pyo.units
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(units=unit.MW)
    m.o = pyo.Objective(expr=m.x, sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u, units=unit.km)
    def below(m, u):
        return m.x <= (1 + (u / unit.km - 0.25) ** 2) * unit.MW

    (ax,) = osilp.solve(m).plot().axes
    assert ax.get_xlabel() == "u [km]"
    m.high = pyo.Constraint(expr=m.x >= 3 * unit.MW)
    ax, _ = osilp.solve(m).plot().axes
    (text,) = [each.get_text() for each in ax.get_yticklabels() if "below" in each.get_text()]
    assert text.startswith("'below' at u = ")
    assert " km: at most " in text
    assert text.endswith(" MW")


# -- sweeps -----------------------------------------------------------------------------------------------------------


def test_one_param_is_a_line_with_what_it_costs_beside_it():
    frame = pd.DataFrame({"radius": [1.0, 0.0, 0.5, 2.0], "status": "optimal", "objective": [8.0, 10.0, 9.0, np.nan]})
    figure = osilp.plot_sweep(frame)
    (ax,) = figure.axes
    line = ax.lines[0]
    np.testing.assert_array_equal(line.get_xdata(), [0.0, 0.5, 1.0, 2.0])
    np.testing.assert_array_equal(line.get_ydata(), [10.0, 9.0, 8.0, np.nan])
    (missing,) = [each for each in ax.lines if each.get_label() == "no optimum"]
    assert missing.get_xdata().tolist() == [2.0]
    (other,) = ax.child_axes
    figure.canvas.draw()
    low, high = ax.get_ylim()
    assert other.get_ylim() == pytest.approx((100 * (low - 10) / 10, 100 * (high - 10) / 10))


def test_a_sweep_calls_the_objective_as_the_model_does():
    m = pyo.ConcreteModel()
    m.u, m.x = ContinuousSet(bounds=(0, 1)), pyo.Var(bounds=(0, None))
    m.limit = pyo.Param(mutable=True, initialize=1.0)
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.below = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: (1 + u) * m.x <= m.limit)
    frame = osilp.sweep(m, [(m.limit, [1.0, 2.0])])
    assert osilp.plot_sweep(frame).axes[0].get_ylabel() == "gain"
    assert osilp.plot_sweep(frame, value="bound").axes[0].get_ylabel() == "bound"


def test_two_params_are_lines_or_cells():
    few = pd.DataFrame([(a, b, a + 10 * b) for a in range(5) for b in (0.5, 1.0)], columns=["a", "b", "objective"])
    (ax,) = osilp.plot_sweep(few).axes
    assert {line.get_label(): line.get_ydata().tolist() for line in ax.lines} == {
        "b = 0.5": [5.0, 6.0, 7.0, 8.0, 9.0], "b = 1": [10.0, 11.0, 12.0, 13.0, 14.0],
    }  # fmt: skip
    many = pd.DataFrame([(a, b, a + 10 * b) for a in range(5) for b in range(9)], columns=["a", "b", "objective"])
    ax = osilp.plot_sweep(many, ["a", "b"]).axes[0]
    (cells,) = ax.collections
    np.testing.assert_array_equal(cells.get_array(), np.arange(5) + 10 * np.arange(9)[:, None])


@pytest.mark.parametrize(
    ("frame", "along", "text"),
    [
        ([1, 2], None, "plot_sweep: frame must be a DataFrame with a row for each solve (got list)."),
        (pd.DataFrame({"a": [1, 2]}), None, "plot_sweep: the frame has no column 'objective'; it has a. Name one by value=."),
        (pd.DataFrame({"a": [1, 1], "objective": [1.0, 2.0]}), None,
         "plot_sweep: one Param can be drawn, or two, and none changed; name them by along=, and keep the others at one value."),
        (pd.DataFrame({"a": [1, 2], "b": [1, 2], "c": [1, 2], "objective": [1.0, 2.0]}), None,
         "plot_sweep: one Param can be drawn, or two, and 3: a, b, c changed; name them by along=, and keep the others at one value."),
        (pd.DataFrame({"a": [1, 2], "objective": [1.0, 2.0]}), "z", "plot_sweep: the frame has no column 'z'; it has a, objective."),
        (pd.DataFrame({"a": ["p", "q"], "objective": [1.0, 2.0]}), "a", "plot_sweep: the column 'a' holds no numbers (object)."),
        (pd.DataFrame({"a": [1, 2], "objective": [np.nan, np.nan]}), None,
         "plot_sweep: there is nothing to draw, for no row has a value of 'objective'."),
        (pd.DataFrame({"a": [1, 2, 2], "objective": [1.0, 2.0, 3.0]}), None,
         "plot_sweep: some values of a stand in several rows; keep what else changed at one value."),
    ],
)  # fmt: skip
def test_what_is_no_sweep_is_refused(frame, along, text):
    with pytest.raises((DataError, OptionError)) as refused:
        osilp.plot_sweep(frame, along)
    assert str(refused.value).replace("(str)", "(object)") == text


# -- all pictures -----------------------------------------------------------------------------------------------------


def test_everything_draws_into_a_figure_that_is_given(program, run):
    result = osilp.solve(tent())
    for draw in (run.plot, run.price.plot, result.plot, program.controller().plot, lambda figure: osilp.plot_sweep(
            pd.DataFrame({"a": [1.0, 2.0], "objective": [1.0, 2.0]}), figure=figure)):  # fmt: skip
        figure = matplotlib.figure.Figure(layout="constrained")
        left, right = figure.subfigures(1, 2)
        assert draw(figure=right) is right
        assert right.axes or right.subfigs
        assert not left.axes
        figure.savefig(io.BytesIO(), format="png")


def test_cells_meet_without_gaps():
    edges = cell_edges(np.array([0.0, 1.0, 4.0]))
    assert edges.tolist() == [-0.5, 0.5, 2.5, 5.5]
    assert cell_edges(np.array([3.0])).tolist() == [2.5, 3.5]


@pytest.mark.long
def test_a_notebook_shows_every_picture_once():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    cells = [
        "import osilp_pyomo as osilp\nfrom osilp_pyomo.demo import demo_model, demo_program",
        "program = demo_program()\nrun = program.replay(osilp.MirrorDescent(), progress=False)\nrun.plot('use')",
        "figure = run.plot('use')",
        "m = demo_model(40)\nosilp.plot_rows(m, osilp.solve(m))",
        "figure.savefig('/dev/null', format='png')\nfigure",
    ]
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)))
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [sum("image/png" in out.get("data", {}) for out in cell["outputs"]) for cell in notebook.cells]
    assert shown == [0, 1, 1, 1, 1]


def test_whole_numbers_have_no_prices_to_draw_and_the_way_is_told():
    m = tent()
    m.x.domain = pyo.Integers
    with pytest.raises(PriceError) as refused:
        osilp.solve(m).plot()
    assert str(refused.value) == (
        "plot: a model with integer variables has no prices to draw; osilp_pyomo.plot_rows(model, result) draws its rows "
        "and limits, and solve(model, fix_integers=True) gives prices at the integers found."
    )
    assert osilp.solve(m, fix_integers=True).plot().axes
