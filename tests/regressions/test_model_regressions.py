"""Models that once were misread, and bad ones: a clear error each, its whole text, and the model as it was."""

import functools

import numpy as np
import pyomo.environ as pyo
import pytest
from models import many_kinds, one_variable, snapshot, solved, two_families
from pyomo.dae import ContinuousSet, DerivativeVar

import osilp_pyomo as osilp
from osilp_pyomo import SemiInfiniteConstraint, errors
from osilp_pyomo.index.domain import Domain

DECLARATIONS = {
    "none": (
        lambda m: {"rule": lambda m, u: None},
        "SemiInfiniteConstraint 'bad': its rule returned None; end it with 'return left <= right'.",
    ),
    "true": (
        lambda m: {"rule": lambda m, u: True},
        "SemiInfiniteConstraint 'bad': its rule returned True, which holds no variable; return a relation such as "
        "left <= right, or Constraint.Skip for no row.",
    ),
    "feasible": (
        lambda m: {"rule": lambda m, u: pyo.Constraint.Feasible},
        "SemiInfiniteConstraint 'bad': its rule returned Feasible, which holds no variable; return a relation such as "
        "left <= right, or Constraint.Skip for no row.",
    ),
    "strict": (
        lambda m: {"rule": lambda m, u: m.x * u < 1},
        "SemiInfiniteConstraint 'bad': '<' and '>' describe open sets (found u*x < 1); use <= or >=.",
    ),
    "expression": (
        lambda m: {"rule": lambda m, u: m.x * u},
        "SemiInfiniteConstraint 'bad': its rule must return a relation such as left <= right "
        "(got MonomialTermExpression).",
    ),
    "idle index": (
        lambda m: {"rule": lambda m, u: m.x <= 1},
        "SemiInfiniteConstraint 'bad': the index 'u' appears nowhere in the row, so the row is the same at every "
        "point; use it, or leave it out of the declaration.",
    ),
    "no rule": (
        lambda m: {},
        "SemiInfiniteConstraint: it needs rule=..., a function of the model and the index (got NoneType).",
    ),
    "an expression": (
        lambda m: {"expr": m.x <= 1},
        "SemiInfiniteConstraint: expr= cannot hold the index; give rule=..., a function of the model and the index, such "
        "as rule=lambda m, u: ...",
    ),
    "a rule without the index": (
        lambda m: {"rule": lambda m: m.x <= 1},
        "SemiInfiniteConstraint 'bad': its rule is called with 2 arguments, the model and its index, and takes (m) (too "
        "many positional arguments); write it as a function of all of them.",
    ),
    "a rule with too many arguments": (
        lambda m: {"rule": lambda m, u, v: m.x * u <= v},
        "SemiInfiniteConstraint 'bad': its rule is called with 2 arguments, the model and its index, and takes (m, u, v) "
        "(missing a required argument: 'v'); write it as a function of all of them.",
    ),
    "where is no function": (
        lambda m: {"rule": lambda m, u: m.x * u <= 1, "where": True},
        "SemiInfiniteConstraint: where= must be a function of the model and the index (got bool).",
    ),
}


@pytest.mark.parametrize("case", DECLARATIONS)
def test_bad_declarations(case):
    keywords, text = DECLARATIONS[case]
    m = many_kinds()
    before = snapshot(m)
    with pytest.raises(errors.DeclarationError) as error:
        m.bad = SemiInfiniteConstraint(m.u, **keywords(m))
    assert str(error.value) == text
    assert snapshot(m) == before


def test_one_of_two_indices_is_idle():
    m = many_kinds()
    with pytest.raises(errors.DeclarationError) as error:
        m.bad = SemiInfiniteConstraint(m.u, m.v, rule=lambda m, u, v: m.x * u <= 1)
    assert str(error.value) == (
        "SemiInfiniteConstraint 'bad': the index 'v' appears nowhere in the row, so the row is the same at every "
        "point; use it, or leave it out of the declaration."
    )


