"""Every online policy against traces of five arrivals that were worked out apart from the package.

Two kinds of evidence. The tests called ``test_by_hand_*`` hold numbers from pencil and paper, with the arithmetic
beside them. The others compare with the slow reference below, which is written from the formulas of the paper
(arXiv:2603.16200), its corrections, and the docstrings of the policies; nothing of it is taken from the package's
kernels.

Letters are the paper's: w the dual, C = Phi'a what an arrival uses if it is served, D = Phi'd the budget of one
arrival, B what is left of the whole budget, R the number of duals, T the horizon. Rows with ">=" are turned round and
costs are negative rewards, so that every resource reads "use at most this".

What no docstring says, and was looked up in the kernels, is marked "looked up".
"""

from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pyomo.environ as pyo
import pytest
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp

GUARDS = ("none", "projected", "pointwise")
STEPS = 5


# -- the model ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Data of one arrival: what it is worth, and what it uses at u = 0 and at u = 1, with a straight line between."""

    value: float
    a: float
    b: float


# Worked examples below use one resource; these five are for the reference, on two and three.
ROWS = (Row(1.0, 0.5, 1.0), Row(0.75, 1.5, 0.25), Row(2.0, 1.25, 1.75), Row(0.25, 0.25, 1.5), Row(1.5, 2.0, 0.5))


