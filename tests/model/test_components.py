"""SemiInfiniteConstraint as a Pyomo component."""

import io
import pickle

import pyomo.environ as pyo
import pytest
from models import line_above_square, one_variable, packing, tent, two_families
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import SemiInfiniteConstraint, errors


def printed(component):
    stream = io.StringIO()
    component.pprint(ostream=stream)
    return stream.getvalue()


def test_it_reads_like_mathematics():
    # Models are held while they are printed: a component whose model was collected has no other names to say.
    m, n = line_above_square(), two_families()
    assert repr(m.above) == "above: u**2 <= a + u*b  for all u in [0, 1]"
    assert str(m.above) == repr(m.above)
    assert printed(n.cap) == (
        "cap : Size=2, Index=S, For all=u in [0, 1], Active=True\n"
        "    Key : Row           : Route  : Active\n"
        "      a : x[a] <= 2 + u : traced :   True\n"
        "      b : x[b] <= 3 - u : traced :   True\n"
    )


def test_long_rows_are_cut_short():
    m = packing(1000)
    assert repr(m.usage) == (
        "usage: exp(- ((u - place[1])/0.1)**2)*x[1] + exp(- ((u - place[2])/0.1)**2)*x[2] + ... + "
        "exp(- ((u - place[1000])/0.1)**2)*x[1000]  [1000 terms] <= 1000*(0.06 + 0.02*sin(6*u))  for all u in [0, 1]"
    )
    assert len(printed(m.usage)) < 1500


def test_long_sums_inside_of_a_row_are_cut_short_and_numbers_have_six_digits():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.k = pyo.Set(initialize=[0.123456789, *range(1, 20)])
    m.h, m.top = pyo.Var(m.k), pyo.Var()

    @m.SemiInfiniteConstraint([1, -1], m.u)
    def flat(m, sign, u):
        return sign * (sum(m.h[k] * pyo.cos(3.141592653589793 * u) for k in m.k) - 1) <= m.top

    assert repr(m.flat[1]) == (
        "flat[1]: cos(3.14159*u)*h[0.123456789] + cos(3.14159*u)*h[1] + ... - 1  [21 terms] <= top  for all u in [0, 1]"
    )
    assert repr(m.flat[-1]) == (
        "flat[-1]: - (cos(3.14159*u)*h[0.123456789] + cos(3.14159*u)*h[1] + ... - 1  [21 terms]) <= top  for all u in [0, 1]"
    )


def test_order_of_the_sets_is_the_order_of_the_arguments():
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(2, 3))
    m.K = pyo.Set(initialize=[("a", 1), ("b", 2)], dimen=2)
    m.J = pyo.Set(initialize=[7])
    m.x = pyo.Var(m.K, m.J, bounds=(0, None))
    m.gain = pyo.Objective(expr=sum(m.x[k] for k in m.x), sense=pyo.maximize)
    seen = []

    @m.SemiInfiniteConstraint(m.u, m.K, m.v, m.J)
    def row(m, u, name, number, v, j):
        seen.append((str(u), name, number, str(v), j))
        return m.x[name, number, j] * (1 + u) <= number * v

    assert seen[:2] == [("u", "a", 1, "v", 7), ("u", "b", 2, "v", 7)]
    assert osilp.solve(m).objective == pytest.approx((1 * 2 + 2 * 2) / 2)


def test_products_of_sets_are_taken_apart():
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.row = SemiInfiniteConstraint(m.u * m.v, rule=lambda m, u, v: m.x <= 1 + u + v)
    assert osilp.solve(m).objective == pytest.approx(1.0)


def test_a_range_set_of_step_zero_is_continuous():
    m = pyo.ConcreteModel()
    m.x = pyo.Var()
    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    m.row = SemiInfiniteConstraint(pyo.RangeSet(1, 2, 0), rule=lambda m, u: m.x <= u)
    assert repr(m.row) == "row: x <= u1  for all u1 in [1, 2]"
    assert osilp.solve(m).objective == pytest.approx(1.0)


def test_clones_have_lives_of_their_own():
    m = two_families()
    other = m.clone()
    other.x["a"].setub(0.5)
    assert osilp.solve(other).objective == pytest.approx(2.5)
    assert other.x["a"].value == pytest.approx(0.5)
    assert m.x["a"].value is None
    assert osilp.solve(m).objective == pytest.approx(4.0)


def module_level_rule(m, u):
    return m.x <= 1 + abs(u - 0.3)


def test_models_with_picklable_rules_pickle():
    m = tent()
    m.del_component(m.below)
    m.below = SemiInfiniteConstraint(m.u, rule=module_level_rule)
    again = pickle.loads(pickle.dumps(m))
    assert osilp.solve(again).objective == pytest.approx(1.0)
    assert again.below.parent_block() is again


