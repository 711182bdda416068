"""Profile: data that is a function of the index."""

import io
import pickle

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from models import measured_cap
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo import Profile, SemiInfiniteConstraint, errors


def base():
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(0, 2))
    m.T = pyo.RangeSet(3)
    m.x = pyo.Var(m.T, bounds=(0, 10))
    m.gain = pyo.Objective(expr=sum(m.x[t] for t in m.T), sense=pyo.maximize)
    return m


def test_the_lowest_knot_decides():
    result = osilp.solve(measured_cap())
    assert result.objective == pytest.approx(0.5, abs=1e-9)
    assert result.worst_index == pytest.approx(0.4)
    np.testing.assert_allclose(result.price.atoms[["u", "weight"]].to_numpy(), [[0.4, 1.0]])


@pytest.mark.parametrize(
    ("kind", "at", "value"),
    [
        ("linear", 0.25, 2.0), ("linear", 0.5, 3.0), ("linear", 1.0, 2.0),
        ("previous", 0.49, 1.0), ("previous", 0.5, 3.0), ("previous", 1.0, 2.0),
        ("nearest", 0.24, 1.0), ("nearest", 0.26, 3.0), ("nearest", 0.8, 2.0),
    ],
)  # fmt: skip
def test_kinds(kind, at, value):
    m = base()
    m.a = Profile(over=m.u, points=[0, 0.5, 1], initialize=[1, 3, 2], kind=kind)
    assert m.a(at) == pytest.approx(value)


@pytest.mark.parametrize(("outside", "value"), [("clamp", 2.0), ("wrap", 2.0)])
def test_beyond_the_knots(outside, value):
    m = base()
    m.a = Profile(over=m.u, points=[0.2, 0.4, 0.6], initialize=[1, 3, 2], outside=outside)
    assert m.a(0.7) == pytest.approx(value)
    if outside == "clamp":
        assert m.a(0.0) == pytest.approx(1.0)


def test_beyond_the_knots_is_an_error_unless_said():
    m = base()
    m.a = Profile(over=m.u, points=[0.2, 0.6], initialize=[1, 3])
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x[1] <= m.a(u))
    with pytest.raises(errors.DomainError) as error:
        osilp.solve(m)
    assert str(error.value).startswith("Profile 'a': asked for its value at 0")
    assert str(error.value).endswith(
        ", outside its knots [0.2, 0.6]; give it more points, or outside='clamp' or 'wrap'."
    )


@pytest.mark.parametrize("first", [0, 3])
def test_two_columns_of_a_frame_are_points_and_values(first):
    """The index of a column counts rows, which are no points; what is left of a frame keeps its numbers."""
    frame = pd.DataFrame({"hour": [0, 0, 0, 0, 0.5, 1], "limit": [9, 9, 9, 1, 3, 2]}).iloc[first and 3 :]
    frame = frame if first else frame.iloc[3:].reset_index(drop=True)
    m = base()
    m.a = Profile(over=m.u, points=frame["hour"], initialize=frame["limit"])
    m.b = Profile(m.T, over=m.u, points=frame["hour"], initialize=dict.fromkeys(m.T, frame["limit"]))
    for curve in (m.a, m.b[1]):
        assert [curve(at) for at in (0, 0.25, 1)] == [1.0, 2.0, 2.0]


def test_counted_values_belong_to_the_points():
    m = base()
    m.a = Profile(over=m.u, points=[0, 0.5, 1], initialize=pd.Series([1.0, 3.0, 2.0]))
    assert m.a(0.25) == 2.0


def test_points_and_an_index_that_say_different_things_are_refused():
    m = base()
    with pytest.raises(errors.DeclarationError) as refused:
        m.a = Profile(over=m.u, points=[0, 0.5, 1], initialize=pd.Series([1.0, 3.0, 2.0], index=[0, 0.6, 1]))
    assert str(refused.value) == (
        "Profile 'a': points= [0.  0.5 1. ] and the index of the Series [0.  0.6 1. ] are different points; leave points= "
        "out, or give the values without an index, as initialize=list(...)."
    )
    with pytest.raises(errors.DeclarationError) as refused:
        m.a = Profile(over=m.u, initialize=pd.Series([1.0, 3.0], index=["low", "high"]))
    assert str(refused.value) == (
        "Profile 'a': the index of the Series must be the points that its values stand at (got 'low', ...); or give both "
        "by position, as points=list(...), initialize=list(...)."
    )


def test_square_brackets_are_answered_with_round_ones():
    m = base()
    m.a = Profile(over=m.u, initialize=1.0)
    m.b = Profile(over=(m.u, m.v), initialize=1.0)
    for rule, told in (
        (lambda m, u: m.x[1] <= m.a[u], "Profile 'a' is a function of u, with round brackets: a(u)"),
        (lambda m, u: m.x[1] <= m.b[u, 1], "Profile 'b' is a function of u, v, with round brackets: b(u, v)"),
    ):
        with pytest.raises(KeyError) as refused:
            m.row = SemiInfiniteConstraint(m.u, rule=rule)
        assert refused.value.args == (told,)


