"""Proofs: what is called certified is true, and what is not true is never called proved."""

import math
import re

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from drawn_formulas import AXES as _AXES
from drawn_formulas import random_formula
from optima import PROBLEMS
from proof_models import BODIES, KINDS, random_row, random_row_over_body
from pyomo.core.expr.numeric_expr import MaxExpression
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.errors import AccuracyWarning, DeclarationError, ModelError, OptionError
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.index.enclosures.enclosure import Opening, coordinates
from osilp_pyomo.index.formula import Formula, kernel_of
from osilp_pyomo.model.trace import trace_model
from osilp_pyomo.offline.prepare import Compactification, compactify, reach
from osilp_pyomo.offline.proof.branch import BranchAndBound, Budget
from osilp_pyomo.offline.proof.certify import _excess, prove_by_enclosures
from osilp_pyomo.offline.proof.enclosed_row import EnclosedRow
from osilp_pyomo.offline.rows import TracedRows
from osilp_pyomo.offline.search.choose import searches_for

# -- enclosures -------------------------------------------------------------------------------------


def spread(pair, boxes):
    return [np.broadcast_to(end, (1, boxes))[0] for end in pair]


@pytest.mark.parametrize("seed", range(4))
def test_no_value_lies_outside_of_its_enclosure(seed):
    """Values, tangents of the first order and of the second, at random points of boxes of all sizes."""
    rng = np.random.default_rng(seed)
    boxes, looked_at = 24, 0
    for _ in range(150):
        shape, literals = random_formula(int(rng.integers(1, 5)), rng)
        formula = Formula(tuple(shape), tuple(literals))
        kernel = kernel_of(formula.source([])[0])
        middle = rng.uniform(-1, 1, (_AXES, boxes))
        width = 10.0 ** rng.uniform(-6, 0.3, boxes)
        low, high = middle - width * rng.random((_AXES, boxes)), middle + width * rng.random((_AXES, boxes))
        opening = Opening(_AXES)
        with np.errstate(all="ignore"):
            found = formula.enclose([], coordinates(low, high), opening)
            centre = (low + high) / 2
            thin = formula.enclose([], coordinates(centre, centre), Opening(_AXES, 1, replay=opening))
        rest = spread(found.rest or (np.zeros(1), np.zeros(1)), boxes)
        for corner in (True, False, False, False):
            share = rng.random((_AXES, boxes))
            u = np.clip(low + (high - low) * (np.round(share) if corner else share), low, high)
            with np.errstate(all="ignore"):
                true = np.broadcast_to(np.asarray(kernel([], [u[:1], u[1:]]), float), (1, boxes))[0]
                at_centre = np.broadcast_to(np.asarray(kernel([], [centre[:1], centre[1:]]), float), (1, boxes))[0]
                first = [at_centre.copy(), at_centre.copy()]
                second = [end + more for end, more in zip(spread(thin.base, boxes), rest, strict=True)]
                for total, slopes in ((first, found.slopes), (second, thin.base_slopes)):
                    for axis, slope in slopes.items():
                        moved = [end * (u[axis] - centre[axis]) for end in spread(slope, boxes)]
                        total[0] = total[0] + np.minimum(*moved)
                        total[1] = total[1] + np.maximum(*moved)
                for (i, j), bend in found.bends.items():
                    product = (u[i] - centre[i]) * (u[j] - centre[j]) * (0.5 if i == j else 1.0)
                    moved = [end * product for end in spread(bend, boxes)]
                    second = [second[0] + np.minimum(*moved), second[1] + np.maximum(*moved)]
            slack = 1e-12 * (1 + np.abs(true))
            for least, most in (spread(found.value, boxes), first, second):
                outside = (true < least - slack) | (true > most + slack)
                assert not np.any(outside & np.isfinite(true)), formula
                looked_at += boxes
    assert looked_at == 150 * 4 * 3 * boxes