@cache
def compiled(
    rows=ROWS,
    limits=(2.0, 3.0),
    grid=(0.0, 1.0),
    basis=None,
    *,
    horizon=None,
    minimize=False,
    side="<=",
    coupling=None,
    most=1.0,
    stage_solver=None,
):
    """Rows arrive; x of them are served; their use stays below (or above) the line through ``limits`` for all u.

    ``coupling`` = (relation, limit) adds the ordinary row sum of 2 x (relation) limit.
    """
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(len(rows))
    for name in ("value", "a", "b"):
        numbers = {t: getattr(row, name) for t, row in enumerate(rows, 1)}
        m.add_component(name, pyo.Param(m.T, mutable=True, initialize=numbers))
    m.x = pyo.Var(m.T, bounds=(0, most))
    worth = sum(m.value[t] * m.x[t] for t in m.T)
    m.worth = pyo.Objective(expr=worth, sense=pyo.minimize if minimize else pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def use(m, u):
        used = sum((m.a[t] * (1 - u) + m.b[t] * u) * m.x[t] for t in m.T)
        limit = limits[0] * (1 - u) + limits[1] * u
        return used <= limit if side == "<=" else used >= limit

    if coupling is not None:
        relation, limit = coupling
        served = sum(2.0 * m.x[t] for t in m.T)
        m.served = pyo.Constraint(expr={"<=": served <= limit, ">=": served >= limit, "==": served == limit}[relation])
    basis = osilp.Dirac() if basis is None else basis
    return osilp.compile_online(m, stages=m.T, horizon=horizon, grid=list(grid), basis=basis, stage_solver=stage_solver)


# -- the reference: what happens to five arrivals ---------------------------------------------------------------


@dataclass(frozen=True)
class Arrival:
    """One arrival: rewards (K,) of its decisions, and what they use of each priced resource and grid point."""

    rewards: np.ndarray
    use: np.ndarray
    point_use: np.ndarray
    most: np.ndarray

    def seen_by(self, view):
        return self.use if view == "projected" else self.point_use


@dataclass(frozen=True)
class Game:
    """All that a reference needs to know of a program."""

    arrivals: tuple
    total: np.ndarray
    point_total: np.ndarray
    horizon: int = STEPS
    floor: np.ndarray = field(default_factory=lambda: np.array(0.0))


def arrival(reward, use, point_use=None, most=1.0):
    """An arrival with a single decision."""
    use = np.array([use], dtype=float)
    points = use if point_use is None else np.array([point_use], dtype=float)
    return Arrival(np.array([float(reward)]), use, points, np.array([float(most)]))


def corners_game(rows=ROWS, limits=(2.0, 3.0), horizon=STEPS, sign=1.0, most=1.0):
    """The row at u = 0 and u = 1: what is priced and what is guarded are the same."""
    met = tuple(arrival(row.value, (sign * row.a, sign * row.b), most=most) for row in rows)
    total = sign * np.array(limits)
    return Game(met, total, total, horizon)


def cells_game(rows=ROWS, limits=(2.0, 3.0), horizon=STEPS):
    """Grid 0, 1/2, 1 with weights 1/4, 1/2, 1/4 and the indicators of [0, 1/2) and [1/2, 1].

    So Phi'a = (a/4, (a + b)/2 / 2 + b/4) = (a/4, a/4 + b/2), and the same for the limits.
    """

    def cells(p, q):
        return np.array([p / 4, p / 4 + q / 2])

    def points(p, q):
        return np.array([p, (p + q) / 2, q])

    met = tuple(arrival(row.value, cells(row.a, row.b), points(row.a, row.b)) for row in rows)
    return Game(met, cells(*limits), points(*limits), horizon)


def compiled_cells(**options):
    return compiled(grid=(0.0, 0.5, 1.0), basis=osilp.Indicator(2), **options)


@dataclass(frozen=True)
class Step:
    """What the reference says of one arrival; ``dual`` is the price after it."""

    wanted: np.ndarray
    x: np.ndarray
    reason: str
    dual: np.ndarray


def response(met, use, dual):
    """Serve what earns more than it costs: x = 1 where r > C'w, and 0 where r <= C'w (Algorithm 1, step 4)."""
    margin = met.rewards - use @ dual
    tied = np.isclose(margin, 0.0, rtol=0.0, atol=1e-9)
    return np.where((margin > 0) & ~tied, met.most, 0.0), tied


def played(reference, game, guard):
    """The five steps of a reference under a guard."""
    left = {"projected": game.total.copy(), "pointwise": game.point_total.copy()}
    own = "projected" if reference.view == "projected" else "pointwise"
    steps = []
    for t, met in enumerate(game.arrivals):
        use = met.seen_by(reference.view)
        reference.meet(t, met, left[own])
        wanted, tied = response(met, use, reference.dual)
        reason = "tie" if tied.any() else "priced"
        if tied.any():
            wanted = reference.on_ties(met, wanted, tied)
        x = wanted
        if guard != "none":
            # Algorithm 3, step 9: nothing is taken that does not fit; here what still fits is taken.
            rows = met.use if guard == "projected" else met.point_use
            asked = wanted @ rows
            whole = game.total if guard == "projected" else game.point_total
            if np.any((asked > 0) & (asked > left[guard] + 1e-12 * np.abs(whole))):
                x = wanted * min(
                    max(room, 0.0) / need for room, need in zip(left[guard], asked, strict=True) if need > 0
                )
                reason = "guard" if x.any() else "null"
        # The price learns from what it wanted (the virtual decision of Algorithms 3 and 4); the budget pays for x.
        reference.learn(t, met, wanted @ use, left[own])
        for name, rows in (("projected", met.use), ("pointwise", met.point_use)):
            left[name] = left[name] - x @ rows
        steps.append(Step(wanted, x, reason, np.array(reference.dual)))
    return steps


# -- the reference: how prices learn ------------------------------------------------------------------------------


class Reference:
    """A price that never moves; the others change ``learn``."""

    view = "projected"

    def __init__(self, game, dual=None, step=1.0, scale="free", target="average"):
        self.T = game.horizon
        self.D = (game.total if self.view == "projected" else game.point_total) / game.horizon
        self.R = len(self.D)
        self.floor = np.broadcast_to(game.floor, self.R)
        self.dual = np.zeros(self.R) if dual is None else np.maximum(np.array(dual, dtype=float), self.floor)
        self.step, self.free, self.remaining_target = step, scale == "free", target == "remaining"
        self.rewards, self.squares = [], []

    def meet(self, t, met, left):
        """Note |r| and |C - D|^2 of the arrival, at its full decision.

        Of several decisions the largest reward counts, and the mean of the squares (looked up).
        """
        use = met.seen_by(self.view)
        self.rewards.append(max(abs(met.rewards) * met.most))
        self.squares.append(
            np.mean([np.sum((k_most * k_use - self.D) ** 2) for k_most, k_use in zip(met.most, use, strict=True)])
        )

    def on_ties(self, met, wanted, tied):
        return wanted

    def learn(self, t, met, used, left):
        pass

    @property
    def mean_reward(self):
        return sum(self.rewards) / len(self.rewards)

    @property
    def spread(self):
        """Rms|C - D|, of the arrivals seen so far; 1 where steps are as printed."""
        return np.sqrt(sum(self.squares) / len(self.squares)) if self.free else 1.0

    @property
    def width(self):
        """Mean|r| / |D|, the size of a dual; 1 where steps are as printed."""
        return self.mean_reward / np.sqrt(np.sum(self.D**2)) if self.free else 1.0

    def target_at(self, t, left):
        """D, or what is left for each arrival that is still to come: B_t / (T - t)."""
        return left / (self.T - t) if self.remaining_target else self.D


class GradientReference(Reference):
    """Algorithm 1: w <- max(w + gamma (C x - D), 0) with gamma = step / sqrt(T).

    Free: that times mean|r| / (|D| rms|C - D|).
    """

    def learn(self, t, met, used, left):
        gamma = self.step / np.sqrt(self.T) * self.width / self.spread
        self.dual = np.maximum(self.dual + gamma * (used - self.target_at(t, left)), self.floor)


class PointsReference(GradientReference):
    """Simple-GD: the same with a dual for every grid point."""

    view = "points"


class EntropyReference(Reference):
    """Algorithm 2 with psi = sum w log w: w <- w exp(-gamma (D - C x)), from mean|r| / (R D_k) at the first arrival.

    Free: gamma = step / sqrt(t) sqrt(R) / rms|C - D| (the factor was looked up); as printed: step / sqrt(T).
    """

    def meet(self, t, met, left):
        super().meet(t, met, left)
        if t == 0:
            self.dual = self.mean_reward / (self.R * np.abs(self.D))

    def learn(self, t, met, used, left):
        gamma = self.step / np.sqrt(self.T)
        if self.free:
            gamma = self.step / np.sqrt(t + 1) * np.sqrt(self.R) / self.spread
        self.dual = self.dual * np.exp(-gamma * (self.target_at(t, left) - used))


class PointsEntropyReference(EntropyReference):
    """The same with a dual for every grid point."""

    view = "points"


class MirrorReference(Reference):
    """Algorithm 2 with a separable potential: psi'(w') = psi'(w) - gamma (D - C x), then w' >= 0.

    Free: the potential is that of w / width, so that gamma (D - C x)'w becomes step / (sqrt(T) rms|C - D|) (D - C x)'w
    / width.
    """

    def __init__(self, game, potential, **options):
        super().__init__(game, **options)
        self.potential = potential

    def learn(self, t, met, used, left):
        gamma = self.step / np.sqrt(self.T) / self.spread
        mirrored = self.potential.gradient(self.dual / self.width) - gamma * (self.target_at(t, left) - used)
        self.dual = np.maximum(self.potential.inverse(mirrored) * self.width, self.floor)


def projected_on_both(y, centre, radius, floor):
    """The point nearest to y that is >= floor and in the ball: w(mu) = max(floor, (y + mu c) / (1 + mu)), mu >= 0.

    With the set of coordinates that stand at their floor known, mu has a closed form; all sets are tried.
    """
    clipped = np.maximum(y, floor)
    if np.sum((clipped - centre) ** 2) <= radius**2:
        return clipped
    found = []
    for count in range(len(y) + 1):
        for at_floor in combinations(range(len(y)), count):
            held = np.isin(np.arange(len(y)), at_floor)
            room = radius**2 - np.sum((floor - centre)[held] ** 2)
            if room <= 0 or held.all():
                continue
            mu = np.sqrt(np.sum((y - centre)[~held] ** 2) / room) - 1
            point = np.where(held, floor, (y + mu * centre) / (1 + mu))
            if mu >= 0 and np.array_equal(point > floor, ~held):
                found.append(point)
    return min(found, key=lambda point: np.sum((point - y) ** 2))


class TwoStageReference(Reference):
    """Algorithms 3, 4 and 5, corrected: the learner responds at its own dual, and the budget is carried over.

    eta_1 is width / (3 rms|C - D|) and V_1 the width: 1/3 and 1 as printed (looked up). A level's average is that of
    the points after its J steps (looked up; the paper's sum begins with the point before the first of them). Algorithm
    3 alone goes on halving after its last level (looked up).
    """

    def __init__(self, game, levels, per_level, refine_step=50.0, stage="both", **options):
        super().__init__(game, **options)
        self.levels = np.inf if stage == "accelerate" else 0 if stage == "refine" else levels
        self.per_level, self.refine_step = per_level, refine_step
        self.level = 0
        self.learner = self.centre = self.dual
        self.points = []
        self.balls_touched = 0

    def learn(self, t, met, used, left):
        if self.level >= self.levels:
            gamma = self.refine_step / self.T * self.width / self.spread
            self.dual = np.maximum(self.dual + gamma * (used - self.D), self.floor)
            return
        gamma = self.step / np.log(self.T) * self.width / self.spread
        self.dual = np.maximum(self.dual + gamma * (used - self.D), self.floor)
        own, _ = response(met, met.use, self.learner)
        eta = self.width / (3 * self.spread) / 2**self.level
        radius = self.width / 2**self.level
        moved = self.learner + eta * (own @ met.use - self.D)
        self.learner = projected_on_both(moved, self.centre, radius, self.floor)
        self.balls_touched += not np.array_equal(self.learner, np.maximum(moved, self.floor))
        self.points.append(self.learner)
        if len(self.points) == self.per_level:
            self.learner = self.centre = np.mean(self.points, axis=0)
            self.points = []
            self.level += 1
            if self.level == self.levels:
                self.dual = self.centre


def sample_dual(rewards, columns, most, budget):
    """Minimize budget'w + sum_n most_n max(r_n - C_n'w, 0) over w >= 0, by trying every corner; it must be unique.

    Corners lie where R of the equations r_n = C_n'w and w_k = 0 hold.
    """
    size = len(budget)
    equations = [(column, reward) for column, reward in zip(columns, rewards, strict=True)]
    equations += [(unit, 0.0) for unit in np.eye(size)]
    corners = []
    for chosen in combinations(equations, size):
        matrix, right = np.array([column for column, _ in chosen]), np.array([value for _, value in chosen])
        if abs(np.linalg.det(matrix)) < 1e-9:
            continue
        w = np.linalg.solve(matrix, right)
        if np.all(w >= -1e-12):
            w = np.maximum(w, 0.0)
            corners.append((budget @ w + most @ np.maximum(rewards - columns @ w, 0.0), w))
    corners.sort(key=lambda corner: corner[0])
    value, best = corners[0]
    others = [other for other, w in corners if not np.allclose(w, best, atol=1e-9)]
    assert not others or min(others) > value + 1e-9, "choose data whose dual is unique"
    return best


class ResolveReference(Reference):
    """Before arrival t (from 0) the LP of the N = t arrivals seen gets N / (T - t) of what is left; w is its dual.

    With T = 5 and growth 1.3 the times 1, 2, 3, 4 are all due. What is left of a budget counts as 0 where it is less,
    and the price stays where the sample cannot cover its share of a turned row (both looked up).
    """

    def __init__(self, game, exact=False):
        self.view = "points" if exact else "projected"
        super().__init__(game)
        self.history = []

    def meet(self, t, met, left):
        if t:
            columns = np.array([seen.seen_by(self.view)[0] for seen in self.history])
            rewards = np.array([seen.rewards[0] for seen in self.history])
            most = np.array([seen.most[0] for seen in self.history])
            budget = t / (self.T - t) * np.where(self.D >= 0, np.maximum(left, 0.0), left)
            least = most @ np.minimum(columns, 0.0)
            if np.all(least <= budget):
                self.dual = sample_dual(rewards, columns, most, budget)
        self.history.append(met)


# -- comparing -------------------------------------------------------------------------------------------------------


def numbers(decision):
    """A decision as an array, whether it came as a number or by name."""
    return np.array(list(decision.values()) if isinstance(decision, dict) else [decision])


def same(found, expected):
    """Equal to twelve digits; plain arithmetic, for numpy's own comparison takes longer than a step."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    return found.shape == expected.shape and bool((abs(found - expected) <= 1e-12 * abs(expected) + 1e-14).all())


def assert_traced(program, data, policy, reference, game, guard, **options):
    """Step by step, and replayed, the policy does what the reference does."""
    steps = played(reference, game, guard)
    controller = program.controller(policy, guard, **options)
    for t, (row, step) in enumerate(zip(data, steps, strict=True), 1):
        asked = controller.decide(**row) if t == 3 else None
        decision = controller.step(**row)
        assert asked in (None, decision)
        assert decision.t == controller.t == t
        assert decision.reason == step.reason
        assert same(numbers(decision.wanted), step.wanted), (t, decision, step)
        assert same(numbers(decision.x), step.x), (t, decision, step)
        assert same(controller.dual, step.dual), (t, controller.dual, step.dual)
    run = program.replay(policy, guard=guard, progress=False, **options)
    assert same(run.decisions.to_numpy().reshape(len(steps), -1), [step.x for step in steps])
    assert same(run.wanted.to_numpy().reshape(len(steps), -1), [step.wanted for step in steps])
    assert run.reasons.tolist() == [step.reason for step in steps]
    assert same(run.dual, controller.dual)
    assert run.objective == pytest.approx(controller.reward, rel=1e-12)
    return steps


def data_of(rows):
    return [{"value": row.value, "a": row.a, "b": row.b} for row in rows]


@pytest.fixture(scope="module")
def programs():
    """The two programs that most traces use, and what decides their stages: the loop, or an LP for each arrival."""
    return {
        ("corners", "loop"): (compiled(), corners_game()),
        ("corners", "one by one"): (compiled(stage_solver="highs"), corners_game()),
        ("cells", "loop"): (compiled_cells(), cells_game()),
        ("cells", "one by one"): (compiled_cells(stage_solver="highs"), cells_game()),
    }


CUBE = osilp.Potential(gradient=np.square, inverse=lambda z: np.sqrt(np.maximum(z, 0.0)))
SQUARE = osilp.Potential(gradient=lambda w: w, inverse=lambda z: z)
SINH = osilp.Potential(gradient=np.arcsinh, inverse=np.sinh)

# A policy, and the reference for it on a game.
PAIRS = {
    "gradient free": (osilp.GradientDescent(), GradientReference),
    "gradient free, step 3": (osilp.GradientDescent(step=3.0), lambda game: GradientReference(game, step=3.0)),
    "gradient paper": (osilp.GradientDescent(scale="paper"), lambda game: GradientReference(game, scale="paper")),
    "mirror euclidean free": (osilp.MirrorDescent(), GradientReference),
    "mirror euclidean paper": (
        osilp.MirrorDescent(scale="paper", step=0.5),
        lambda game: GradientReference(game, scale="paper", step=0.5),
    ),
    "mirror euclidean remaining paper": (
        osilp.MirrorDescent(target="remaining", scale="paper"),
        lambda game: GradientReference(game, scale="paper", target="remaining"),
    ),
    "entropy free": (osilp.MirrorDescent(potential="entropy"), EntropyReference),
    "entropy free, step 0.5": (
        osilp.MirrorDescent(potential="entropy", step=0.5),
        lambda game: EntropyReference(game, step=0.5),
    ),
    "entropy paper": (
        osilp.MirrorDescent(potential="entropy", scale="paper"),
        lambda game: EntropyReference(game, scale="paper"),
    ),
    "entropy remaining free": (
        osilp.MirrorDescent(potential="entropy", target="remaining"),
        lambda game: EntropyReference(game, target="remaining"),
    ),
    "entropy remaining paper": (
        osilp.MirrorDescent(potential="entropy", target="remaining", scale="paper", step=2.0),
        lambda game: EntropyReference(game, target="remaining", scale="paper", step=2.0),
    ),
    "entropy on points": (
        osilp.MirrorDescent("entropy", "remaining", view="pointwise", caution=1e6),
        lambda game: PointsEntropyReference(game, target="remaining"),
    ),
    "own cube free": (osilp.MirrorDescent(potential=CUBE), lambda game: MirrorReference(game, CUBE)),
    "own cube paper": (
        osilp.MirrorDescent(potential=CUBE, scale="paper"),
        lambda game: MirrorReference(game, CUBE, scale="paper"),
    ),
    "own sinh free": (osilp.MirrorDescent(potential=SINH), lambda game: MirrorReference(game, SINH)),
    "own sinh remaining paper": (
        osilp.MirrorDescent(potential=SINH, target="remaining", scale="paper"),
        lambda game: MirrorReference(game, SINH, target="remaining", scale="paper"),
    ),
    "own square is euclidean": (osilp.MirrorDescent(potential=SQUARE), GradientReference),
    "own square paper is euclidean": (
        osilp.MirrorDescent(potential=SQUARE, scale="paper"),
        lambda game: GradientReference(game, scale="paper"),
    ),
    "two stages free": (
        osilp.AccelerateThenRefine(levels=2, per_level=2),
        lambda game: TwoStageReference(game, 2, 2),
    ),
    "two stages paper": (
        osilp.AccelerateThenRefine(levels=2, per_level=2, scale="paper"),
        lambda game: TwoStageReference(game, 2, 2, scale="paper"),
    ),
    "one level of one": (
        osilp.AccelerateThenRefine(levels=1, per_level=1, step=2.0, refine_step=3.0),
        lambda game: TwoStageReference(game, 1, 1, 3.0, step=2.0),
    ),
    "one level of three": (
        osilp.AccelerateThenRefine(levels=1, per_level=3, refine_step=1.0),
        lambda game: TwoStageReference(game, 1, 3, 1.0),
    ),
    "one level of five": (
        osilp.AccelerateThenRefine(levels=1, per_level=5, scale="paper"),
        lambda game: TwoStageReference(game, 1, 5, scale="paper"),
    ),
    # ceil(log 5) = 2 levels if none are named.
    "levels from the horizon": (
        osilp.AccelerateThenRefine(per_level=2),
        lambda game: TwoStageReference(game, 2, 2),
    ),
    "four levels of one": (
        osilp.AccelerateThenRefine(levels=4, per_level=1),
        lambda game: TwoStageReference(game, 4, 1),
    ),
    "accelerate free": (
        osilp.AccelerateThenRefine(stage="accelerate", levels=1, per_level=2),
        lambda game: TwoStageReference(game, 1, 2, stage="accelerate"),
    ),
    "accelerate paper": (
        osilp.AccelerateThenRefine(stage="accelerate", scale="paper", step=0.25),
        lambda game: TwoStageReference(game, 2, 10, stage="accelerate", scale="paper", step=0.25),
    ),
    "refine free": (
        osilp.AccelerateThenRefine(stage="refine"),
        lambda game: TwoStageReference(game, 2, 10, stage="refine"),
    ),
    "refine paper": (
        osilp.AccelerateThenRefine(stage="refine", refine_step=1.0, scale="paper"),
        lambda game: TwoStageReference(game, 2, 10, 1.0, stage="refine", scale="paper"),
    ),
    "simple gradient free": (osilp.SimpleGD(), PointsReference),
    "simple gradient paper": (
        osilp.SimpleGD(step=0.5, scale="paper"),
        lambda game: PointsReference(game, step=0.5, scale="paper"),
    ),
    "greedy": (osilp.Greedy(), Reference),
    "fixed price": (osilp.FixedPrice([0.5, 0.25]), lambda game: Reference(game, dual=[0.5, 0.25])),
    "fixed price below zero": (osilp.FixedPrice([-1.0, 0.75]), lambda game: Reference(game, dual=[0.0, 0.75])),
    "resolve": (osilp.Resolve(smoothed=False), ResolveReference),
    "resolve exact": (osilp.Resolve(exact=True, smoothed=False), lambda game: ResolveReference(game, exact=True)),
}


# -- what the program makes of the model ----------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["corners", "cells"])
def test_columns_and_budgets_are_those_of_the_reference(programs, place):
    program, game = programs[place, "loop"]
    batch = program.evaluator.batch(program.arrivals())
    np.testing.assert_allclose(program.evaluator.resources["projected"].total, game.total, rtol=1e-14)
    np.testing.assert_allclose(program.evaluator.resources["pointwise"].total, game.point_total, rtol=1e-14)
    np.testing.assert_allclose(batch.use["projected"], [met.use for met in game.arrivals], rtol=1e-14)
    np.testing.assert_allclose(batch.use["pointwise"], [met.point_use for met in game.arrivals], rtol=1e-14)
    np.testing.assert_allclose(batch.rewards, [met.rewards for met in game.arrivals], rtol=1e-14)


def test_dirac_points_that_are_the_grid_are_the_same_as_none():
    given, default = compiled(basis=osilp.Dirac([[0.0], [1.0]])), compiled()
    np.testing.assert_array_equal(
        given.evaluator.resources["projected"].total, default.evaluator.resources["projected"].total
    )
    np.testing.assert_array_equal(given.batch().use["projected"], default.batch().use["projected"])


# -- all policies against the reference -----------------------------------------------------------------------------


# Where, on which path, under which guard: every guard, and both paths.
SETTINGS = (
    ("corners", "loop", "none"),
    ("cells", "loop", "projected"),
    ("cells", "loop", "pointwise"),
    ("cells", "one by one", "projected"),
)


@pytest.mark.parametrize(("place", "path", "guard"), SETTINGS)
@pytest.mark.parametrize("name", PAIRS)
def test_policy_follows_the_reference(programs, name, place, path, guard):
    program, game = programs[place, path]
    policy, reference = PAIRS[name]
    assert_traced(program, data_of(ROWS), policy, reference(game), game, guard)


def test_traces_are_worth_comparing(programs):
    """Duals move and are held at zero, guards cut and refuse, balls are touched: the references are not all alike."""
    reasons, still, at_zero, touched = set(), set(), 0, 0
    for place, path, guard in SETTINGS:
        _, game = programs[place, path]
        for name, (_, make) in PAIRS.items():
            reference = make(game)
            steps = played(reference, game, guard)
            reasons |= {step.reason for step in steps}
            touched += getattr(reference, "balls_touched", 0)
            duals = [step.dual for step in steps]
            at_zero += any(after.min() == 0 < before.max() for before, after in pairwise(duals))
            if np.array_equal(duals[0], duals[-1]):
                still.add(name)
            if guard == "none":
                assert [step.x for step in steps] == [step.wanted for step in steps]
    assert reasons == {"priced", "guard", "null"}
    assert still == {"greedy", "fixed price", "fixed price below zero"}
    assert at_zero > 5
    assert touched > 0


@pytest.mark.parametrize(
    ("levels", "per_level", "touches"), [(1, 1, 1), (2, 1, 2), (4, 1, 4), (1, 2, 2), (2, 2, 4), (1, 4, 4)]
)
@pytest.mark.parametrize("stage_solver", [None, "highs"])
def test_learner_stays_in_its_balls(levels, per_level, touches, stage_solver):
    """Columns so large that every step as printed leaves the ball; the first leaves the orthant as well (b = 0)."""
    rows = (Row(90.0, 4.0, 0.0), Row(80.0, 5.0, 7.0), Row(70.0, 2.0, 6.0), Row(60.0, 8.0, 9.0), Row(3.0, 1.0, 0.5))
    program, game = compiled(rows=rows, stage_solver=stage_solver), corners_game(rows)
    policy = osilp.AccelerateThenRefine(levels=levels, per_level=per_level, scale="paper")
    reference = TwoStageReference(game, levels, per_level, scale="paper")
    assert_traced(program, data_of(rows), policy, reference, game, "none")
    assert reference.balls_touched == touches


FREE = [
    name for name, (policy, _) in PAIRS.items() if getattr(policy, "scale", "free") == "free" and "fixed" not in name
]


@pytest.mark.parametrize("name", FREE)
def test_units_of_money_and_resource_do_not_matter(programs, name):
    """Money in units 1/1024 and the resource in units 1/8: the same decisions, and duals 1024 / 8 times as large."""
    rows = tuple(Row(1024 * row.value, 8 * row.a, 8 * row.b) for row in ROWS)
    scaled = compiled_cells(rows=rows, limits=(16.0, 24.0))
    policy, _ = PAIRS[name]
    runs = [each.replay(policy, guard="pointwise", progress=False) for each in (programs["cells", "loop"][0], scaled)]
    np.testing.assert_allclose(runs[1].decisions, runs[0].decisions, rtol=1e-12)
    np.testing.assert_allclose(runs[1].dual, 128 * runs[0].dual, rtol=1e-12)


# -- beginning at a known price ---------------------------------------------------------------------------------------

WARM = (0.5, 0.25)


@pytest.mark.parametrize(
    ("policy", "reference"),
    [
        (
            osilp.AccelerateThenRefine(stage="refine"),
            lambda game: TwoStageReference(game, 2, 10, stage="refine", dual=WARM),
        ),
        (
            osilp.AccelerateThenRefine(levels=2, per_level=2, scale="paper"),
            lambda game: TwoStageReference(game, 2, 2, scale="paper", dual=WARM),
        ),
        (osilp.GradientDescent(), lambda game: GradientReference(game, dual=WARM)),
        (osilp.MirrorDescent(potential=SINH), lambda game: MirrorReference(game, SINH, dual=WARM)),
        (osilp.FixedPrice(), lambda game: Reference(game, dual=WARM)),
    ],
    ids=["refine", "two stages", "gradient", "own potential", "fixed price"],
)
def test_warm_start_is_the_first_dual(programs, policy, reference):
    program, game = programs["cells", "loop"]
    known = program.controller(osilp.FixedPrice(WARM), "none")
    assert_traced(program, data_of(ROWS), policy, reference(game), game, "projected", warm_start=known)


# -- other senses and rows --------------------------------------------------------------------------------------------

SOME = (
    "gradient free", "gradient paper", "mirror euclidean remaining paper", "entropy free", "entropy remaining free",
    "own sinh free", "two stages free", "two stages paper", "simple gradient free", "greedy", "resolve",
    "resolve exact",
)  # fmt: skip


@pytest.mark.parametrize("name", SOME)
def test_minimizing_costs_is_maximizing_what_they_save(name):
    """Values are negative costs here: minimize sum -value x. Decision.reward is a cost, hence negative."""
    rows = tuple(Row(-row.value, row.a, row.b) for row in ROWS)
    policy, reference = PAIRS[name]
    program = compiled_cells(rows=rows, minimize=True)
    game = cells_game()
    assert_traced(program, data_of(rows), policy, reference(game), game, "pointwise")
    first = program.controller(osilp.Greedy(), "none").step(value=-0.5, a=0.5, b=1.0)
    assert (first.x, first.reward) == (1.0, -0.5)


@pytest.mark.parametrize("name", SOME)
def test_covering_row_is_turned_round(name):
    """Minimize sum value x where use must be at least the line from 1 to 1.5.

    Turned round: rewards -value, columns (-a, -b), budget (-1, -1.5), so D = (-0.2, -0.3); the price is on what is
    missing.
    """
    program = compiled(limits=(1.0, 1.5), minimize=True, side=">=")
    met = tuple(arrival(-row.value, (-row.a, -row.b)) for row in ROWS)
    total = np.array([-1.0, -1.5])
    game = Game(met, total, total)
    batch = program.evaluator.batch(program.arrivals())
    np.testing.assert_array_equal(program.evaluator.resources["projected"].total, total)
    np.testing.assert_array_equal(batch.use["projected"], [each.use for each in met])
    policy, reference = PAIRS[name]
    steps = assert_traced(program, data_of(ROWS), policy, reference(game), game, "none")
    # The first arrival costs something and no price asks for it; the entropy's first dual does: see its hand trace.
    assert steps[0].x[0] == (1.0 if "entropy" in name else 0.0)


def coupled_game(limit, sign=1.0, equality=False):
    """The corners, and the row 2 sum x.

    Its projected coordinate is divided by a unit that makes its budget as large as the first row's (rms of 2 and 3,
    that is sqrt(6.5)); its grid coordinate is not.
    """
    unit = abs(limit) / np.sqrt(6.5)
    met = tuple(arrival(row.value, (row.a, row.b, sign * 2 / unit), (row.a, row.b, sign * 2.0)) for row in ROWS)
    floor = np.array([0.0, 0.0, -np.inf if equality else 0.0])
    return Game(met, np.array([2.0, 3.0, sign * np.sqrt(6.5)]), np.array([2.0, 3.0, sign * limit]), STEPS, floor)


@pytest.mark.parametrize("guard", ["projected", "pointwise"])
@pytest.mark.parametrize("name", SOME)
def test_ordinary_row_has_a_dual_of_its_own(name, guard):
    program, game = compiled(coupling=("<=", 3.0)), coupled_game(3.0)
    np.testing.assert_allclose(program.evaluator.resources["projected"].total, game.total, rtol=1e-14)
    np.testing.assert_allclose(program.evaluator.resources["pointwise"].total, game.point_total, rtol=1e-14)
    policy, reference = PAIRS[name]
    assert_traced(program, data_of(ROWS), policy, reference(game), game, guard)


@pytest.mark.parametrize("name", [name for name in SOME if "resolve" not in name])
def test_ordinary_row_from_below_is_turned_round(name):
    program, game = compiled(coupling=(">=", 3.0)), coupled_game(3.0, sign=-1.0)
    policy, reference = PAIRS[name]
    assert_traced(program, data_of(ROWS), policy, reference(game), game, "none")


@pytest.mark.parametrize("name", ["gradient free", "gradient paper", "two stages free", "simple gradient free"])
def test_dual_of_an_equality_may_be_negative(name):
    """2 sum x = 9 asks for more than is served, so its dual falls below zero and pays for serving."""
    program, game = compiled(coupling=("==", 9.0)), coupled_game(9.0, equality=True)
    policy, reference = PAIRS[name]
    steps = assert_traced(program, data_of(ROWS), policy, reference(game), game, "none")
    assert min(step.dual[2] for step in steps) < 0
    assert min(step.dual[:2].min() for step in steps) >= 0


@pytest.mark.parametrize("name", SOME)
def test_means_are_of_the_full_decision(name):
    """With x up to 2 an arrival is worth 2 r and uses 2 C at its full decision; entropy and steps start from those."""
    program, game = compiled(most=2.0, limits=(4.0, 5.0)), corners_game(most=2.0, limits=(4.0, 5.0))
    policy, reference = PAIRS[name]
    assert_traced(program, data_of(ROWS), policy, reference(game), game, "pointwise")


@cache
def compiled_pairs(stage_solver):
    """Decision y is worth 3/4 of x, and uses b at u = 0 and a at u = 1."""
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(STEPS)
    for each in ("value", "a", "b"):
        given = {t: getattr(row, each) for t, row in enumerate(ROWS, 1)}
        m.add_component(each, pyo.Param(m.T, mutable=True, initialize=given))
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.y = pyo.Var(m.T, bounds=(0, 1))
    m.worth = pyo.Objective(expr=sum(m.value[t] * (m.x[t] + 0.75 * m.y[t]) for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def use(m, u):
        line = [(m.a[t] * (1 - u) + m.b[t] * u, m.b[t] * (1 - u) + m.a[t] * u) for t in m.T]
        return sum(p * m.x[t] + q * m.y[t] for t, (p, q) in zip(m.T, line, strict=True)) <= 2 + u

    return osilp.compile_online(m, stages=m.T, grid=[0.0, 1.0], basis=osilp.Dirac(), stage_solver=stage_solver)


@pytest.mark.parametrize("stage_solver", [None, "highs"])
@pytest.mark.parametrize("name", [name for name in SOME if "resolve" not in name])
def test_two_decisions_an_arrival(name, stage_solver):
    program = compiled_pairs(stage_solver)
    met = []
    for row in ROWS:
        uses = np.array([[row.a, row.b], [row.b, row.a]])
        met.append(Arrival(np.array([row.value, 0.75 * row.value]), uses, uses, np.ones(2)))
    game = Game(tuple(met), np.array([2.0, 3.0]), np.array([2.0, 3.0]))
    policy, reference = PAIRS[name]
    assert_traced(program, data_of(ROWS), policy, reference(game), game, "none")


# -- by hand -----------------------------------------------------------------------------------------------
#
# One resource: the average of the row over u. With limits (12.5, 12.5) and T = 25 the budget of an arrival is D = 0.5,
# and sqrt(T) = 5, so that step=5 makes step / sqrt(T) = 1. Arrivals have a = b = C.


def one_resource(limit=12.5, horizon=25, **options):
    rows = (Row(1.0, 1.0, 1.0),) * STEPS
    return compiled(
        rows=rows, limits=(limit, limit), grid=(0.0, 1.0), basis=osilp.Indicator(1), horizon=horizon, **options
    )


def assert_by_hand(program, policy, guard, lines, **options):
    """Lines of (value, C, wanted, x, reason, dual after it)."""
    controller = program.controller(policy, guard, **options)
    for value, c, wanted, x, reason, dual in lines:
        decision = controller.step(value=value, a=c, b=c)
        assert decision.reason == reason
        assert decision.wanted == pytest.approx(wanted, rel=1e-12, abs=1e-14)
        assert decision.x == pytest.approx(x, rel=1e-12, abs=1e-14)
        assert decision.reward == pytest.approx(value * x, rel=1e-12, abs=1e-14)
        assert controller.dual.tolist() == pytest.approx([dual], rel=1e-12, abs=1e-14)


def test_by_hand_gradient_paper():
    """The dual: w <- max(w + (2 x - 0.5), 0): up by 1.5 if served, down by 0.5 if not."""
    lines = [
        (1.0, 2.0, 1, 1, "priced", 1.5),  # 1 > 2 * 0: served
        (2.0, 2.0, 0, 0, "priced", 1.0),  # 2 < 2 * 1.5
        (2.0, 2.0, 0, 0, "tie", 0.5),  # 2 = 2 * 1: not served
        (4.0, 2.0, 1, 1, "priced", 2.0),  # 4 > 2 * 0.5
        (3.0, 2.0, 0, 0, "priced", 1.5),  # 3 < 2 * 2
    ]
    for policy in (osilp.GradientDescent(step=5.0, scale="paper"), osilp.MirrorDescent(step=5.0, scale="paper")):
        assert_by_hand(one_resource(), policy, "none", lines)
    # Nothing is served at a loss, and a dual does not fall below 0.
    assert_by_hand(
        one_resource(), osilp.GradientDescent(step=5.0, scale="paper"), "none", [(-1.0, 2.0, 0, 0, "priced", 0.0)]
    )


def test_by_hand_gradient_free():
    """Here |C - D| = 1.5 always and |D| = 0.5, so gamma = mean|r| / (0.5 * 1.5) = 4/3 mean|r|."""
    lines = [
        (3.0, 2.0, 1, 1, "priced", 6.0),  # mean 3, gamma 4: 0 + 4 * 1.5
        (1.0, 2.0, 0, 0, "priced", 14 / 3),  # mean 2, gamma 8/3: 6 - 8/3 * 0.5
        (5.0, 2.0, 0, 0, "priced", 8 / 3),  # 5 < 28/3; mean 3, gamma 4: 14/3 - 2
        (7.0, 2.0, 1, 1, "priced", 32 / 3),  # 7 > 16/3; mean 4, gamma 16/3: 8/3 + 8
        (4.0, 2.0, 0, 0, "priced", 8.0),  # mean 4: 32/3 - 8/3
    ]
    for policy in (osilp.GradientDescent(step=5.0), osilp.MirrorDescent(step=5.0)):
        assert_by_hand(one_resource(), policy, "none", lines)
    # The mean of squares: |C - D| = 1.5 and 2 give rms sqrt((2.25 + 4) / 2) = 2.5 / sqrt(2), mean|r| = 2.
    second = 6.0 - 2.0 / (0.5 * 2.5 / np.sqrt(2.0)) * 0.5
    lines = [lines[0], (1.0, 2.5, 0, 0, "priced", second)]
    assert_by_hand(one_resource(), osilp.GradientDescent(step=5.0), "none", lines)


def test_by_hand_entropy_paper():
    """The dual: w <- w exp(-(0.5 - x)) from |r_1| / D = 2: times e^0.5 if served, e^-0.5 if not."""
    half = np.exp(0.5)
    lines = [
        (1.0, 1.0, 0, 0, "priced", 2 / half),  # 1 < 2
        (2.0, 1.0, 1, 1, "priced", 2.0),  # 2 > 1.213
        (3.0, 1.0, 1, 1, "priced", 2 * half),  # 3 > 2
        (3.0, 1.0, 0, 0, "priced", 2.0),  # 3 < 3.297
        (2.0, 1.0, 0, 0, "tie", 2 / half),  # 2 = 2
    ]
    policy = osilp.MirrorDescent(potential="entropy", scale="paper", step=5.0)
    assert_by_hand(one_resource(), policy, "none", lines)


def test_by_hand_entropy_free():
    """With C = 1.5 and R = 1, rms|C - D| = 1: the exponent is 1 / sqrt(t) if served, else -0.5 / sqrt(t)."""
    first = 2 * np.exp(-0.5)
    second = first * np.exp(1 / np.sqrt(2))
    third = second * np.exp(-0.5 / np.sqrt(3))
    fourth = third * np.exp(1 / 2)
    lines = [
        (1.0, 1.5, 0, 0, "priced", first),  # from 1 / 0.5 = 2; 1 < 3
        (2.0, 1.5, 1, 1, "priced", second),  # 2 > 1.5 * 1.213
        (3.0, 1.5, 0, 0, "priced", third),  # 3 < 1.5 * 2.460
        (4.0, 1.5, 1, 1, "priced", fourth),  # 4 > 1.5 * 1.843
        (2.0, 1.5, 0, 0, "priced", fourth * np.exp(-0.5 / np.sqrt(5))),  # 2 < 1.5 * 3.039
    ]
    assert_by_hand(one_resource(), osilp.MirrorDescent(potential="entropy"), "none", lines)


def test_by_hand_own_potential_paper():
    """The potential w^3 / 3: w'^2 = max(w^2 + 2 x - 0.5, 0), so w^2 goes up by 1.5 or down by 0.5."""
    lines = [
        (1.0, 2.0, 1, 1, "priced", np.sqrt(1.5)),  # 1 > 0
        (2.0, 2.0, 0, 0, "priced", 1.0),  # 2 < 2.449
        (3.0, 2.0, 1, 1, "priced", np.sqrt(2.5)),  # 3 > 2
        (1.0, 2.0, 0, 0, "priced", np.sqrt(2.0)),  # 1 < 3.162
        (2.0, 2.0, 0, 0, "priced", np.sqrt(1.5)),  # 2 < 2.828
    ]
    assert_by_hand(one_resource(), osilp.MirrorDescent(potential=CUBE, scale="paper", step=5.0), "none", lines)


