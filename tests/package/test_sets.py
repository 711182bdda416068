"""Sets from data: the guarantee tried out, membership by scores, laws of units and rows, and a model solved over each."""

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from pyomo.contrib.pyros import BoxSet, CardinalitySet, EllipsoidalSet, PolyhedralSet
from scipy.stats import beta, binom

import osilp_pyomo as osilp
from osilp_pyomo import errors, sets
from osilp_pyomo.model.sets import body_of

KINDS = {"box": BoxSet, "ellipsoid": EllipsoidalSet, "budget": CardinalitySet, "polyhedron": PolyhedralSet}
MIX = np.array([[1.0, 0.0, 0.0], [0.8, 0.5, 0.0], [-0.3, 0.2, 1.0]])


def rounded(rng, count):
    """Ties: many rows are the same, and more than half of the last column is zero."""
    return np.column_stack([rng.poisson(2, count), rng.integers(0, 4, count), rng.poisson(0.3, count)]).astype(float)


DRAWS = {
    "normal": lambda rng, count: rng.normal(size=(count, 3)) @ MIX.T + 5,
    "skewed": lambda rng, count: np.exp(rng.normal(size=(count, 3)) @ MIX.T),
    "heavy tails": lambda rng, count: rng.standard_t(1, size=(count, 3)) @ MIX.T,
    "ties": rounded,
    "two clusters": lambda rng, count: rng.normal(size=(count, 3)) + 8 * rng.integers(0, 2, (count, 1)),
}


def normal(count, seed=0):
    return DRAWS["normal"](np.random.default_rng(seed), count)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("law", DRAWS)
def test_the_guarantee_holds_as_often_as_it_says(law, kind):
    """The probability held is that of 40,000 draws that no set has seen; the set may miss it in a tenth of all cases."""
    coverage, confidence, repetitions = 0.85, 0.9, 200
    rng = np.random.default_rng(7)
    fresh = DRAWS[law](rng, 40_000)
    missed = 0
    for seed in range(repetitions):
        held = sets.from_data(DRAWS[law](rng, 120), coverage, kind, confidence=confidence, seed=seed)
        missed += body_of(held, "test").contains(fresh).mean() < coverage
    risk = 1 - confidence
    assert missed / repetitions <= risk + 3 * np.sqrt(risk * (1 - risk) / repetitions)


@pytest.mark.parametrize(("rows", "coverage", "confidence"), [(59, 0.95, 0.95), (200, 0.9, 0.99), (40, 0.5, 0.6)])
def test_the_size_is_the_smallest_that_is_enough(rows, coverage, confidence):
    """As many rows inside as the definition says, and one fewer would be too few."""
    held = sets.from_data(normal(2 * rows), coverage, confidence=confidence, seed=3)
    sizing = normal(2 * rows)[np.random.default_rng(3).permutation(2 * rows)[rows:]]
    rank = round(sets.check(held, sizing).share * rows)
    assert binom.sf(rank - 1, rows, coverage) <= 1 - confidence < binom.sf(rank - 2, rows, coverage)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_the_set_of_pyros(kind):
    held = sets.from_data(normal(300), kind=kind)
    assert type(held) is KINDS[kind]
    assert held.dim == 3
    assert 0.95 < sets.check(held, normal(5000, seed=1)).share < 1


def test_a_budget_is_smaller_than_its_box():
    held = sets.from_data(normal(300), kind="budget")
    assert 1 < held.gamma < 3
    corner = held.origin + held.positive_deviation
    assert sets.check(held, corner[None]).outside == (0,)


def test_a_polyhedron_follows_what_moves_together():
    one = np.random.default_rng(0).normal(size=(300, 1))
    rows = np.hstack([one, one + 0.1 * np.random.default_rng(1).normal(size=(300, 1))])
    for kind, outside in (("polyhedron", (0,)), ("ellipsoid", (0,)), ("box", ())):
        assert sets.check(sets.from_data(rows, kind=kind), [[1.5, -1.5]]).outside == outside