# -- random rows ------------------------------------------------------------------------------------


def checked(kind, dimension, rng):
    """Solve a random row; whether it is certified, after a look at whether that is true."""
    row = random_row(kind, dimension, rng)
    true = row.highest(rng)
    result = osilp.solve(row.model(), progress=False)
    if result.certified:
        assert true - result.objective <= 1e-6 * (1 + abs(true)), (kind, dimension)
        assert result.proof["largest"].max() <= 1e-5
    return result.certified


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_certified_rows_hold_and_most_rows_are_certified(kind, dimension):
    rng = np.random.default_rng([dimension, KINDS.index(kind)])
    count = {1: 6, 2: 4, 3: 2}[dimension]
    certified = sum(checked(kind, dimension, rng) for _ in range(count))
    assert certified >= 0.5 * count


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_rows_over_uncertainty_sets_hold_and_most_are_certified(body, dimension):
    rng = np.random.default_rng([4, dimension, BODIES.index(body)])
    certified = []
    for kind in ("smooth", "kinks", "jump", "minimum"):
        row, true = random_row_over_body(kind, body, dimension, rng)
        result = osilp.solve(row.model(), progress=False)
        certified.append(result.certified)
        if result.certified:
            assert true - result.objective <= 1e-6 * (1 + abs(true)), kind
    assert np.mean(certified) >= 0.5


@pytest.mark.long
def test_how_many_random_rows_are_certified():
    rng = np.random.default_rng(11)
    for dimension, count, least in ((1, 12, 0.95), (2, 6, 0.9), (3, 2, 0.7), (4, 1, 0.7)):
        found = [checked(kind, dimension, rng) for kind in KINDS for _ in range(count)]
        assert np.mean(found) >= least, dimension


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_a_row_that_is_violated_is_never_proved(kind, dimension):
    """Negative control: x a little below the highest point that is known."""
    rng = np.random.default_rng([7, dimension, KINDS.index(kind)])
    for _ in range(4 if dimension < 3 else 2):
        row = random_row(kind, dimension, rng)
        true = row.highest(rng)
        (family,) = trace_model(row.model()).problem.families
        proof = prove_by_enclosures(family, np.array([true - 4e-6 * (1 + abs(true))]), Budget(3e6))
        assert not proof.proved
        assert proof.violated is not None or proof.open_at is not None


def controlled(known):
    """How a proof ends with the tolerance just below the largest value that a search found, for each side of each row."""
    model = known.build()
    result = osilp.solve(model, proof=False, progress=False)
    x = result.values.to_numpy()
    for family in trace_model(model).problem.families:
        if not isinstance(family.rows, TracedRows):
            continue
        compact = compactify(family)
        (search,) = searches_for([compact])
        points = compact.user_points(search.worst(x).points)
        far = reach(family)
        low, high = np.maximum(family.domain.lower, -far), np.minimum(family.domain.upper, far)
        for side, limit in ((1.0, family.rows.upper), (-1.0, family.rows.lower)):
            if limit is None:
                continue
            values = _excess(family, x, side)
            highest = float(values(points).max())
            size = 1 + abs(highest)
            row, tolerance = EnclosedRow(family, x, side), (highest - 1e-7 * size) / size
            yield BranchAndBound(row, low, high, size, tolerance, tolerance, values, Budget(3e5)).run()


@pytest.mark.parametrize(
    "known", [known for known in PROBLEMS if known.optimum is not None], ids=lambda known: known.name
)
@pytest.mark.long
def test_no_row_of_the_collection_is_proved_below_its_maximum(known):
    for outcome in controlled(known):
        assert not outcome.proved


# -- what was found wrong ---------------------------------------------------------------------------