def test_an_index_without_an_interval():
    m = many_kinds()
    with pytest.raises(errors.DeclarationError) as error:
        m.bad = SemiInfiniteConstraint(pyo.RangeSet(1, 1, 0), rule=lambda m, u: m.x * u <= 1)
    assert str(error.value) == (
        "SemiInfiniteConstraint: it needs a continuous index, a ContinuousSet(bounds=(a, b)), RangeSet(a, b, 0) with a < b, or an "
        "uncertainty set of PyROS; over ordinary sets alone an ordinary Constraint says the same."
    )
    with pytest.raises(ValueError) as reversed_bounds:
        m.w = pyo.RangeSet(1, 0, 0)
    assert str(reversed_bounds.value) == "NumericRange: start must be <= end for continuous ranges (got 1..0)"
    with pytest.raises(errors.DomainError) as domain:
        Domain.box(u=(1, 0))
    assert str(domain.value) == (
        "Index 'u': its bounds [1, 0] hold no interval; the lower bound must be below the upper one."
    )


def test_a_param_without_a_value():
    m = many_kinds()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.p * m.x * u >= 1)
    before = snapshot(m)
    with pytest.raises(errors.DataError) as error:
        osilp.solve(m)
    assert str(error.value) == "SemiInfiniteConstraint 'row': 'p' has no value; give it one before solving."
    assert snapshot(m) == before


NOT_LINEAR = {
    "product": (lambda m, u: m.x * m.y[1] * u <= 1, "x*y[1]"),
    "square": (lambda m, u: u * m.x**2 <= 1, "x**2"),
    "function": (lambda m, u: m.y[1] + pyo.exp(u * m.x) <= 1, "exp(u*x)"),
    "quotient": (lambda m, u: u / m.x <= 1, "u/x"),
    "absolute": (lambda m, u: abs(m.x - u) <= 1, "abs(x - u)"),
}


@pytest.mark.parametrize("case", NOT_LINEAR)
def test_terms_that_are_not_linear_are_shown(case):
    rule, term = NOT_LINEAR[case]
    m = many_kinds()
    m.row = SemiInfiniteConstraint(m.u, rule=rule)
    with pytest.raises(errors.NotLinearError) as error:
        pyo.TransformationFactory("osilp.discretize").apply_to(m)
    assert str(error.value) == (
        f"SemiInfiniteConstraint 'row': it is not linear in the variables (found {term}); only linear rows and "
        "objectives can be used here. Keep products and nonlinear functions of Vars out of it; convex ones are solved "
        "by osilp.solve(model), and if they belong to arrivals by compile_online(model, stages=...)."
    )


def test_a_variable_over_the_continuous_index():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.z = pyo.Var(m.u)
    m.cost = pyo.Objective(expr=m.z[0])
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.z[0] * u >= 1)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "SemiInfiniteConstraint 'row': the variable 'z' is indexed by the continuous set 'u'; a decision that is a "
        "function of the index is declared as osilp.FunctionVar(over=..., basis=...), and written as m.curve(u)."
    )


def test_assignments_and_added_families():
    m = two_families()
    with pytest.raises(errors.DeclarationError) as assigned:
        m.cap["a"] = m.x["a"] <= 1
    assert str(assigned.value) == (
        "SemiInfiniteConstraint 'cap[a]': it cannot be assigned an expression, because an expression has no index; "
        "declare it anew with a rule."
    )
    with pytest.raises(errors.DeclarationError) as added:
        m.cap.add("a", m.x["a"] <= 1)
    assert str(added.value) == (
        "SemiInfiniteConstraint 'cap': families cannot be added one by one; declare it anew with a rule."
    )


def test_several_objectives():
    m = many_kinds()
    m.second = pyo.Objective(expr=-m.x)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == "The model has 2 active objectives (cost, second); deactivate all but one."


def test_a_component_that_is_no_linear_programming():
    m = many_kinds()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u)
    m.sos = pyo.SOSConstraint(var=m.y, sos=1)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "SOSConstraint 'sos': the model holds an active SOSConstraint, which is not linear programming; transform or "
        "deactivate it."
    )


def test_every_error_is_in_the_tree():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    ours = [kind for kind in kinds if not issubclass(kind, Warning)]
    assert all(issubclass(kind, errors.OsilpError) for kind in ours)
    assert all(kind.__name__ in errors.__doc__ for kind in ours)