def split(rows, seed):
    order = np.random.default_rng(seed).permutation(len(rows))
    return order[: len(rows) // 2], order[len(rows) // 2 :]


def shown(held):
    """Its farthest points in many directions, which tell a convex set."""
    body = body_of(held, "test")
    directions = np.random.default_rng(5).normal(size=(50, body.dimension))
    return np.sum(directions * body.support(directions), axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_matters_through_the_split_only(kind):
    rows, rng = normal(200), np.random.default_rng(8)
    shaping, sizing = split(rows, seed=4)
    other = rows.copy()
    other[shaping], other[sizing] = rows[rng.permutation(shaping)], rows[rng.permutation(sizing)]
    expected = shown(sets.from_data(rows, kind=kind, seed=4))
    np.testing.assert_allclose(shown(sets.from_data(other, kind=kind, seed=4)), expected, rtol=1e-9)
    np.testing.assert_array_equal(shown(sets.from_data(pd.DataFrame(rows), kind=kind, seed=4)), expected)
    assert not np.allclose(shown(sets.from_data(rows, kind=kind, seed=5)), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_units_do_not_matter(kind):
    rows, fresh = normal(200), normal(2000, seed=1)
    units, zero = np.array([1e-3, 2.0, 1e5]), np.array([0.0, -4.0, 1e5])
    outside = sets.check(sets.from_data(rows, kind=kind), fresh).outside
    assert outside
    assert sets.check(sets.from_data(rows * units + zero, kind=kind), fresh * units + zero).outside == outside


@pytest.mark.parametrize("kind", ["box", "budget", "polyhedron"])
def test_a_constant_column_has_no_width(kind):
    rows = np.column_stack([normal(200)[:, :2], np.full(200, 0.1)])
    body = body_of(sets.from_data(rows, kind=kind), "test")
    assert body.lower[2] == body.upper[2] == pytest.approx(0.1)
    inside, outside = np.median(rows, axis=0), np.median(rows, axis=0) + np.array([0, 0, 0.01])
    np.testing.assert_array_equal(body.contains(np.array([inside, outside])), [True, False])


@pytest.mark.parametrize("kind", ["box", "budget", "polyhedron"])
@pytest.mark.parametrize("columns", [1, 2])
def test_data_without_any_spread_are_a_point(kind, columns):
    held = sets.from_data(np.full((200, columns), 3.0), kind=kind)
    assert sets.check(held, np.array([[3.0] * columns, [3.001] * columns])).outside == (1,)


@pytest.mark.parametrize("kind", KINDS)
def test_one_number_for_all_but_a_few_is_the_point(kind):
    """The score that sizes the set is zero: nine in ten rows are the same."""
    rows = np.where(np.arange(400)[:, None] % 10 == 0, normal(400), 7.0)
    if kind == "ellipsoid":  # around the mean, where no row lies
        assert sets.check(sets.from_data(rows, 0.5, kind), [[7.0] * 3]).outside == ()
    else:
        np.testing.assert_allclose(shown(sets.from_data(rows, 0.5, kind)), shown(BoxSet([(7, 7)] * 3)), atol=1e-12)


def test_rows_that_are_rarely_apart_from_a_constant_may_be_left_out():
    """Constant in the half that shapes the box, moved in one row of the other half, which the coverage can spare."""
    rows = np.column_stack([normal(400)[:, 0], np.zeros(400)])
    rows[split(rows, 0)[1][0], 1] = 1.0
    assert sets.from_data(rows, 0.9).bounds[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", ["ellipsoid", "polyhedron"])
@pytest.mark.parametrize(
    "rows",
    [np.column_stack([normal(400), normal(400).sum(axis=1)]), np.random.default_rng(2).normal(size=(160, 100))],
    ids=["dependent columns", "fewer rows than columns"],
)
def test_singular_data_have_a_set_all_the_same(rows, kind):
    held = sets.from_data(rows, 0.9, kind)
    # Rows that shaped it need not be inside; those that sized it are.
    assert sets.check(held, rows[split(rows, 0)[1]]).share >= 0.9
    body = body_of(held, "test")
    assert np.all(body.upper - body.lower < 30 * rows.std(axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_over_each_kind_keeps_what_it_promises(kind):
    """The least stock that meets a demand of three parts: the worst sum over the set, met by as many draws as said."""
    rows = DRAWS["skewed"](np.random.default_rng(1), 300)
    held = sets.from_data(rows, 0.9, kind)
    m = pyo.ConcreteModel()
    m.stock = pyo.Var(bounds=(-1e6, 1e6))
    m.o = pyo.Objective(expr=m.stock)
    m.met = osilp.SemiInfiniteConstraint(held, rule=lambda m, xi: m.stock >= xi[0] + 2 * xi[1] - xi[2])
    result = osilp.solve(m)
    worst = body_of(held, "test").support(np.array([[1.0, 2.0, -1.0]]))[0]
    assert result.certified
    assert result.objective == pytest.approx(worst @ [1, 2, -1], rel=1e-6)
    fresh = DRAWS["skewed"](np.random.default_rng(2), 5000)
    assert np.mean(fresh @ [1, 2, -1] <= result.objective) >= 0.9


def test_check_counts_and_names_the_rows_outside():
    frame = pd.DataFrame({"a": [0.0, 0.5, 2.0, 1.0], "b": [0, 1, 0, 1]}, index=list("wxyz"))
    held = sets.check(BoxSet([(0, 1), (0, 1)]), frame, confidence=0.9)
    assert held[:1] + held[3:] == (0.75, 4, ("y",), 0.9)
    assert held[1:3] == pytest.approx((beta.ppf(0.05, 3, 2), beta.ppf(0.95, 4, 1)))
    assert str(held) == "75.0 % of 4 rows inside (24.9 % to 98.7 % with confidence 0.9), 1 outside"
    assert sets.check(BoxSet([(0, 1)]), [0.5, 0.7]).share == 1.0


@pytest.mark.parametrize(
    "rows",
    [normal(200).tolist(), pd.DataFrame(normal(200)).astype("Float64"), pd.DataFrame(normal(200), columns=list("aab"))],
    ids=["lists", "nullable", "names twice"],
)
def test_other_ways_to_give_rows(rows):
    np.testing.assert_array_equal(sets.from_data(rows).bounds, sets.from_data(normal(200)).bounds)


FRAME = pd.DataFrame(normal(200), columns=["a", "b", "c"])
MOVED = FRAME.assign(c=np.where(np.isin(np.arange(200), split(FRAME, 0)[1]), FRAME.c, 4.0))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda: sets.from_data(FRAME[:100]),
            "from_data: a coverage of 0.95 with confidence 0.95 needs at least 59 rows to size the set and 2 to shape it, which is 117 in all with fit=0.5 (got 50 and 50, 100 in all); give more rows, another fit, or ask for less.",
        ),
        (
            lambda: sets.from_data(FRAME, 0.5, fit=0.005),
            "from_data: a coverage of 0.5 with confidence 0.95 needs at least 5 rows to size the set and 2 to shape it, which is 400 in all with fit=0.005 (got 199 and 1, 200 in all); give more rows, another fit, or ask for less.",
        ),
        (
            lambda: sets.from_data(FRAME, 1.0),
            "from_data: coverage must be a number between 0 and 1, without these (got 1.0).",
        ),
        (
            lambda: sets.from_data(FRAME, confidence="high"),
            "from_data: confidence must be a number between 0 and 1, without these (got 'high').",
        ),
        (
            lambda: sets.from_data(FRAME, fit=0),
            "from_data: fit must be a number between 0 and 1, without these (got 0).",
        ),
        (
            lambda: sets.from_data(FRAME, 0.9, "ball"),
            "from_data: kind must be one of 'box', 'ellipsoid', 'budget', 'polyhedron' (got 'ball').",
        ),
        (lambda: sets.from_data(FRAME, seed=-1), "from_data: seed must be a whole number >= 0 (got -1)."),
        (
            lambda: sets.from_data(FRAME.assign(b=FRAME.b.where(FRAME.index != 7))),
            "from_data: column 'b' must hold finite numbers, at most 1e+100 (got nan in row 7; 1 such in all).",
        ),
        (
            lambda: sets.from_data(np.where(np.arange(200)[:, None] > 197, np.inf, FRAME)),
            "from_data: column 0 must hold finite numbers, at most 1e+100 (got inf in row 198; 2 such in all).",
        ),
        (
            lambda: sets.from_data(FRAME.assign(b=pd.Series(["1.5"] * 200, dtype=object))),
            "from_data: column 'b' must hold numbers (got values of type object).",
        ),
        (
            lambda: sets.from_data([[1.0, 2.0], [3.0]]),
            "from_data: the data must be a frame or rows of numbers (setting an array element with a sequence. The requested array has an inhomogeneous shape after 1 dimensions. The detected shape was (2,) + inhomogeneous part.).",
        ),
        (lambda: sets.from_data(3.0), "from_data: the data must be a frame or rows of numbers (got shape ())."),
        (lambda: sets.from_data(FRAME[:0]), "from_data: the data must have rows and columns (got shape (0, 3))."),
        (
            lambda: sets.from_data(FRAME.assign(b=1.0), kind="ellipsoid"),
            "from_data: an ellipsoid has a width on every side, but column 'b' is constant in the 100 rows that shape it; leave out what is constant, or choose another kind.",
        ),
        (
            lambda: sets.from_data(MOVED),
            "from_data: column 'c' is constant in the 100 rows that shape the set, but too often not in the 100 rows that size it, which no size makes up for; give more rows, or a larger fit.",
        ),
        (
            lambda: sets.check([(0, 1)], FRAME),
            "check: the set must be an uncertainty set of PyROS (got [(0, 1)]).",
        ),
        (
            lambda: sets.check(BoxSet([(0, 1)]), FRAME),
            "check: the rows must have a column for each of the 1 dimensions of the set (got 3 columns).",
        ),
        (
            lambda: sets.check(BoxSet([(0, 1), (1e9, 1e9 + 1)]), FRAME[["a", "b"]]),
            "check: side 1 of the set must be wider than 1e-05 times the size of its numbers, at least 1, for rows to be told apart (got a width of 1 around 1e+09); subtract an offset, or choose smaller units.",
        ),
        (
            lambda: sets.check(BoxSet([(0, 1)]), [0.5], confidence=2),
            "check: confidence must be a number between 0 and 1, without these (got 2).",
        ),
    ],
)
def test_refusals(make, why):
    with pytest.raises(errors.OptionError) as error:
        make()
    assert str(error.value) == why