def smallest(*bounds, rule, where=None, **options):
    """The smallest x above a function of some intervals."""
    m = pyo.ConcreteModel()
    for name, each in zip("uvw", bounds, strict=False):
        m.add_component(name, ContinuousSet(bounds=each))
    m.x = pyo.Var()
    m.height = pyo.Objective(expr=m.x)
    sets = [m.component(name) for name in "uvw"[: len(bounds)]]
    m.above = osilp.SemiInfiniteConstraint(*sets, rule=lambda m, *u: m.x >= rule(*u), where=where)
    return osilp.solve(m, progress=False, **options)


def test_a_jump_across_a_slanted_line():
    result = smallest(
        (0, 1),
        (0, 1),
        rule=lambda u, v: (
            pyo.Expr_if(0.7 * u + 0.9 * v <= 0.72, 1.0, 0.0)
            + 0.7 * u
            + 0.9 * v
            - 0.72
            - (u - 0.45) ** 2
            - (v - 0.45) ** 2
        ),
    )
    assert result.certified
    assert result.objective == pytest.approx(1, abs=2e-8)


def test_a_ridge_along_a_curve():
    result = smallest(
        (0, 1),
        (0, 1),
        rule=lambda u, v: 1 - abs(5 * (u - 0.3) + 3 * (v - 0.6) + (u - 0.3) ** 2) - (u - 0.3) ** 2,
    )
    assert result.certified
    assert result.objective == pytest.approx(1, abs=2e-8)


@pytest.mark.parametrize("width", [1e-3, 1e-5, 1e-7, 1e-9])
def test_a_narrow_peak_is_found(width):
    result = smallest((0, 1), rule=lambda u: pyo.exp(-(((u - 0.123456789) / width) ** 2)) + u / 10)
    assert result.certified
    assert result.objective == pytest.approx(1.0123456789, rel=1e-6)


def test_a_slot_that_is_shorter_than_any_scan():
    result = smallest((0, 1), rule=lambda u: pyo.Expr_if((u - 0.3) ** 2 <= 1e-20, 2, 0))
    assert result.certified
    assert result.objective == 2


def test_a_peak_far_out_on_a_half_line():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var()
    m.height = pyo.Objective(expr=m.x)
    m.above = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= pyo.exp(-((u - 3000) ** 2)))
    result = osilp.solve(m)
    assert result.certified
    assert result.objective == pytest.approx(1, abs=1e-6)


LINE, START, SLOT = (lambda u, v: u + 0.37 * v), 0.613217, 1e-7


def in_slot(u, v):
    return pyo.inequality(START, LINE(u, v), START + SLOT)


def curve(points, values, kind, outside):
    """A Profile over the first index, as ``P`` of the model."""
    return {"points": points, "initialize": values, "kind": kind, "outside": outside}