def test_a_decorator_may_give_arguments_of_its_own():
    def scaled(rule):
        @functools.wraps(rule)
        def called(m, u):
            return rule(m, u, 2.0)

        return called

    m = many_kinds()

    @scaled
    def rule(m, u, scale):
        return m.x >= scale * u

    m.row = SemiInfiniteConstraint(m.u, rule=rule)
    assert osilp.solve(m).values["x"] == pytest.approx(2.0)


def test_a_rule_that_names_its_model_still_solves_in_a_clone():
    m = one_variable((0, 1000))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda _, u: (1 + u) * m.x <= 10)
    other = m.clone()
    assert solved(other).objective == pytest.approx(5.0)
    assert other.x.value == pytest.approx(5.0)
    assert m.x.value is None


def test_a_sampled_rule_that_names_its_model_is_refused_in_a_clone():
    m = one_variable((0, 1000))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda _, u: (1 + u) * m.x <= 10, sample=True)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m.clone())
    assert str(error.value) == (
        "SemiInfiniteConstraint 'row': the variable 'x' does not belong to an active block of the model."
    )


@pytest.mark.parametrize("sample", [False, True])
def test_a_rule_that_skips_a_part_of_the_index(sample):
    m = one_variable((0, 1000))
    with pytest.raises(errors.DeclarationError) as error:
        m.row = SemiInfiniteConstraint(
            m.u, rule=lambda m, u: pyo.Constraint.Skip if u < 0.5 else m.x * (1 + u) <= 5, sample=sample
        )
    assert str(error.value) == (
        "SemiInfiniteConstraint 'row': its rule returns Constraint.Skip at some points of the index and a row at others; "
        "say where the row holds by where=..."
    )


def test_a_trace_that_is_wrong_on_half_of_the_index_is_found_out():
    def rule(m, u):
        try:
            factor = 4 if u > 0.5 else 2
        except Exception:
            factor = 2
        return m.x * factor * (1 + u) <= 5

    m = one_variable((0, 1000))
    m.row = SemiInfiniteConstraint(m.u, rule=rule)
    with pytest.warns(errors.SamplingWarning):
        result = osilp.solve(m)
    assert result.objective == pytest.approx(0.625)


def test_tiny_coefficients_that_change_are_seen():
    m = one_variable((0, None))
    m.eps = pyo.Param(mutable=True, initialize=1e-11)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * pyo.value(m.eps) * (1 + u) <= 1)
    m.eps = 5e-11
    with pytest.warns(errors.ChangedRuleWarning):
        assert solved(m).objective == pytest.approx(1e10)


@pytest.mark.parametrize("holes", [lambda: pyo.RangeSet(0, 1, 0) | pyo.RangeSet(3, 4, 0), lambda: pyo.Any])
def test_an_index_with_holes(holes):
    m = one_variable((0, 1000))
    m.v = pyo.Set(initialize=[1]) if holes() is pyo.Any else holes()
    index = pyo.Any if holes() is pyo.Any else m.v
    with pytest.raises(errors.DeclarationError) as error:
        m.row = SemiInfiniteConstraint(index, rule=lambda m, u: m.x <= u)
    assert str(error.value) == (
        f"SemiInfiniteConstraint: the set '{index.name}' is neither finite nor one interval; give an interval, with 'where' "
        "for a part of it, or one constraint for each piece."
    )


def test_derivatives_and_rows_over_an_undiscretized_set():
    m = one_variable((0, 1000))
    m.z = pyo.Var(m.u)
    m.dz = DerivativeVar(m.z, wrt=m.u)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= 1 + u)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "DerivativeVar 'dz': its derivative is not discretized, so that it would be a free variable; discretize it with "
        "pyomo.dae first."
    )
    m = one_variable((0, 1000))
    m.ordinary = pyo.Constraint(m.u, rule=lambda m, u: m.x * (1 + u) <= 5)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= 9 + u)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "Constraint 'ordinary': it is indexed by the continuous set 'u', of which it sees 2 points only; declare it as a "
        "SemiInfiniteConstraint, or discretize it with pyomo.dae first."
    )