def test_forms_of_initialize():
    m = base()
    values = np.array([1.0, 3.0, 2.0])
    series = pd.Series(values, index=[0, 0.5, 1])
    m.a = Profile(over=m.u, points=[0, 0.5, 1], initialize=values)
    m.b = Profile(over=m.u, initialize=series)
    m.c = Profile(over=m.u, initialize=lambda u: np.interp(u, [0, 0.5, 1], values))
    m.d = Profile(m.T, over=m.u, points=[0, 0.5, 1], initialize=lambda m, t: values * t)
    m.e = Profile(m.T, over=m.u, initialize=pd.DataFrame({t: series * t for t in m.T}))
    m.f = Profile(m.T, over=m.u, initialize={t: lambda u, t=t: t * np.interp(u, [0, 0.5, 1], values) for t in m.T})
    m.g = Profile(over=m.u, initialize=7)
    for profile in (m.a, m.b, m.c, m.d[1], m.e[1], m.f[1]):
        assert profile(0.25) == pytest.approx(2.0)
    for profile in (m.d, m.e, m.f):
        assert profile[3](0.25) == pytest.approx(6.0)
    assert m.g(0.9) == 7


@pytest.mark.parametrize("form", ["table", "function"])
def test_rows_of_random_curves_are_evaluated_together(form):
    m = base()
    knots = np.linspace(0, 1, 11)
    curves = np.random.default_rng(0).normal(2, 0.3, size=(3, 11))
    if form == "table":
        m.a = Profile(m.T, over=m.u, points=knots, initialize=lambda m, t: curves[t - 1])
    else:
        m.a = Profile(m.T, over=m.u, initialize=lambda m, t: lambda u: np.interp(u, knots, curves[t - 1]))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: sum(m.a[t](u) * m.x[t] for t in m.T) <= 5)
    result = osilp.solve(m)
    # A sum of piecewise linear functions is largest at a knot: a finite LP.
    from scipy.optimize import linprog

    exact = linprog(-np.ones(3), A_ub=curves.T, b_ub=np.full(11, 5.0), bounds=[(0, 10)] * 3)
    assert result.objective == pytest.approx(-exact.fun, abs=1e-8)


def test_arguments_may_be_formulas():
    m = base()
    m.a = Profile(over=m.u, points=[0, 1], initialize=[1, 2])
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x[1] <= m.a(1 - u) ** 2 + u)
    assert osilp.solve(m).values["x[1]"] == pytest.approx(2.0)


def test_two_axes():
    m = base()
    m.a = Profile(over=(m.u, m.v), points=([0, 1], [0, 1, 2]), initialize=[[1, 2, 3], [3, 4, 0.5]])
    assert m.a(0.5, 0.5) == pytest.approx(2.5)
    m.row = SemiInfiniteConstraint(m.u, m.v, rule=lambda m, u, v: m.x[1] <= m.a(u, v))
    result = osilp.solve(m)
    assert result.values["x[1]"] == pytest.approx(0.5)
    assert result.worst_index == pytest.approx((1.0, 2.0))


def test_jumps_are_seen_from_both_sides():
    m = base()
    m.a = Profile(over=m.u, points=[0, 0.3, 0.30001, 1], initialize=[2, 0.25, 2, 2], kind="previous")
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x[1] * (1 + u) <= m.a(u))
    assert osilp.solve(m).values["x[1]"] == pytest.approx(0.25 / 1.30001, rel=1e-9)


def test_values_can_be_changed():
    m = measured_cap()
    m.cap.set_value([1.0, 0.75, 2.0])
    assert osilp.solve(m).objective == pytest.approx(0.75)


def test_clone_and_pickle():
    m = measured_cap()
    other = m.clone()
    other.cap.set_value([3.0, 3.0, 3.0])
    assert osilp.solve(other).objective == pytest.approx(3.0)
    assert osilp.solve(m).objective == pytest.approx(0.5)
    assert pickle.loads(pickle.dumps(m.cap.curve_table()))(np.array([0.2]))[0] == pytest.approx(0.75)


def test_it_prints():
    stream = io.StringIO()
    measured_cap().cap.pprint(ostream=stream)
    assert stream.getvalue() == (
        "cap : Size=1, Index=None, Over=u\n    Key  : Curve\n    None : 3 points, linear, from 0.5 to 2\n"
    )


BAD = {
    "no index": (
        {"initialize": [1, 2]},
        "Profile: say which continuous index it is a function of, by over=model.u, as in "
        "Profile(over=model.u, points=[0, 0.5, 1], initialize=[1, 3, 2]).",
    ),
    "kind": (
        {"over": "u", "kind": "cubic"},
        "Profile: kind must be one of linear, previous, nearest (got 'cubic').",
    ),
    "outside": (
        {"over": "u", "outside": "zero"},
        "Profile: outside must be one of error, clamp, wrap (got 'zero').",
    ),
    "no points": (
        {"over": "u", "initialize": [1, 2]},
        "Profile 'a': values need points=..., unless they come as a pandas Series or a function of the index.",
    ),
    "order": (
        {"over": "u", "points": [1, 0], "initialize": [1, 2]},
        "Profile 'Profile': points must be finite numbers in increasing order (got [1. 0.]).",
    ),
    "shape": (
        {"over": "u", "points": [0, 1], "initialize": [1, 2, 3]},
        "Profile 'a': there must be one value a point, shape (2,) (got shape (3,)).",
    ),
    "nan": (
        {"over": "u", "points": [0, 1], "initialize": [1, np.nan]},
        "Profile 'a': every value must be a finite number (found nan or inf).",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_profiles(case):
    keywords, text = BAD[case]
    m = base()
    if keywords.get("over") == "u":
        keywords = {**keywords, "over": m.u}
    with pytest.raises(errors.DeclarationError) as error:
        m.a = Profile(**keywords)
    assert str(error.value) == text
    assert m.component("a") is None


def test_wrong_number_of_coordinates():
    m = measured_cap()
    with pytest.raises(errors.DeclarationError) as error:
        m.cap(0.1, 0.2)
    assert str(error.value) == "Profile 'cap' is a function of 1 coordinate (got 2)."