STEP = curve([0, 0.5, 1], [0, 0, 1], "previous", "clamp")
TURNS = curve([0, 0.1, 1], [0, 1, 0], "linear", "wrap")
SEAM = curve([0, 1], [0, 1], "linear", "wrap")
# Functions, their index, an x below their maximum, and a Profile that they read.
VIOLATED = {
    "a pole": (lambda P, u: 1 / (u - 0.3), [(-1, 1)], 5.0, None),
    "an odd pole": (lambda P, u: (u - 0.3) ** -3, [(-1, 1)], 5.0, None),
    "a condition and its contrary": (
        lambda P, u, v: pyo.Expr_if(in_slot(u, v), 1.0, 0.0) + pyo.Expr_if(pyo.lnot(in_slot(u, v)), -5.0, 0.0),
        [(0, 1), (0, 1)],
        0.5,
        None,
    ),
    "at most and below": (
        lambda P, u, v: pyo.Expr_if(LINE(u, v) <= START, 1.0, 0.0) - pyo.Expr_if(LINE(u, v) < START, 1.0, 0.0),
        [(0, 1), (0, 1)],
        0.5,
        None,
    ),
    "a condition and a part of it": (
        lambda P, u, v: (
            pyo.Expr_if(LINE(u, v) <= START, 1.0, 0.0)
            - pyo.Expr_if(pyo.land(LINE(u, v) <= START, pyo.lor(v <= 0.2, v >= 0.2 + SLOT)), 2.0, 0.0)
        ),
        [(0, 1), (0, 1)],
        0.5,
        None,
    ),
    "the last step of a falling argument": (lambda P, u: P(1 - u), [(0, 1)], 0.5, STEP),
    "the last step of a square": (lambda P, u: P(u**2), [(0, 1)], 0.5, STEP),
    "beyond the last step": (lambda P, u, v: P(u + v) - 100 * abs(u + v - 1), [(0, 1), (0, 1)], 0.5, STEP),
    "a later turn": (lambda P, u: P(u) - 20 * (u - 1.5) ** 2 + u, [(0, 3)], 2.0, TURNS),
    "an earlier turn": (lambda P, u: P(u) - 200 * (u + 1.95) ** 2, [(-3, 0)], 0.4, TURNS),
    "turns in the plane": (lambda P, u, v: P(u + v) - 20 * (u + v - 1.5) ** 2 + u - v, [(0, 2), (0, 2)], 2.0, TURNS),
    "before the seam": (lambda P, u: P(u) + 0.01 * u, [(0, 1.5)], 0.7, SEAM),
    "a wall of one number": (
        lambda P, u, v: MaxExpression((0, 1 - 1e18 * abs(u - 0.5))) * (1 - (v - 0.0637) ** 2 * 90000),
        [(0, 1), (0, 1)],
        0.5,
        None,
    ),
}


@pytest.mark.parametrize("name", VIOLATED)
def test_what_was_proved_wrongly_once(name):
    function, bounds, x, data = VIOLATED[name]
    m = pyo.ConcreteModel()
    for letter, each in zip("uv", bounds, strict=False):
        m.add_component(letter, pyo.RangeSet(*each, 0))
    m.x = pyo.Var()
    m.height = pyo.Objective(expr=m.x)
    read = None
    if data is not None:
        m.P = read = osilp.Profile(over=m.u, **data)
    sets = [m.component(letter) for letter in "uv"[: len(bounds)]]
    m.above = osilp.SemiInfiniteConstraint(*sets, rule=lambda m, *u: m.x >= function(read, *u))
    (family,) = trace_model(m).problem.families
    proof = prove_by_enclosures(family, np.array([x]), Budget(3e6))
    assert not proof.proved


def test_a_condition_inside_of_where():
    result = smallest((0, 1), (0, 1), rule=lambda u, v: u * v, where=lambda m, u, v: pyo.Expr_if(u <= 0.5, u, v) <= 0.9)
    assert result.certified
    assert result.objective == pytest.approx(0.9, abs=1e-7)


STEPPED = {
    "Expr_if": (
        lambda u, v: 0.52 * u + 0.94 * v,
        lambda u, v: pyo.Expr_if(pyo.exp(u) <= 1.9, v - 3 * u, v + u - 1.2) <= 0,
        (math.log(1.9), 1.0),
    ),
    "floor": (lambda u, v: 1.45 * u + 0.175 * v, lambda u, v: pyo.floor(3 * u) + 2 * v <= 1.7, (2 / 3, 0.35)),
    "abs": (lambda u, v: u + v, lambda u, v: abs(u - 0.5) + abs(v - 0.25) <= 0.2, (0.6, 0.35)),
}


@pytest.mark.parametrize("name", STEPPED)
def test_a_region_with_steps_and_kinks(name):
    """The largest value in the region, as near as one likes to a point, and nothing proved below it."""
    function, where, top = STEPPED[name]
    m = pyo.ConcreteModel()
    m.u, m.v = ContinuousSet(bounds=(0, 1)), ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.height = pyo.Objective(expr=m.x)
    m.above = osilp.SemiInfiniteConstraint(
        m.u, m.v, rule=lambda m, u, v: m.x >= function(u, v), where=lambda m, u, v: where(u, v)
    )
    (family,) = trace_model(m).problem.families
    for below in (3e-6, 1e-3, 3e-2):
        proof = prove_by_enclosures(family, np.array([function(*top) - below]), Budget(3e6))
        assert not proof.proved
        assert proof.largest >= below * (1 - 1e-3)
    result = osilp.solve(m, progress=False)
    assert result.objective == pytest.approx(function(*top), abs=1e-5) or not result.certified