def test_by_hand_own_potential_free():
    """The same in units of mean|r| / D = 2 mean|r|, steps divided by rms|C - D| = 1.5: (w / unit)^2 goes +1 or -1/3."""
    lines = [
        (1.0, 2.0, 1, 1, "priced", 2.0),  # unit 2: 2 sqrt(0 + 1)
        (3.0, 2.0, 0, 0, "priced", 0.0),  # 3 < 4; unit 4: (2/4)^2 - 1/3 < 0, held at 0
        (2.0, 2.0, 1, 1, "priced", 4.0),  # unit 4: 4 sqrt(0 + 1)
        (6.0, 2.0, 0, 0, "priced", 6 * np.sqrt(1 / 9)),  # 6 < 8; unit 6: (4/6)^2 - 1/3 = 1/9
        (3.0, 2.0, 0, 0, "priced", 0.0),  # 3 < 4; unit 6: 1/9 - 1/3 < 0
    ]
    assert_by_hand(one_resource(), osilp.MirrorDescent(potential=CUBE, step=5.0), "none", lines)


def test_by_hand_remaining_target_and_guards():
    """T = 5, limit 2.5, gamma = 1: w <- w + 2 wanted - B_t / (5 - t)."""
    lines = [
        (1.0, 2.0, 1, 1.0, "priced", 1.5),  # B = 2.5: target 2.5 / 5
        (4.0, 2.0, 1, 0.25, "guard", 3.375),  # 4 > 3; B = 0.5, a quarter fits; target 0.5 / 4: 1.5 + 2 - 0.125
        (8.0, 2.0, 1, 0.0, "null", 5.375),  # 8 > 6.75; B = 0, nothing fits; target 0: 3.375 + 2
        (1.0, 2.0, 0, 0.0, "priced", 5.375),  # target 0
        (2.0, 2.0, 0, 0.0, "priced", 5.375),
    ]
    policy = osilp.MirrorDescent(target="remaining", scale="paper", step=float(np.sqrt(5.0)))
    for guard in ("projected", "pointwise"):
        assert_by_hand(one_resource(2.5, 5), policy, guard, lines)
    # Without a guard B falls to -1.5: target -1.5 / 3 = -0.5, so 3.375 + 2 + 0.5.
    lines = [lines[0], (4.0, 2.0, 1, 1.0, "priced", 3.375), (8.0, 2.0, 1, 1.0, "priced", 5.875)]
    assert_by_hand(one_resource(2.5, 5), policy, "none", lines)


