"""Cards of notebooks: whole texts for small models, names shown as text, sizes that do not grow with the model."""

import html
import re
import time
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import one_variable, packing, tent, two_families
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo._displays import some_of
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.offline.prices import AtomicPrice
from osilp_pyomo.offline.results import FamilyMap
from osilp_pyomo.show.cards.card import Card, data_table
from osilp_pyomo.show.cards.sketches import Line, intervals, sketch


class Reader(HTMLParser):
    """What a browser would show: texts without the style, and whether every element is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)


def read(card):
    reader = Reader()
    reader.feed(card)
    assert reader.open == []
    return reader


def words(card):
    """The texts of a card, one after the other."""
    return " | ".join(text.strip() for text in read(card).texts if text.strip())


@pytest.fixture(scope="module")
def program():
    m = packing(30)
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(3), grid=osilp.Midpoint(20))


@pytest.fixture(scope="module")
def shown(program):
    """One of each kind of value that shows itself."""
    result = osilp.solve(tent())
    controller = program.controller(osilp.Greedy())
    decision = controller.step(program.data.iloc[0])
    run = program.replay(osilp.Greedy())
    study = osilp.compare(program, [osilp.Greedy(), osilp.Resolve()], trials=2, order="permutation")
    return {
        "result": result, "price": result.price, "several": osilp.solve(two_families()).prices, "program": program,
        "controller": controller, "decision": decision, "run": run, "regret": run.regret(program.solve_offline()),
        "study": study,
    }  # fmt: skip


def test_every_card_is_whole_and_fetches_nothing(shown):
    for name, value in shown.items():
        card = value._repr_html_()
        reader = read(card)
        assert "script" not in reader.tags, name
        assert not re.search(r"""(src|href)=|url\(|@import""", card), name
        assert len(card) < 20_000, name


def test_a_result_in_words(shown):
    text = words(shown["result"]._repr_html_())
    text = re.sub(r"[\d.]+ s\b|[\d,.]+ (?=boxes|fresh)|[\d.]+ [kM]B|[\d.]+e-\d+", "#", text)
    assert text.startswith("Result | optimal, certified | exchange, # | objective | 1 (maximize) | bracket | [")
    for part in ("violation | none of 'below', which is tightest at u = 0.3",
                 "price | 1 a unit of right-hand side of 'below', on 1 point of u in [0, 1]",
                 "price of single points of 'below'", "How it was found and checked", "Values: 1 variable | variable | value | x | 1",
                 "Price of 'below': 1 point | u | weight | 0.3 | 1", "Proof: 1 family"):  # fmt: skip
        assert part in text, text


def test_a_price_in_words():
    price = AtomicPrice("cover", Domain.box(u=(0, 2)), np.array([[0.25], [1.0]]), np.array([2.0, 0.5]))
    assert words(price._repr_html_()) == (
        "Price | of 'cover' | total | 2.5 a unit of right-hand side, on 2 points | index | u in [0, 2] | 2 | 0 | 0 | 2 | u | "
        "price of single points of 'cover' | Points | u | weight | 0.25 | 2 | 1 | 0.5"
    )


def test_a_decision_in_words(shown):
    decision = osilp.Decision(
        x={"x": 1.0, ("y", "<b>"): 0.25}, wanted={"x": 1.0, ("y", "<b>"): 0.5}, reason="guard", reward=1234.5, t=3
    )
    assert words(decision._repr_html_()) == (
        "Decision | for arrival 3 | reason | guard | reward | 1,234.5 | variable | x | wanted | x | 1 | 1 | "
        "('y', '<b>') | 0.25 | 0.5"
    )
    assert words(osilp.Decision(1.0, 0.5, "tie", 2.0, 7)._repr_html_()) == (
        "Decision | for arrival 7 | x | 1 | wanted | 0.5 | reason | tie | reward | 2"
    )


def test_a_regret_in_words():
    regret = osilp.Regret(12.5, 0.05, "R*_T (exact over the continuum)")
    assert words(regret._repr_html_()) == ("Regret | regret | 12.5 (5 %) | against | R*_T (exact over the continuum)")


def test_online_cards_in_words(shown):
    program = words(shown["program"]._repr_html_())
    assert program.startswith("Online program | 30 arrivals | arrivals | 30; each brings ")
    assert "maximize" in program
    assert "for all u in [0, 1]" in program
    controller = words(shown["controller"]._repr_html_())
    assert controller.startswith("Controller | arrivals | 1 of 30 met | reward so far | ")
    assert "use of 'usage' and its limit (dashed)" in controller
    run = words(shown["run"]._repr_html_())
    assert "policy | Greedy() | guard | pointwise | arrivals | all 30 arrivals in" in run
    assert "Decisions: 30" in run
    assert "... and 18 more" in run
    study = words(shown["study"]._repr_html_())
    assert study.startswith(
        "Study | 2 of 2 trials | means with 95 % intervals over trials | arrivals | T = 30; 30 arrivals"
    )
    assert "regret against R*_T" in study
    assert "What every number means" in study


def test_an_infeasible_result_shows_its_conflict():
    m = one_variable()
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= 1 - u)
    m.low = pyo.Constraint(expr=m.x >= 2)
    card = osilp.solve(m)._repr_html_()
    text = words(card)
    assert "Result | infeasible" in text
    assert "osilp-bad" in card
    assert "Conflict: 2 parts" in text


def test_a_rule_and_a_curve():
    from pyomo.contrib.pyros import BoxSet

    m = pyo.ConcreteModel()
    m.y = osilp.FunctionVar(over=BoxSet([(0, 2)]))
    m.cover = osilp.SemiInfiniteConstraint(BoxSet([(0, 2)]), rule=lambda m, xi: m.y(xi) >= 1 + 3 * xi[0])
    m.least = pyo.Objective(expr=m.y([1.0]))
    rule = osilp.solve(m).function(m.y)
    assert words(rule._repr_html_()).startswith("Decision rule | y(xi) | y(xi) | = | 1 | + | 3 |")
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.f = osilp.FunctionVar(over=m.u, basis=osilp.BSpline(5))
    m.above = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.f(u) >= u)
    m.least = pyo.Objective(expr=osilp.integral(m.u, lambda u: m.f(u)))
    curve = osilp.solve(m).function(m.f)
    assert "Curve | f | functions | 5 of BSpline(" in words(curve._repr_html_())
    assert "<polyline" in curve._repr_html_()


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30))
def test_names_are_text(name):
    evil = f"<img src=x onerror=alert(1)>{name}"
    frame = pd.DataFrame({evil: [evil], "n": [1.5]}, index=pd.Index([evil], name=evil))
    curve = sketch([Line(np.array([0.0, 1.0]), np.array([1.0, 2.0]))], evil, (0, 1), evil)
    dots = intervals([(evil, 1.0, 0.5, 2.0)], evil, evil)
    card = Card(
        evil, evil, evil, True, [(evil, evil)], [curve, dots], data_table(frame), [(evil, data_table(frame))]
    ).html()
    reader = read(card)
    assert "img" not in reader.tags
    assert sum(html.unescape(text).count("<img src=x onerror=alert(1)>") for text in reader.texts) >= 10
    assert "<img" not in FamilyMap({evil: 1.0, "other": 2.0})._repr_html_()


def test_a_model_with_evil_names_is_shown_as_text():
    m = pyo.ConcreteModel()
    m.add_component("<b>u</b>", ContinuousSet(bounds=(0, 1)))
    m.add_component("<i>x</i>", pyo.Var(bounds=(0, 9)))
    x = m.component("<i>x</i>")
    m.add_component("<u>c</u>", osilp.SemiInfiniteConstraint(m.component("<b>u</b>"), rule=lambda m, u: x <= 1 + u))
    m.gain = pyo.Objective(expr=x, sense=pyo.maximize)
    reader = read(osilp.solve(m)._repr_html_())
    assert not {"b", "i", "u"} & set(reader.tags) - {"b"}
    assert reader.tags.count("b") == 1
    assert any("<u>c</u>" in text for text in reader.texts)


def test_cards_of_large_models_are_small_and_quick():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.N = pyo.RangeSet(100_000)
    m.x = pyo.Var(m.N, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.x[n] for n in m.N), sense=pyo.maximize)
    m.rows = pyo.Constraint(m.N, rule=lambda m, n: m.x[n] <= 0.5)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x[1] <= 0.25 + u)
    result = osilp.solve(m, load=False)
    started = time.process_time()
    card = result._repr_html_()
    assert time.process_time() - started < 1.0
    assert len(card) < 12_000
    assert "100,000" not in card  # their names were not asked for
    assert len(result.values) == 100_000
    assert "Values: 100,000 variables" in result._repr_html_()
    assert len(result._repr_html_()) < 15_000
    assert len(repr(result)) < 2_000


def test_many_families_end():
    entries = FamilyMap({f"c[{k}]": float(k) for k in range(5_000)})
    assert repr(entries).splitlines()[-1] == "... and 4,990 more"
    assert len(repr(entries)) < 500
    assert len(entries._repr_html_()) < 5_000


def test_long_names_of_policies_fit_beside_their_dots():
    drawn = intervals([("a policy with a name of many letters, number 7", 5.0, 4.0, 6.0)], "%", "regret")
    (name,) = re.findall(r"<text[^>]*text-anchor='end'[^>]*>(a policy[^<]*)<", drawn)
    assert name == "a policy wi...umber 7"


def test_a_decision_is_printed_with_six_digits_and_holds_all():
    decision = osilp.Decision(0.8022041726724587, {"a": 1 / 3, "b": 1.0}, "priced", 0.40110208633622935, 3)
    assert repr(decision) == (
        "Decision(x=0.802204, wanted={'a': 0.333333, 'b': 1.0}, reason='priced', reward=0.401102, t=3)"
    )
    assert decision.x == 0.8022041726724587
    assert repr(osilp.Decision(np.float64(1 / 3), 0, "tie", float("inf"), 1)) == (
        "Decision(x=0.333333, wanted=0, reason='tie', reward=inf, t=1)"
    )


def test_a_decision_of_many_parts_ends():
    parts = {("x", k): 0.0 for k in range(1_000)}
    decision = osilp.Decision(parts, parts, "priced", 0.0, 1)
    assert "... and 990 more" in repr(decision)
    assert len(repr(decision)) < 600
    assert len(decision._repr_html_()) < 5_000


@given(st.integers(1, 60))
def test_lists_name_all_or_say_how_many_more(count):
    told = some_of([str(k) for k in range(count)])
    named = [text for text in told if not text.startswith("...")]
    rest = int(told[-1].split()[2]) if told[-1].startswith("...") else 0
    assert len(named) + rest == count
    assert rest != 1


@given(st.integers(1, 50_000), st.sampled_from(["line", "area", "spikes"]))
def test_sketches_stay_small(count, kind):
    random = np.random.default_rng(count)
    drawn = sketch([Line(random.uniform(size=count), random.normal(size=count), kind=kind)], "u", (0, 1), "noise")
    assert len(drawn) < 15_000


def test_a_narrow_peak_stays_in_a_thinned_sketch():
    values = np.zeros(100_000)
    values[54_321] = 7.0
    drawn = sketch([Line(np.linspace(0, 1, 100_000), values)], "u", (0, 1), "a peak")
    assert f"{8.0:.1f}" in drawn  # the line reaches the top, eight units below the edge
    assert ">7<" in drawn


def test_a_study_stays_within_a_hundred_columns(shown):
    text = str(shown["study"])
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("policy") >= 2  # both parts of the table tell the policies


def test_prints_of_a_program_with_very_many_parts_end():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T, m.J = pyo.RangeSet(6), pyo.RangeSet(300)
    m.v = pyo.Param(m.T, m.J, mutable=True, initialize=lambda m, t, j: (t * j % 7) / 7 + 0.1)
    m.x = pyo.Var(m.T, m.J, bounds=(0, 1))
    m.gain = pyo.Objective(expr=sum(m.v[t, j] * m.x[t, j] for t in m.T for j in m.J), sense=pyo.maximize)
    m.rows = pyo.Constraint(m.J, rule=lambda m, j: sum(m.x[t, j] for t in m.T) <= 3)
    m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.x[t, 1] * u for t in m.T) <= 3)
    program = osilp.compile_online(m, stages=m.T, grid=osilp.Midpoint(20), basis=osilp.RBF(3))
    assert "... and 290 more ordinary rows" in program.describe()
    assert "... and 290 more decisions" in program.describe()
    assert len(program.describe()) < 3_000
    assert repr(program) == (
        "OnlineProgram: 6 arrivals, 300 decisions each, 303 resources of c, rows[1], rows[2], rows[3], ... and 297 more; "
        "print(program.describe()) tells more"
    )
    held = osilp.FixedPrice(np.ones(303))
    controller, run = program.controller(held), program.replay(held)
    decision = controller.step(program.data.iloc[0])
    for value in (controller, decision, run):
        assert len(repr(value)) < 1_500, value
    assert "no larger one of 290 other ordinary rows" in repr(run)
    for value in (program, controller, decision, run):
        assert len(value._repr_html_()) < 12_000
        read(value._repr_html_())
    assert len(repr(osilp.solve(two_families()).audit)) < 150


def test_a_result_of_a_model_with_units_shows_them():
    pytest.importorskip("pint")
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var(units=pyo.units.MW)
    m.worth = pyo.Param(initialize=3.0, mutable=True, units=pyo.units.h)
    m.gain = pyo.Objective(expr=m.worth * m.x, sense=pyo.maximize)
    m.cap = pyo.Param(initialize=2.0, mutable=True, units=pyo.units.MW)
    m.below = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= m.cap * (1 + abs(u - 0.3)))
    result = osilp.solve(m)
    text = words(result._repr_html_())
    assert result.units.objective
    assert f"objective | 6 {result.units.objective} (maximize)" in text
    assert f"price of single points of 'below' [{result.units.prices['below']}]" in text
    assert "units | 'below' MW" in text