@pytest.mark.parametrize("condition", ["lor", "land"])
def test_where_by_the_logic_of_pyomo(condition):
    wanted = pyo.lor if condition == "lor" else pyo.land
    result = smallest((0, 1), rule=lambda u: u * (1 - u), where=lambda m, u: wanted(u <= 0.2, u <= 0.7))
    assert result.certified
    assert result.objective == pytest.approx(0.25 if condition == "lor" else 0.16, abs=1e-7)


def test_what_overflows_far_out_is_not_proved_there():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var()
    m.height = pyo.Objective(expr=m.x)
    m.above = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: m.x >= pyo.exp(u / 1e9 - 5) / (1 + pyo.exp(u / 1e9 - 5))
    )
    result = osilp.solve(m, progress=False)
    assert not result.certified
    assert (
        "  proof      none for 'above': its numbers overflow far out on its index, which has no end, so that nothing is "
        "known there; a peak much narrower than the scan's steps can escape"
    ) in str(result).splitlines()


def test_how_far_out_an_index_without_end_is_proved_is_said():
    m = pyo.ConcreteModel()
    m.u = pyo.RangeSet(0, None, 0)
    m.x = pyo.Var()
    m.height = pyo.Objective(expr=m.x)
    m.above = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= 1 - 1 / (1 + pyo.log(1 + u)))
    result = osilp.solve(m, progress=False)
    assert not result.certified
    assert (
        "  proof      none for 'above': it holds up to 1e+60 on its index, which has no end, and beyond nothing is proved"
    ) in str(result).splitlines()


# -- bookings ---------------------------------------------------------------------------------------


def stays(count, rng):
    begin = rng.uniform(0, 23, count).round(2)
    return begin, np.minimum(begin + (rng.exponential(1.2, count) + 0.05).round(2), 24.0)


def bookings(begin, end, value, capacity, form, domain=pyo.Reals):
    m = pyo.ConcreteModel()
    m.h = ContinuousSet(bounds=(0, 24))
    m.T = pyo.RangeSet(0, len(begin) - 1)
    m.x = pyo.Var(m.T, bounds=(0, 1), domain=domain)
    m.income = pyo.Objective(expr=sum(float(value[t]) * m.x[t] for t in m.T), sense=pyo.maximize)

    def present(h, first, last):
        if form == "distance":
            return pyo.Expr_if(abs(h - (first + last) / 2) <= (last - first) / 2, 1, 0)
        if form == "ranged":
            return pyo.Expr_if(pyo.inequality(first, h, last), 1, 0)
        return pyo.Expr_if(first <= h, 1, 0) * pyo.Expr_if(h < last, 1, 0)

    m.places = osilp.SemiInfiniteConstraint(
        m.h, rule=lambda m, h: sum(present(h, float(begin[t]), float(end[t])) * m.x[t] for t in m.T) <= capacity
    )
    return m


def occupied(x, begin, end, form):
    """The largest number of guests at a time: at every moment at which one comes or goes, beside it, and between."""
    times = np.unique(np.concatenate([begin, end]))
    times = np.concatenate([times, np.nextafter(times, 0), np.nextafter(times, 24), (times[1:] + times[:-1]) / 2])
    most = 0.0
    for h in np.array_split(times, 20):
        at = h[:, None]
        if form == "distance":
            present = np.abs(at - (begin + end) / 2) <= (end - begin) / 2
        else:
            present = (begin <= at) & ((at <= end) if form == "ranged" else (at < end))
        most = max(most, float((present @ x).max()))
    return most