def test_infinite_limits_are_no_limits():
    m = one_variable((0, 1000))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: (-float("inf"), m.x * (1 + u), 5))
    assert solved(m).objective == pytest.approx(2.5)


def test_an_empty_expression_and_a_word_for_a_number():
    m = one_variable((0, 1000))
    m.e = pyo.Expression()
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * u + m.e <= 5)
    with pytest.warns(errors.SamplingWarning), pytest.raises(errors.DataError):
        osilp.solve(m)
    m = one_variable((0, 1000))
    m.p = pyo.Param(mutable=True, within=pyo.Any, initialize="a")
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * (m.p + u) <= 5)
    with pytest.raises(errors.DataError) as error:
        osilp.solve(m)
    assert str(error.value) == "SemiInfiniteConstraint 'row': 'p' is 'a', which is not a number."


def test_models_without_variables():
    m = pyo.ConcreteModel()
    assert osilp.solve(m).status == "optimal"
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(None)
    assert str(error.value) == "solve: expected a Pyomo model or one of its blocks (got NoneType)."


def test_a_variable_over_the_index_is_refused_by_name():
    m = one_variable((0, 1000))
    m.z = pyo.Var(m.u)
    with pytest.raises(errors.DeclarationError) as error:
        m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.z[u] <= 1 + u)
    assert str(error.value) == (
        "SemiInfiniteConstraint 'row': the variable 'z' is indexed by the continuous index; a decision that is a function "
        "of the index is declared as osilp.FunctionVar(over=..., basis=...), and written as m.curve(u)."
    )


def test_suffixes_do_not_keep_old_numbers():
    m = one_variable((0, 1000))
    m.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x <= 9 + u)
    m.total = pyo.Constraint(expr=m.x <= 3)
    solved(m)
    assert m.dual[m.total] == pytest.approx(1.0)
    m.total.deactivate()
    solved(m)
    assert m.total not in m.dual


def test_conditions_with_mutable_params():
    m = one_variable((0, 1000))
    m.cut = pyo.Param(mutable=True, initialize=0.4)
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * (1 + u) <= 5, where=lambda m, u: u <= m.cut)
    assert solved(m).objective == pytest.approx(5 / 1.4)


def test_a_rule_with_moods():
    random = np.random.default_rng(0)
    m = one_variable((0, 1000))
    m.row = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x * (1 + random.uniform()) <= 5 + u, sample=True)
    with pytest.raises(errors.ModelError) as error:
        osilp.solve(m)
    assert str(error.value).startswith(
        "SemiInfiniteConstraint 'row': its rule gives different rows when it is called twice at u = 0."
    )


def test_blocks_can_be_solved_on_their_own():
    m = one_variable((0, 1000))
    m.b = pyo.Block()
    m.b.y = pyo.Var()
    m.b.gain = pyo.Objective(expr=m.b.y, sense=pyo.maximize)
    m.b.row = SemiInfiniteConstraint(m.u, rule=lambda b, u: b.y * (1 + u) <= 5)
    result = solved(m.b)
    m.b.y.set_value(None)
    result.load(m.b)
    assert m.b.y.value == pytest.approx(2.5)


def test_a_limit_that_only_the_trace_has_is_found_out():
    m = one_variable((0, 9))
    m.x.setlb(-9)
    m.gain.sense = pyo.minimize
    m.row = SemiInfiniteConstraint(
        m.u, rule=lambda m, u: m.x <= 1 + u if isinstance(u, float) else pyo.inequality(-1 - u, m.x, 1 + u)
    )
    with pytest.warns(errors.SamplingWarning, match="the trace limits the row on a side that the rule leaves open"):
        assert osilp.solve(m).objective == pytest.approx(-9.0)


def test_the_end_of_an_index_is_not_overshot_where_a_rule_is_tried():
    """-0.6 + (0.42 - -0.6) is above 0.42 by its rounding."""
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(-0.6, 0.42)), ContinuousSet(bounds=(0, 1))
    m.p = osilp.Profile(over=m.u, points=[-0.6, 0.42], initialize=[1.0, 2.0])
    m.x = pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    m.c = SemiInfiniteConstraint(m.u, m.v, rule=lambda m, u, v: m.x >= m.p(u) + v, where=lambda m, u, v: u + v >= 1.419)
    assert osilp.solve(m, progress=False).objective == pytest.approx(3.0)