def test_by_hand_two_stages_paper():
    """Two levels of two, decision step log(25) / log(25) = 1, refine step 25 / 25 = 1; eta = 1/3, 1/6 and V = 1, 1/2.

    The learner goes up by 1.5 eta if it would serve at its own dual, and down by 0.5 eta if not.
    """
    policy = osilp.AccelerateThenRefine(
        levels=2, per_level=2, step=float(np.log(25.0)), refine_step=25.0, scale="paper"
    )
    lines = [
        (1.0, 2.0, 1, 1, "priced", 1.5),  # learner 0 serves too: 0.5
        (2.0, 2.0, 0, 0, "priced", 1.0),  # learner 0.5 serves (2 > 1): 1.0; average (0.5 + 1) / 2 = 0.75
        (4.0, 2.0, 1, 1, "priced", 2.5),  # learner 0.75 serves: + 0.25 = 1.0
        # 5 = 2 * 2.5 is a tie; the learner at 1.0 serves: 1.25, on the ball's edge; average 1.125 takes over.
        (5.0, 2.0, 0, 0, "tie", 1.125),
        (2.0, 2.0, 0, 0, "priced", 0.625),  # refine: 2 < 2.25, down by 0.5
    ]
    assert_by_hand(one_resource(), policy, "none", lines)