@pytest.mark.parametrize("form", ["distance", "ranged", "product"])
@pytest.mark.parametrize("count", [60, 1500])
def test_bookings_are_swept(form, count):
    rng = np.random.default_rng(count)
    begin, end = stays(count, rng)
    capacity = max(1, count // 25)
    value = rng.uniform(0.5, 1.5, count) * (end - begin)
    result = osilp.solve(bookings(begin, end, value, capacity, form), progress=False)
    assert result.status == "optimal"
    assert result.certified
    assert result.proof["how"].tolist() == ["sweep"]
    x = result.values.to_numpy()
    assert occupied(x, begin, end, form) <= capacity + 1e-7


def test_whole_bookings_with_a_capacity_in_steps():
    """Some nights have fewer places; the optimum is that of all moments at which anything changes."""
    rng = np.random.default_rng(5)
    begin, end = stays(40, rng)
    value = rng.uniform(0.5, 1.5, 40)
    m = bookings(begin, end, value, 100, "product", pyo.Binary)
    m.room = osilp.Profile(over=m.h, points=[0.0, 8.0, 16.0, 24.0], initialize=[3.0, 1.0, 2.0, 2.0], kind="previous")
    m.del_component(m.places)
    m.places = osilp.SemiInfiniteConstraint(
        m.h,
        rule=lambda m, h: (
            sum(pyo.Expr_if(float(begin[t]) <= h, 1, 0) * pyo.Expr_if(h < float(end[t]), 1, 0) * m.x[t] for t in m.T)
            <= m.room(h)
        ),
    )
    result = osilp.solve(m, progress=False)
    assert result.certified
    assert result.proof["how"].tolist() == ["sweep"]
    moments = np.unique(np.concatenate([[0.0, 8.0, 16.0], begin, end]))
    by_hand = pyo.ConcreteModel()
    by_hand.x = pyo.Var(range(40), domain=pyo.Binary)
    by_hand.income = pyo.Objective(expr=sum(float(value[t]) * by_hand.x[t] for t in range(40)), sense=pyo.maximize)
    by_hand.places = pyo.ConstraintList()
    for h in moments:
        there = [t for t in range(40) if begin[t] <= h < end[t]]
        room = 3 if h < 8 else 1 if h < 16 else 2
        if there:
            by_hand.places.add(sum(by_hand.x[t] for t in there) <= room)
    pyo.SolverFactory("appsi_highs").solve(by_hand)
    assert result.objective == pytest.approx(pyo.value(by_hand.income), abs=1e-7)


@pytest.mark.parametrize("period", [0.3, 0.7, 24.3])
@pytest.mark.parametrize("seed", range(3))
def test_steps_that_come_again_and_again(period, seed):
    """A timetable with a period that no float is: the row is what its own function says at every change."""
    rng = np.random.default_rng(seed)
    knots = np.concatenate([[0.0], np.sort(rng.uniform(0.1, 0.9, 3)).round(2) * period, [period]])
    m = pyo.ConcreteModel()
    m.h = ContinuousSet(bounds=(0, 9 * period))
    m.P = osilp.Profile(
        over=m.h, points=knots, initialize=rng.integers(1, 5, len(knots)).astype(float), kind="previous", outside="wrap"
    )
    m.x = pyo.Var([0, 1], bounds=(0, 5))
    m.income = pyo.Objective(expr=2 * m.x[0] + m.x[1], sense=pyo.maximize)
    first, last = np.sort(rng.uniform(7, 9, 2)) * period
    m.row = osilp.SemiInfiniteConstraint(
        m.h,
        rule=lambda m, h: (
            m.P(h) * m.x[0] + pyo.Expr_if(pyo.inequality(float(first), h, float(last)), 1, 0) * m.x[1] <= 7
        ),
    )
    result = osilp.solve(m, progress=False)
    assert result.status == "optimal"
    x = result.values.to_numpy()
    moments = rng.uniform(0, 9 * period, 2000)
    curve = np.array([m.P(float(h)) for h in moments])
    inside = (moments >= first) & (moments <= last)
    assert (curve * x[0] + inside * x[1]).max() <= 7 + 1e-7


# -- what it says -----------------------------------------------------------------------------------


def test_a_proof_is_a_frame_with_a_line_for_each_family():
    result = smallest((0, 1), rule=lambda u: u * (1 - u))
    assert list(result.proof.columns) == ["how", "largest", "boxes", "seconds", "open"]
    assert result.proof.index.tolist() == ["above"]
    (line,) = result.proof.itertuples(index=False)
    assert line.how == "enclosure"
    assert 0 <= line.largest <= 1e-8
    assert line.boxes > 0
    assert line.open is None
    text = next(each for each in str(result).splitlines() if each.startswith("  proof"))
    assert re.fullmatch(r"  proof      no row is violated .* on the whole index \([\d,]+ boxes, [\d.e-]+ s\)", text)


def test_without_a_proof_nothing_is_certified():
    result = smallest((0, 1), rule=lambda u: u * (1 - u), proof=False)
    assert result.status == "optimal"
    assert not result.certified
    assert result.proof["how"].tolist() == ["search"]
    assert (
        "  proof      none for 'above': no proof was asked for; a peak much narrower than the scan's steps can escape"
    ) in str(result).splitlines()


def test_a_rule_that_is_called_at_points_is_not_proved():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.height = pyo.Objective(expr=m.x)
    m.above = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= u * (1 - u), sample=True)
    result = osilp.solve(m)
    assert not result.certified
    assert result.proof["how"].tolist() == ["search"]
    assert pd.isna(result.proof["largest"].iloc[0])


