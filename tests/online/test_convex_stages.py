"""Convex stages against optima that are computed without the package: scipy on the whole primal, dense grids."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.core.expr.numeric_expr import MaxExpression, MinExpression
from pyomo.dae import ContinuousSet
from scipy.optimize import minimize

import osilp_pyomo as osilp
from osilp_pyomo.errors import CurvatureError
from osilp_pyomo.index.formula import Formula, define, function_text, kernel_of
from osilp_pyomo.index.nodes import AFFINE, CONCAVE, CONVEX, FUNCTIONS, Code, Traits
from osilp_pyomo.model.formulas import CannotCompileError, shape_of

WIDTH = 0.15
Rule = Callable[..., Any]


def bump(u: Any, place: Any, lib: Any = pyo) -> Any:
    return lib.exp(-(((u - place) / WIDTH) ** 2))


def budget(u: Any, lib: Any = pyo) -> Any:
    return 0.06 * (1 + 0.3 * lib.sin(6 * u))


def model(
    earn: Rule, use: Rule, *, count: int = 12, n: int = 1, bounds: tuple[Any, Any] = (0, 3), own: Any = None,
    row: Any = None, at_least: bool = False, minimized: bool = False, share: float = 1.0, seed: int = 3,
) -> Any:  # fmt: skip
    """Stages that earn ``earn(lib, x, value)`` and use ``use(lib, x, u, value)`` times a bump at their place."""
    rng = np.random.default_rng(seed)
    m = pyo.ConcreteModel()
    m.u, m.T, m.K = ContinuousSet(bounds=(0, 1)), pyo.RangeSet(count), pyo.RangeSet(n)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: rng.uniform(0.5, 2))
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: rng.uniform())
    m.x = pyo.Var(m.T, m.K, bounds=bounds)

    def x(t: Any) -> list[Any]:
        return [m.x[t, k] for k in m.K]

    sense = pyo.minimize if minimized else pyo.maximize
    m.worth = pyo.Objective(expr=sum(earn(pyo, x(t), m.value[t]) for t in m.T), sense=sense)

    @m.SemiInfiniteConstraint(m.u)
    def usage(m: Any, u: Any) -> Any:
        total = sum(bump(u, m.place[t]) * use(pyo, x(t), u, m.value[t]) for t in m.T)
        limit = count * share * budget(u)
        return total >= limit if at_least else total <= limit

    if own is not None:
        m.own = pyo.Constraint(m.T, rule=lambda m, t: own(x(t), m.value[t]))
    if row is not None:
        m.row = pyo.Constraint(expr=row([x(t) for t in m.T], [m.value[t] for t in m.T]))
    return m


def compiled_program(m: Any, **options: Any) -> osilp.OnlineProgram:
    return osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6), grid=osilp.Midpoint(120), **options)


def slopes(function: Callable[[Any], Any], x: Any) -> Any:
    """Derivatives by a step in the complex plane, exact to rounding."""
    columns = []
    for j in range(len(x)):
        moved = x.astype(complex)
        moved[j] += 1e-30j
        columns.append(np.imag(function(moved)) / 1e-30)
    return np.array(columns).T


def reference(
    program: Any, earn: Rule, use: Rule, *, exact: bool = False, n: int = 1, bounds: tuple[Any, Any] = (0, 3),
    own: Any = None, own_equal: bool = False, row: Any = None, row_equal: bool = False, at_least: bool = False,
    minimized: bool = False, share: float = 1.0,
) -> float:  # fmt: skip
    """The optimum over all decisions at once by SLSQP, on test functions or (exact) on a fine grid."""
    value, place = program.data["value"].to_numpy(), program.data["place"].to_numpy()
    count = len(value)
    if exact:
        u, phi = np.linspace(0, 1, 201), np.eye(201)
    else:
        u, phi = program.evaluator.points[0][:, 0], np.asarray(program.evaluator.phi(0))
    kernel = bump(u[None], place[:, None], np)
    limit = (count * share * np.broadcast_to(budget(u, np), u.shape)) @ phi
    sign, sense = (-1 if at_least else 1), (1 if minimized else -1)

    def parts(z: Any) -> list[Any]:
        return list(z.reshape(n, count))

    def goal(z: Any) -> Any:
        return sense * np.sum(earn(np, parts(z), value))

    def room(z: Any) -> Any:
        one = [part[:, None] for part in parts(z)]
        return sign * (limit - (kernel * use(np, one, u[None], value[:, None])).sum(axis=0) @ phi)

    rows = [("ineq", room)]
    if own is not None:
        rows.append(("eq" if own_equal else "ineq", lambda z: own(parts(z), value)))
    if row is not None:
        rows.append(("eq" if row_equal else "ineq", lambda z: np.atleast_1d(row(parts(z), value))))
    constraints = [{"type": kind, "fun": f, "jac": lambda z, f=f: slopes(f, z)} for kind, f in rows]
    start = np.full(n * count, 0.2)
    found = minimize(
        goal, start, jac=lambda z: slopes(goal, z), bounds=[bounds] * len(start), constraints=constraints,
        method="SLSQP", options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    assert found.success, found.message
    return sense * float(found.fun)


def quadratic(lib: Any, y: Any, v: Any) -> Any:
    return v * y[0] + 0.8 * y[1] - 0.5 * y[0] ** 2 - 0.5 * y[1] ** 2 - 0.2 * y[0] * y[1]


def log_utility(lib: Any, x: Any, v: Any) -> Any:
    return lib.log(1 + v * x[0])


def quadratic_use(lib: Any, x: Any, u: Any, v: Any) -> Any:
    return x[0] + 0.3 * x[0] ** 2


CASES: dict[str, tuple[Rule, Rule, dict[str, Any], dict[str, Any], str]] = {
    "log utility, quadratic use": (log_utility, quadratic_use, {}, {}, "Newton"),
    "square root, power 1.5": (
        lambda lib, x, v: v * lib.sqrt(x[0]), lambda lib, x, u, v: x[0] ** 1.5, {"bounds": (1e-3, 3)}, {}, "Newton"),
    "entropy": (
        lambda lib, x, v: v * x[0] - x[0] * lib.log(x[0]), lambda lib, x, u, v: x[0], {"bounds": (1e-3, 3)}, {},
        "Newton"),
    "a use that cannot be taken apart": (
        log_utility, lambda lib, x, u, v: lib.exp(u * x[0]) - 1, {}, {}, "Newton"),
    "two decisions": (
        lambda lib, x, v: v * lib.log(1 + x[0]) + lib.log(1 + 2 * x[1]), lambda lib, x, u, v: x[0] ** 2 + u * x[1],
        {"n": 2}, {}, "Newton"),
    "QP over a polyhedron": (
        quadratic, lambda lib, y, u, v: y[0] + u * y[1], {"n": 2},
        {"own": (lambda y, v: y[0] + 2 * y[1] <= v, lambda y, v: v - y[0] - 2 * y[1])}, "QP"),
    "QP with an equality": (
        quadratic, lambda lib, y, u, v: y[0] + u * y[1], {"n": 2, "share": 4.0},
        {"own": (lambda y, v: y[0] + 2 * y[1] == 0.4 * v, lambda y, v: 0.4 * v - y[0] - 2 * y[1]), "own_equal": True},
        "QP"),
    "QP with quadratic use": (
        quadratic, lambda lib, y, u, v: y[0] ** 2 + y[1] ** 2 + y[0] * y[1] + u * y[1], {"n": 2},
        {"own": (lambda y, v: y[0] + 2 * y[1] <= v, lambda y, v: v - y[0] - 2 * y[1])}, "QP"),
    "least cost of a demand": (
        lambda lib, x, v: v * (x[0] ** 2 + 1), lambda lib, x, u, v: x[0], {"minimized": True, "at_least": True}, {},
        "Newton"),
    "least cost, concave supply": (
        lambda lib, x, v: v * (x[0] ** 2 + 1), lambda lib, x, u, v: lib.log(1 + x[0]),
        {"minimized": True, "at_least": True}, {}, "Newton"),
    "a budget beside": (
        log_utility, quadratic_use, {},
        {"row": (lambda x, v: sum(v * y[0] ** 2 for y, v in zip(x, v, strict=True)) <= 0.6,
                 lambda x, v: 0.6 - np.sum(v * x[0] ** 2))}, "Newton"),
    "an equality beside": (
        log_utility, quadratic_use, {},
        {"row": (lambda x, v: sum(v * y[0] for y, v in zip(x, v, strict=True)) == 2.0,
                 lambda x, v: 2.0 - np.sum(v * x[0])), "row_equal": True}, "Newton"),
}  # fmt: skip


def both(name: str) -> tuple[Any, dict[str, Any]]:
    """A case as a program, and what the reference needs to know of it."""
    earn, use, common, rows, solver = CASES[name]
    mine = {key: rows[key][0] for key in ("own", "row") if key in rows}
    theirs = {key: rows[key][1] for key in ("own", "row") if key in rows}
    theirs |= {key: value for key, value in rows.items() if key.endswith("_equal")}
    program = compiled_program(model(earn, use, **common, **mine))
    assert solver in program.stage_solver
    return program, {"earn": earn, "use": use, **common, **theirs}


@pytest.mark.parametrize("name", CASES)
def test_projected_optimum(name: str) -> None:
    program, how = both(name)
    result = program.solve_offline(method="projected")
    best = reference(program, **how)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert result.bound == pytest.approx(best, rel=1e-6, abs=1e-6)
    sense = -1 if how.get("minimized") else 1
    assert sense * (result.bound - result.objective) >= -1e-7 * (1 + abs(best))


@pytest.mark.parametrize("name", ["log utility, quadratic use", "least cost of a demand"])
def test_exchange_optimum(name: str) -> None:
    """A grid of 201 points relaxes the continuum by the square of its step."""
    program, how = both(name)
    result = program.solve_offline(method="exchange")
    grid = reference(program, exact=True, **how)
    sense = -1 if how.get("minimized") else 1
    assert result.status == "optimal"
    assert result.objective == pytest.approx(grid, rel=1e-4)
    assert sense * (grid - result.objective) >= -1e-7 * (1 + abs(grid))
    assert sense * (result.bound - result.objective) >= -1e-7 * (1 + abs(grid))
    assert float(result.violation) <= 1e-6


def test_general_smooth_stage_offline() -> None:
    def earn(lib: Any, y: Any, v: Any) -> Any:
        return lib.log(1 + v * y[0] + y[1])

    def use(lib: Any, y: Any, u: Any, v: Any) -> Any:
        return y[0] + u * y[1] + 0.2 * y[1] ** 4

    program = compiled_program(model(earn, use, n=2, count=5))
    assert program.stage_solver == "SLSQP"
    result = program.solve_offline(method="projected")
    assert result.objective == pytest.approx(reference(program, earn, use, n=2), rel=1e-6)


# -- stage solvers ------------------------------------------------------------------------------------------------


def test_newton_against_a_dense_grid() -> None:
    program = compiled_program(model(log_utility, quadratic_use, count=8))
    batch = program.batch()
    value = program.data["value"].to_numpy()
    at_two = program.template.values(batch.arrivals, np.full((8, 1), 2.0))
    square = int(np.argmax(np.all(at_two == 4.0, axis=0)))
    assert at_two[0, square] == 4.0
    fine = np.linspace(0, 3, 300_001)
    rng = np.random.default_rng(1)
    for _ in range(5):
        prices = rng.uniform(0, 2, batch.use["projected"].shape[2]) * rng.choice([0.01, 1, 30])
        weights = batch.rewards - batch.use["projected"] @ prices
        together = program.solver.best(batch, weights, [])
        for t in range(len(batch)):
            one = program.solver.best(batch.part(slice(t, t + 1)), weights[t : t + 1], [])
            assert one[0, 0] == pytest.approx(together[t, 0], abs=1e-9)
            linear, squared = prices @ batch.use["projected"][t, 0], prices @ batch.use["projected"][t, square]
            best = fine[np.argmax(np.log(1 + value[t] * fine) - linear * fine - squared * fine**2)]
            assert together[t, 0] == pytest.approx(best, abs=2e-5)


@pytest.mark.parametrize("equal", [False, True])
def test_quadratic_stage_together_and_alone_against_scipy(equal: bool) -> None:
    def own(y: Any, v: Any) -> Any:
        return y[0] + 2 * y[1] - y[2] == 0.3 * v if equal else y[0] + 2 * y[1] + y[2] <= v

    def earn(lib: Any, y: Any, v: Any) -> Any:
        return quadratic(lib, y, v) + y[2] - 0.4 * y[2] ** 2 - 0.1 * y[0] * y[2]

    program = compiled_program(model(earn, lambda lib, y, u, v: y[0] + u * y[1] + 0.5 * y[2], n=3, count=6, own=own))
    batch = program.batch()
    rng = np.random.default_rng(2)
    prices = rng.uniform(0, 3, batch.use["projected"].shape[2])
    weights = batch.rewards - batch.use["projected"] @ prices
    together = program.solver.best(batch, weights, [])
    for t, value in enumerate(program.data["value"]):
        part = batch.part(slice(t, t + 1))
        alone = program.solver.best(part, weights[t : t + 1], [])[0]
        cost = batch.use["projected"][t, :3] @ prices

        def goal(y: Any, value: Any = value, cost: Any = cost) -> Any:
            return cost @ y - earn(np, y, value)

        limit = (lambda y, v=value: 0.3 * v - y[0] - 2 * y[1] + y[2]) if equal else (
            lambda y, v=value: v - y[0] - 2 * y[1] - y[2])  # fmt: skip
        found = minimize(
            goal, np.full(3, 0.1), jac=lambda y, goal=goal: slopes(goal, y), bounds=[(0, 3)] * 3, method="SLSQP",
            constraints={"type": "eq" if equal else "ineq", "fun": limit}, options={"ftol": 1e-14, "maxiter": 300},
        )  # fmt: skip
        assert goal(together[t]) == pytest.approx(found.fun, abs=1e-8)
        assert goal(alone) == pytest.approx(found.fun, abs=1e-6)
        assert limit(together[t]) >= -1e-8
        assert abs(limit(together[t])) <= 1e-8 or not equal


# -- derivatives --------------------------------------------------------------------------------------------------

RANGES = {"log": (0.3, 3), "log10": (0.3, 3), "sqrt": (0.3, 3), "asin": (-0.7, 0.7), "acos": (-0.7, 0.7),
          "acosh": (1.3, 3), "atanh": (-0.7, 0.7), "tan": (-1, 1)}  # fmt: skip
FORMULAS: dict[str, tuple[Callable[[Any, Any], Any], tuple[float, float]]] = {
    **{name: (lambda x, p, name=name: getattr(pyo, name)(x), RANGES.get(name, (-1.4, 1.4))) for name in FUNCTIONS},
    "if": (lambda x, p: pyo.Expr_if(IF=x <= 0.3, THEN=x**2, ELSE=pyo.exp(x)), (-1, 1)),
    "a ranged if": (lambda x, p: pyo.Expr_if(IF=pyo.inequality(-0.2, x, 0.3), THEN=x**3, ELSE=pyo.exp(x)), (-1, 1)),
    "abs": (lambda x, p: abs(x**3 - 0.1), (-1, 1)),
    "max": (lambda x, p: MaxExpression((x**2, pyo.exp(x) - 0.5, 0.3 * x)), (-1, 1)),
    "min": (lambda x, p: MinExpression((x**2, pyo.exp(x) - 0.5, 0.3 * x + p)), (-1, 1)),
    "x in the exponent": (lambda x, p: (1 + x**2) ** (x + p), (-1, 1)),
    "x to the x": (lambda x, p: x**x, (0.3, 2)),
    "a number to the x": (lambda x, p: 2**x, (-1, 1)),
    "nested powers": (lambda x, p: (x**1.5) ** 2.2 + x**p + x**-2.5, (0.3, 2)),
    "whole powers": (lambda x, p: x**5 + (-x) ** 2 + (x - 2) ** -3, (-1, 1)),
    "quotients": (lambda x, p: (x**2 + 1) / (x + 3) + p / (x**2 + 1) + pyo.exp(x) / p, (-1, 1)),
    "products": (lambda x, p: pyo.sin(x) * pyo.exp(pyo.cos(x)) * x - x**2 * p, (-1, 1)),
}


@pytest.mark.parametrize("scalar", [True, False])
@pytest.mark.parametrize("name", FORMULAS)
def test_derivatives(name: str, scalar: bool) -> None:
    m = pyo.ConcreteModel()
    m.x, m.p = pyo.Var(), pyo.Param(mutable=True, initialize=1.7)
    formula, (low, high) = FORMULAS[name]
    expression = formula(m.x, m.p)
    shape, leaves = shape_of(expression, {id(m.x): 0})
    literals = [None if leaf is m.p else repr(leaf) for leaf in leaves]
    data = [1.7] * literals.count(None)
    code = Code(scalar)
    jet = Formula(shape, tuple(literals)).derive(code, [f"s[{k}]" for k in range(len(data))], {0: "x"}, 0)
    result = f"({jet.value}), ({jet.first or '0.0'}), ({jet.second or '0.0'})"
    function = define(function_text("jet", "s, x", code.lines, result), "jet")
    at = np.random.default_rng(4).uniform(low, high, 30)
    if scalar:
        found = np.array([function(data, float(x)) for x in at], dtype=float).T
    else:
        found = np.array([np.broadcast_to(part, at.shape) for part in function(data, at)])

    def exact(x: Any) -> Any:
        values = []
        for one in x:
            m.x.set_value(float(one))
            values.append(pyo.value(expression))
        return np.array(values)

    h = 1e-3
    around = {k: exact(at + k * h) for k in (-2, -1, 0, 1, 2)}
    first = (around[-2] - 8 * around[-1] + 8 * around[1] - around[2]) / (12 * h)
    second = (-around[-2] + 16 * around[-1] - 30 * around[0] + 16 * around[1] - around[2]) / (12 * h * h)
    assert found[0] == pytest.approx(around[0], rel=1e-12, abs=1e-12)
    # Differences across a kink say nothing.
    kinked = name in ("if", "a ranged if", "abs", "max", "min", "ceil", "floor")
    share = 0.9 if kinked else 1.0
    assert np.mean(np.abs(found[1] - first) <= 1e-7 * (1 + np.abs(first))) >= share
    assert np.mean(np.abs(found[2] - second) <= 1e-5 * (1 + np.abs(second))) >= share


# -- curvature ----------------------------------------------------------------------------------------------------


def own_use(lib: Any, x: Any, u: Any, v: Any) -> Any:
    return x[0]


def own_value(lib: Any, x: Any, v: Any) -> Any:
    return v * x[0]


WRONG: dict[str, tuple[Rule, Rule, dict[str, Any]]] = {
    "earning x squared": (lambda lib, x, v: v * x[0] ** 2, own_use, {}),
    "using a square root": (own_value, lambda lib, x, u, v: lib.sqrt(x[0]), {}),
    "a sine": (lambda lib, x, v: lib.sin(3 * x[0]), own_use, {}),
    "x cubed on both sides of 0": (lambda lib, x, v: -(x[0] ** 3), own_use, {"bounds": (-1, 1)}),
    "a kink upwards": (lambda lib, x, v: lib.Expr_if(IF=x[0] <= 1, THEN=x[0], ELSE=2 * x[0] - 1), own_use, {}),
    "a jump": (lambda lib, x, v: lib.Expr_if(IF=x[0] <= 1, THEN=x[0], ELSE=x[0] - 0.5), own_use, {}),
    "earning a distance": (lambda lib, x, v: abs(x[0] - 1), own_use, {}),
    "a use that mixes, concave": (own_value, lambda lib, x, u, v: lib.log(1 + u * x[0]), {}),
    "a use that is concave at some points": (own_value, lambda lib, x, u, v: x[0] + (0.9 - u) * x[0] ** 2, {}),
    "earning a product": (lambda lib, x, v: x[0] * x[1], lambda lib, x, u, v: x[0] + x[1], {"n": 2}),
    "using a product": (lambda lib, x, v: x[0] + x[1], lambda lib, x, u, v: x[0] * x[1], {"n": 2}),
    "outside of a circle": (
        lambda lib, x, v: x[0] + x[1], lambda lib, x, u, v: x[0] + x[1],
        {"n": 2, "own": lambda x, v: x[0] ** 2 + x[1] ** 2 >= 0.5}),
    "a parabola as an equality": (
        lambda lib, x, v: x[0] + x[1], lambda lib, x, u, v: x[0] + x[1],
        {"n": 2, "own": lambda x, v: x[0] ** 2 == x[1]}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_curvature_is_refused(name: str) -> None:
    earn, use, options = WRONG[name]
    with pytest.raises(CurvatureError, match=r"fails between x\[\w+\] = "):
        compiled_program(model(earn, use, count=5, **options))


RIGHT: dict[str, tuple[Rule, Rule, dict[str, Any]]] = {
    "x log x": (own_value, lambda lib, x, u, v: x[0] * lib.log(x[0]) + x[0], {}),
    "a distance": (own_value, lambda lib, x, u, v: abs(x[0] - 1), {}),
    "a maximum": (own_value, lambda lib, x, u, v: MaxExpression((x[0], x[0] ** 2)), {}),
    "a minimum": (lambda lib, x, v: MinExpression((x[0], v)), own_use, {}),
    "a reciprocal": (lambda lib, x, v: -v / x[0], own_use, {"bounds": (0.1, 3)}),
    "saturation": (lambda lib, x, v: -lib.exp(-v * x[0]), own_use, {}),
    "a kink downwards": (lambda lib, x, v: lib.Expr_if(IF=x[0] <= 1, THEN=2 * x[0], ELSE=x[0] + 1), own_use, {}),
    "cosh of u x": (own_value, lambda lib, x, u, v: lib.cosh(u * x[0]), {}),
    "x to a power of the data": (own_value, lambda lib, x, u, v: x[0] ** (1 + v), {}),
    "data to the x": (own_value, lambda lib, x, u, v: (1 + v) ** x[0], {}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_curvature_is_accepted(name: str) -> None:
    earn, use, options = RIGHT[name]
    compiled_program(model(earn, use, count=5, **options))


def test_rules_never_claim_too_much() -> None:
    m = pyo.ConcreteModel()
    m.x, m.y = pyo.Var(), pyo.Var()
    rng = np.random.default_rng(8)
    names = [name for name in FUNCTIONS if name not in ("tan", "ceil", "floor")]

    def random_formula(depth: int) -> Any:
        if depth == 0 or rng.random() < 0.15:
            return [m.x, m.y, float(rng.choice([-2, -0.5, 0.5, 1, 3]))][rng.choice(3, p=[0.5, 0.3, 0.2])]
        kind, one = rng.integers(8), random_formula(depth - 1)
        if kind == 0:
            return one + random_formula(depth - 1)
        if kind == 1:
            return one * random_formula(depth - 1)
        if kind == 2:
            return one / random_formula(depth - 1)
        if kind == 3:
            return -one
        if kind == 4:
            return abs(one)
        if kind == 5:
            return one ** float(rng.choice([2, 3, 0.5, 1.5, -1, -2, -0.5]))
        if kind == 6:
            return (MaxExpression if rng.random() < 0.5 else MinExpression)((one, random_formula(depth - 1)))
        return getattr(pyo, names[rng.integers(len(names))])(one)

    claims = 0
    for _ in range(2500):
        try:
            expression = random_formula(int(rng.integers(1, 5)))
        except (ValueError, OverflowError, ZeroDivisionError, TypeError):
            continue  # a number with no such power
        if isinstance(expression, float | int | complex):
            continue
        try:
            shape, leaves = shape_of(expression, {id(m.x): 0, id(m.y): 1})
        except CannotCompileError:
            continue  # a complex number
        low, high = [(-2, 2), (0, 3), (0.1, 2), (-3, -0.5)][rng.integers(4)]
        literals = [repr(float(leaf)) for leaf in leaves]
        side = Traits(AFFINE, low, high)
        formula = Formula(shape, tuple(literals))
        found = formula.traits([], {0: side, 1: side})
        if found.curvature not in (AFFINE, CONVEX, CONCAVE):
            continue
        claims += 1
        kernel = kernel_of(formula.source()[0])
        a, b = rng.uniform(low, high, (2, 2, 200))
        with np.errstate(all="ignore"):
            left, right, middle = (
                np.broadcast_to(np.asarray(kernel([], list(at)), dtype=float), 200) for at in (a, b, (a + b) / 2)
            )
            bend = middle - (left + right) / 2
            size = 1e-9 * (1 + np.abs(left) + np.abs(right) + np.abs(middle))
        if found.curvature != CONCAVE:
            assert not np.any(bend > size), (str(expression), low, high)
        if found.curvature != CONVEX:
            assert not np.any(bend < -size), (str(expression), low, high)
    assert claims > 400


# -- guards -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["log utility, quadratic use", "a use that cannot be taken apart", "two decisions", "QP over a polyhedron",
     "QP with quadratic use"],
)  # fmt: skip
@pytest.mark.parametrize("policy", [osilp.MirrorDescent(), osilp.AccelerateThenRefine()])
def test_guards_hold_and_steps_are_replays(name: str, policy: Any) -> None:
    earn, use, common, rows, _ = CASES[name]
    own = rows["own"][0] if "own" in rows else None
    program = compiled_program(model(earn, use, **{**common, "count": 25}, own=own))
    run = program.replay(policy, guard="pointwise")
    assert run.violation == 0
    assert run.decisions.to_numpy().any()
    controller = program.controller(policy, guard="pointwise")
    replayed = run.decisions.to_numpy().reshape(25, -1)
    for t, data in enumerate(program.data.to_dict("records")):
        before = controller.decide(**data)
        assert controller.decide(**data) == before
        decision = controller.step(**data)
        assert decision == before
        assert np.array(list(decision.x.values())) == pytest.approx(replayed[t], abs=1e-9)
    assert controller.point_remaining.min() >= -1e-9