def test_by_hand_balls_hold_the_learner():
    """C = 6.5 moves the learner by 6/3 = 2, beyond V_1 = 1; then by 6/6 = 1, beyond 1/2; then by 1/2, beyond 1/4."""
    lines = [(100.0, 6.5, 1, 1, "priced", 6.0 / np.log(25.0))]
    for levels, dual in ((1, 1.0), (2, 1.5), (3, 1.75)):
        policy = osilp.AccelerateThenRefine(levels=levels, per_level=1, scale="paper")
        controller = one_resource().controller(policy, "none")
        for _ in range(levels):
            controller.step(value=100.0, a=6.5, b=6.5)
        assert controller.dual.tolist() == pytest.approx([dual], rel=1e-12)
    # Alone, the first stage never hands over to the learner.
    alone = osilp.AccelerateThenRefine(levels=1, per_level=1, stage="accelerate", scale="paper")
    assert_by_hand(one_resource(), alone, "none", lines)


def test_by_hand_refine_alone():
    """From w = 1 with steps 5 / 25 = 0.2: up by 0.3 if served, down by 0.1 if not."""
    program = one_resource()
    known = program.controller(osilp.FixedPrice([1.0]), "none")
    lines = [
        (1.0, 2.0, 0, 0, "priced", 0.9),
        (2.0, 2.0, 1, 1, "priced", 1.2),
        (2.0, 2.0, 0, 0, "priced", 1.1),
        (3.0, 2.0, 1, 1, "priced", 1.4),
        (2.5, 2.0, 0, 0, "priced", 1.3),
    ]
    policy = osilp.AccelerateThenRefine(stage="refine", refine_step=5.0, scale="paper")
    assert_by_hand(program, policy, "none", lines, warm_start=known)