def test_abstract_models():
    m = pyo.AbstractModel()
    m.top = pyo.Param()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.gain = pyo.Objective(rule=lambda m: m.x, sense=pyo.maximize)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= m.top + u)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == ("solve: the model is abstract; call model.create_instance() and solve the instance.")
    instance = m.create_instance({None: {"top": {None: 3}}})
    assert osilp.solve(instance).objective == pytest.approx(3.0)


def test_families_and_wholes_can_be_deactivated():
    m = two_families()
    for s in m.S:
        m.x[s].setub(10)
    m.cap["a"].deactivate()
    assert osilp.solve(m).objective == pytest.approx(12.0)
    m.cap.deactivate()
    assert osilp.solve(m).objective == pytest.approx(20.0)
    m.cap.activate()
    assert osilp.solve(m).objective == pytest.approx(4.0)


def test_blocks_hold_families_too():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()

    @m.Block([1, 2])
    def part(b, k):
        b.row = SemiInfiniteConstraint(m.u, rule=lambda b, u: m.x * k <= 2 + u)

    m.gain = pyo.Objective(expr=m.x, sense=pyo.maximize)
    result = osilp.solve(m)
    assert result.objective == pytest.approx(1.0)
    assert list(result.price) == ["part[1].row", "part[2].row"]
    m.part[2].deactivate()
    assert osilp.solve(m).objective == pytest.approx(2.0)


def test_members_can_be_skipped():
    m = two_families()
    m.del_component(m.cap)
    m.x["b"].setub(1)
    m.cap = SemiInfiniteConstraint(m.S, m.u, rule=lambda m, s, u: m.x[s] <= 2 + u if s == "a" else pyo.Constraint.Skip)
    assert list(m.cap) == ["a"]
    assert osilp.solve(m).objective == pytest.approx(3.0)


def test_where_restricts_the_index():
    m = tent()
    m.del_component(m.below)
    m.below = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= 1 + abs(u - 0.3), where=lambda m, u: u >= 0.5)
    assert repr(m.below) == "below: x <= 1 + abs(u - 0.3)  for all u in [0, 1] where declared"
    result = osilp.solve(m)
    assert result.objective == pytest.approx(1.2)
    assert result.worst_index == pytest.approx(0.5)


def test_where_may_be_written_for_single_numbers():
    m = tent()
    m.del_component(m.below)

    def late(m, u):
        return u >= 0.5 and u <= 1

    m.below = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= 1 + abs(u - 0.3), where=late)
    assert repr(m.below).endswith("for all u in [0, 1] where late")
    assert osilp.solve(m).objective == pytest.approx(1.2)


def test_where_that_is_nowhere_true():
    m = tent()
    m.del_component(m.below)
    m.below = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= u, where=lambda m, u: u > 2)
    with pytest.raises(errors.DomainError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "Index u in [0, 1] where declared: no point was found where the 'where' condition is true; a set without "
        "interior needs other coordinates, an empty one no constraint."
    )


@pytest.mark.parametrize(
    ("rule", "optimum"),
    [
        (lambda m, u: m.x <= 1 + u, 1.0),
        (lambda m, u: 1 + u >= m.x, 1.0),
        (lambda m, u: -m.x >= -1 - u, 1.0),
        (lambda m, u: (None, m.x - u, 1), 1.0),
        (lambda m, u: (-5, m.x - u, 1), 1.0),
        (lambda m, u: pyo.inequality(-5, m.x * (1 + u), 1 + u), 1.0),
        (lambda m, u: m.x + m.x <= 2 + 2 * u, 1.0),
        (lambda m, u: 3 * m.x <= m.x + 2 + u, 1.0),
    ],
)
def test_all_ways_to_write_a_relation(rule, optimum):
    m = one_variable()
    m.row = SemiInfiniteConstraint(m.u, rule=rule)
    assert osilp.solve(m).objective == pytest.approx(optimum)


def test_display_prints_the_constraint():
    stream, m = io.StringIO(), tent()
    m.below.display(ostream=stream)
    assert stream.getvalue() == "below: x <= 1 + abs(u - 0.3)  for all u in [0, 1]\n"


def test_the_rule_at_one_point():
    m = two_families()
    relation = m.cap["b"].at(0.25)
    assert str(relation) == "x[b]  <=  2.75"


def test_a_print_says_what_state_it_is_in():
    abstract = pyo.AbstractModel()
    abstract.u = ContinuousSet(bounds=(0, 1))
    abstract.x = pyo.Var()
    abstract.row = SemiInfiniteConstraint(abstract.u, rule=lambda m, u: m.x * u <= 1)
    assert str(abstract.row) == "row: not constructed yet"
    m = abstract.create_instance()
    assert str(m.row) == "row: u*x <= 1  for all u in [0, 1]"
    m.row.deactivate()
    assert str(m.row) == "row: u*x <= 1  for all u in [0, 1]  (deactivated)"
    m.row.clear()
    assert str(m.row) == "row: no rows"