def restricted(where, low=0.0):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(low, 1))
    m.x = pyo.Var()
    m.p = pyo.Param(mutable=True)
    m.o = pyo.Objective(expr=m.x)
    m.c = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u, where=where)
    return m


@pytest.mark.parametrize(
    ("where", "low", "highest"),
    [
        (lambda m, u: pyo.log(u) >= -1, 0.0, 1.0),
        (lambda m, u: pyo.log(u) <= -1, -1.0, np.exp(-1.0)),
        (lambda m, u: pyo.sqrt(u - 0.5) <= 0.1, 0.0, 0.51),
        (lambda m, u: u**0.5 <= 0.5, -1.0, 0.25),
        (lambda m, u: 1 / u >= 2, 0.0, 0.5),
        (lambda m, u: np.sqrt(u - 0.5) <= 0.1, 0.0, 0.51),
        (lambda m, u: bool(pyo.sqrt(u - 0.5) <= 0.1) and u >= 0.2, 0.0, 0.51),
    ],
)
def test_points_where_a_condition_is_not_defined_lie_outside(where, low, highest):
    result = osilp.solve(restricted(where, low), progress=False)
    assert result.objective == pytest.approx(highest, abs=1e-6)


def fails_for_small_numbers(m, u):
    return {True: u <= 0.7}[u >= 0.1]


@pytest.mark.parametrize(
    ("where", "kind", "sentence"),
    [
        (
            lambda m, u: u <= m.p,
            errors.DataError,
            "SemiInfiniteConstraint 'c': where= holds 'p', which has no value; give it one before solving.",
        ),
        (
            lambda m, u: u <= pyo.value(m.p),
            errors.ModelError,
            "SemiInfiniteConstraint 'c': where= raises ValueError at u = {} (Error evaluating Param value (p):); it must "
            "say true or false at every point of the index.",
        ),
        (
            lambda m: True,
            errors.ModelError,
            "SemiInfiniteConstraint 'c': where= must take 2 arguments, the model and the members of its index, as its rule "
            "does (too many positional arguments); it is <lambda>(m).",
        ),
        (
            lambda m, u, v: True,
            errors.ModelError,
            "SemiInfiniteConstraint 'c': where= must take 2 arguments, the model and the members of its index, as its rule "
            "does (missing a required argument: 'v'); it is <lambda>(m, u, v).",
        ),
        (
            fails_for_small_numbers,
            errors.ModelError,
            "SemiInfiniteConstraint 'c': where= raises KeyError at u = {} (False); it must say true or false at every "
            "point of the index.",
        ),
        (
            lambda m, u: "yes",
            errors.ModelError,
            "SemiInfiniteConstraint 'c': where= must return true or false for numbers (got str_).",
        ),
    ],
    ids=["param", "param by value", "few arguments", "many arguments", "other error", "text"],
)
def test_conditions_that_cannot_be_asked_are_told_in_words(where, kind, sentence, caplog):
    m = restricted(where)
    with pytest.raises(kind) as error:
        osilp.solve(m, progress=False)
    told = str(error.value)
    place = told.split(" at u = ")[-1].split(" ")[0] if " at u = " in told else ""
    assert told == sentence.format(place)


def test_the_message_of_an_empty_region_speaks_of_the_users_index():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    m.c = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= 2 / (1 + u), where=lambda m, u: u <= -1)
    with pytest.raises(errors.DomainError) as error:
        osilp.solve(m)
    assert str(error.value) == (
        "Index u in [0, inf) where declared: no point was found where the 'where' condition is true; a set without "
        "interior needs other coordinates, an empty one no constraint."
    )


def test_a_region_far_out_on_an_index_without_end_is_found():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var()
    m.o = pyo.Objective(expr=m.x)
    m.c = SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= 2e12 / u, where=lambda m, u: u >= 1e12)
    assert osilp.solve(m, progress=False).objective == pytest.approx(2.0)