def test_by_hand_simple_gradient():
    """Grid 0 and 1, limits 1.25 and 2.5 with T = 25 and step 5: w <- max(w + (a x - 0.05, b x - 0.1), 0)."""
    program = compiled(limits=(1.25, 2.5), basis=osilp.Indicator(1), horizon=25)
    controller = program.controller(osilp.SimpleGD(step=5.0, scale="paper"), "none")
    expected = [
        (Row(1.0, 1.0, 0.0), 1.0, (0.95, 0.0)),  # b x - 0.1 < 0
        (Row(0.5, 1.0, 1.0), 0.0, (0.9, 0.0)),  # 0.5 < 0.95
        (Row(0.5, 0.0, 2.0), 1.0, (0.85, 1.9)),  # 0.5 > 0
        (Row(3.0, 1.0, 1.0), 1.0, (1.8, 2.8)),  # 3 > 2.75
        (Row(4.0, 1.0, 1.0), 0.0, (1.75, 2.7)),  # 4 < 4.6
    ]
    for row, x, dual in expected:
        assert controller.step(value=row.value, a=row.a, b=row.b).x == x
        assert controller.dual.tolist() == pytest.approx(dual, rel=1e-12, abs=1e-14)


def test_by_hand_greedy_and_fixed_price():
    greedy = [
        (1.0, 1.0, 1, 1.0, "priced", 0.0),
        (-1.0, 1.0, 0, 0.0, "priced", 0.0),
        (0.0, 1.0, 0, 0.0, "tie", 0.0),
        (2.0, 2.0, 1, 0.75, "guard", 0.0),  # 1.5 of 2.5 are left
        (3.0, 1.0, 1, 0.0, "null", 0.0),
    ]
    assert_by_hand(one_resource(2.5, 5), osilp.Greedy(), "projected", greedy)
    fixed = [
        (1.0, 1.0, 0, 0.0, "priced", 1.5),
        (1.5, 1.0, 0, 0.0, "tie", 1.5),
        (4.0, 2.0, 1, 1.0, "priced", 1.5),
        (2.0, 1.0, 1, 0.5, "guard", 1.5),  # 0.5 is left
        (2.0, 1.0, 1, 0.0, "null", 1.5),
    ]
    assert_by_hand(one_resource(2.5, 5), osilp.FixedPrice([1.5]), "pointwise", fixed)


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("exact", [False, True])
def test_by_hand_resolve(exact, guard):
    """C = 1, limit 3, T = 5. Arrivals worth 2 and 4; on ties the sample's own fraction is taken."""
    program = one_resource(3.0, 5)
    controller = program.controller(osilp.Resolve(exact=exact), guard)
    lines = [
        (2.0, 1.0, "priced", 0.0),  # no sample yet; 2 are left
        (4.0, 1.0, "priced", 2.0),  # {2} on 1/4 * 2 = 0.5: dual 2; 1 is left
        (2.0, 0.0, "priced", 4.0),  # {2, 4} on 2/3 * 1: 2/3 of the 4, dual 4
        (2.0, 0.25, "tie", 2.0),  # {2, 2, 4} on 3/2 * 1: the 4 and a quarter of each 2; 0.75 are left
        (2.0, 2 / 3, "tie", 2.0),  # {2, 2, 2, 4} on 4 * 0.75 = 3: the 4 and two thirds of each 2
    ]
    for value, x, reason, price in lines:
        decision = controller.step(value=value, a=1.0, b=1.0)
        assert decision.reason == reason
        assert decision.x == pytest.approx(x, rel=1e-12)
        # After a step the dual is the one that the step was decided by. Which of the two grid points bears it, when
        # they say the same, is open.
        assert controller.dual.sum() == pytest.approx(price, rel=1e-12)