def sampled(function, lipschitz):
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.height = pyo.Objective(expr=m.x)
    m.above = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= function(u), sample=True, lipschitz=lipschitz)
    return osilp.solve(m, progress=False)


def test_a_lipschitz_constant_proves_a_rule_that_is_called_at_points():
    result = sampled(lambda u: math.sin(5 * u) + 0.3 * u, 5.3)
    top = math.acos(-0.06) / 5
    assert result.certified
    assert result.objective == pytest.approx(math.sin(5 * top) + 0.3 * top, abs=2e-6)
    assert result.proof["largest"].iloc[0] <= 1e-5


@pytest.mark.parametrize(
    ("function", "constant"),
    [(lambda u: math.sin(5 * u), 2.0), (lambda u: math.exp(-(((u - 0.3337) / 1e-3) ** 2)), 6.0)],
    ids=["everywhere", "in a peak"],
)
def test_a_lipschitz_constant_that_the_rule_contradicts(function, constant):
    result = sampled(function, constant)
    assert not result.certified
    text = next(each for each in str(result).splitlines() if each.startswith("  proof"))
    assert re.fullmatch(
        rf"  proof      none for 'above': lipschitz={constant:g} is contradicted: between u = [\d.e-]+ and u = [\d.e-]+ "
        r"a coefficient or limit changes by [\d.e-]+, and may change by [\d.e-]+; a peak much narrower than the scan's "
        r"steps can escape",
        text,
    )


@pytest.mark.parametrize("wrong", ["a", -1.0, [], float("inf")])
def test_a_lipschitz_constant_is_a_number(wrong):
    with pytest.raises(DeclarationError) as error:
        sampled(lambda u: u, wrong)
    assert str(error.value) == (
        "SemiInfiniteConstraint: lipschitz= must be a number >= 0, or one for each coordinate of the index "
        f"(got {wrong!r})."
    )


def test_there_are_as_many_lipschitz_constants_as_coordinates():
    with pytest.raises(ModelError) as error:
        sampled(lambda u: u, [1.0, 2.0])
    assert str(error.value) == (
        "SemiInfiniteConstraint 'above': lipschitz= has 2 numbers, and its index has 1 coordinates; give one number, or "
        "one for each of them."
    )


def test_a_pole_is_not_bounded():
    with pytest.warns(AccuracyWarning, match="leave poles out by where="):
        result = smallest((0, 1), rule=lambda u: pyo.tan(3 * u) / 100)
    assert not result.certified
    assert result.status == "inaccurate"
    assert result.proof["open"].iloc[0] == pytest.approx(np.pi / 6)
    assert (
        "  proof      none for 'above': nothing bounds its values, as at a pole, near u = 0.523599; leave such places "
        "out by where="
    ) in str(result).splitlines()


def test_a_harmless_pole_is_proved():
    result = smallest((0, 1), rule=lambda u: -1 / (u - 0.3) ** 2)
    assert result.certified
    assert result.objective == pytest.approx(-1 / 0.49)


def test_an_open_proof_says_where_and_what_to_do():
    """A function that is highest on a whole surface needs more boxes than there are by default."""
    result = smallest((0, 1), (0, 1), (0, 1), rule=lambda u, v, w: 2 * u * v * w - u**2 - v**2 * w**2)
    assert result.status == "optimal"
    assert not result.certified
    text = next(each for each in str(result).splitlines() if each.startswith("  proof"))
    assert re.fullmatch(
        r"  proof      none for 'above': the boxes that a proof may take were not enough near \(u, v, w\) = "
        r"\(.*\), where at most [\d.e-]+ can be missed; proof=True goes on",
        text,
    )
    assert result.proof["open"].iloc[0] is not None


def test_a_proof_that_runs_out_of_time_claims_nothing():
    rule = lambda u, v, w: 2 * u * v * w - u**2 - v**2 * w**2  # noqa: E731
    result = smallest((0, 1), (0, 1), (0, 1), rule=rule, proof=True, time_limit=0.4)
    assert not result.certified


def test_proof_is_one_of_three():
    with pytest.raises(OptionError) as error:
        smallest((0, 1), rule=lambda u: u, proof="yes")
    assert str(error.value) == "solve: proof must be 'auto', True or False (got 'yes')."


@pytest.mark.parametrize("ends", [(0.0, np.inf), (-np.inf, 2.0), (-np.inf, np.inf)])
def test_far_places_of_an_index_without_end_are_found_again(ends):
    """Also where a condition switches at the end itself, whose neighbours are no scale."""
    marks = np.array([each for each in ends if np.isfinite(each)] or [0.0])
    marks = np.unique(np.concatenate([marks, np.nextafter(marks, -np.inf), np.nextafter(marks, np.inf)]))
    compact = Compactification(Domain(("u",), np.array(ends[:1]), np.array(ends[1:]), marks=(marks,)), powers=51)
    places = np.array([-1e40, -3e12, -1e6, -2.0, 0.5, 1.0, 40.0, 3e10, 3e20, 1e50])
    places = places[(places > ends[0]) & (places < ends[1])]
    found = compact.outward(compact.inward(places, 0)[:, None])[:, 0]
    assert found == pytest.approx(places, rel=1e-4)


def test_a_peak_so_far_out_that_only_the_proof_finds_it():
    m = pyo.ConcreteModel()
    m.u, m.v = pyo.RangeSet(0, None, 0), ContinuousSet(bounds=(0, 1))
    m.x = pyo.Var()
    m.height = pyo.Objective(expr=m.x)
    m.above = osilp.SemiInfiniteConstraint(
        m.u, m.v, rule=lambda m, u, v: m.x >= pyo.exp(-(((u - 3e10) / 1e10) ** 2) - v**2) + pyo.Expr_if(u <= 0, 0.1, 0)
    )
    result = osilp.solve(m, progress=False)
    assert result.certified
    assert result.objective == pytest.approx(1, abs=1e-6)