# -- what docstrings promise and the package does not do yet -----------------------------------------------


@pytest.mark.parametrize("scale", ["free", "paper"])
def test_start_of_a_potential_is_the_first_dual(scale):
    """D = (0.4, 0.6) and r = 1: (1 / (2 * 0.4), 1 / (2 * 0.6)) = (1.25, 0.8333); 1 < 1.25 a, so nothing is served."""
    log = osilp.Potential(gradient=np.log, inverse=np.exp, start=1.0)
    policy = osilp.MirrorDescent(potential=log, scale=scale)
    controller = compiled().controller(policy, "none")
    assert controller.step(value=1.0, a=1.0, b=0.0).x == 0.0


def test_ball_and_orthant_are_projected_on_together():
    """D = (3, 0.5) and J = 1, as printed: eta = 1/3, V = 1.

    Level 1: the learner goes from 0 by ((4.5, 2) - D) / 3 = (0.5, 0.5), inside the ball; that is the centre. Level 2,
    eta = 1/6, V = 1/2: it serves (-9, 12.5) and goes to (0.5, 0.5) + (-12, 12) / 6 = (-1.5, 2.5), that is (-2, 2) from
    the centre; the nearest point of the ball is the centre + 1/2 (-1, 1) / sqrt(2) = (0.1464, 0.8536), which is >= 0.
    Cut to (0, 2.5) first, it would be the centre + 1/2 (-0.5, 2) / |(-0.5, 2)| = (0.3787, 0.9851).
    """
    rows = (Row(100.0, 4.5, 2.0), Row(100.0, -9.0, 12.5)) + (Row(1.0, 1.0, 1.0),) * 3
    program = compiled(rows=rows, limits=(15.0, 2.5))
    controller = program.controller(osilp.AccelerateThenRefine(levels=2, per_level=1, scale="paper"), "none")
    for row in rows[:2]:
        assert controller.step(value=row.value, a=row.a, b=row.b).x == 1.0
    off = 0.5 / np.sqrt(2.0)
    assert controller.dual.tolist() == pytest.approx([0.5 - off, 0.5 + off], rel=1e-12)
