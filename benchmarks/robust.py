"""Robust linear programs side by side with their peers.

Run ``pip install -e '.[peers]'`` and then ``python benchmarks/robust.py``; it takes about two minutes, with ``--quick``
half a minute. Peers that are not installed are left out. Every time goes from data (peers) or from the declared
model (this package) to the answer; what declaring the rules in Pyomo takes is shown apart.
"""

import contextlib
import logging
import os
import sys
from importlib.util import find_spec

import numpy as np
import pyomo.environ as pyo
from dense_highs import dense_highs
from figures import Figure, shown, timed
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet, BoxSet, CardinalitySet, ObjectiveType

import osilp_pyomo as osilp

BUDGET = 4.0
KINDS = ("box", "budget", "ellipsoid")


class Instance:
    """max c x over 0 <= x <= 10 with (nominal_i + sum_k xi_k moved_ik) x <= b_i for all xi of a set."""

    def __init__(self, variables, rows, factors, seed=0):
        rng = np.random.default_rng(seed)
        self.nominal = rng.uniform(1, 2, (rows, variables))
        self.moved = 0.1 * rng.uniform(-1, 1, (rows, factors, variables))
        self.limits = rng.uniform(50, 60, rows)
        self.gains = rng.uniform(1, 2, variables)
        self.rows, self.factors, self.variables = rows, factors, variables

    def __str__(self):
        return f"{self.rows} rows x {self.variables} variables x {self.factors} factors"

    def set_of(self, kind):
        zero, one = [0.0] * self.factors, [1.0] * self.factors
        if kind == "box":
            return BoxSet([(-1, 1)] * self.factors)
        if kind == "budget":
            return CardinalitySet(zero, one, min(BUDGET, self.factors), one)
        return AxisAlignedEllipsoidalSet(zero, one)

    def declared(self, kind):
        m = pyo.ConcreteModel()
        m.x = pyo.Var(range(self.variables), bounds=(0, 10))
        m.gain = pyo.Objective(expr=sum(float(g) * m.x[j] for j, g in enumerate(self.gains)), sense=pyo.maximize)
        nominal, moved = self.nominal.tolist(), self.moved.tolist()

        def rule(m, i, xi):
            return sum(
                (nominal[i][j] + sum(moved[i][k][j] * xi[k] for k in range(self.factors))) * m.x[j]
                for j in range(self.variables)
            ) <= self.limits[i]  # fmt: skip

        m.rows = osilp.SemiInfiniteConstraint(range(self.rows), self.set_of(kind), rule=rule)
        return m


def farthest(kind, gradients):
    """Worst vectors of a set for each row of gradients."""
    if kind == "box":
        return np.sign(gradients)
    if kind == "ellipsoid":
        return gradients / np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), 1e-300)
    share = np.clip(min(BUDGET, gradients.shape[1]) - np.arange(gradients.shape[1]), 0, 1)
    taken = np.empty_like(gradients)
    np.put_along_axis(taken, np.argsort(-np.abs(gradients), axis=1), np.broadcast_to(share, taken.shape), axis=1)
    return taken * np.sign(gradients)


def plain_exchange(instance, kind):
    """Violated rows added to one warm HiGHS model: what a specialist would write by hand for this very problem."""
    highs, columns = dense_highs(instance.gains, 10.0, instance.nominal, instance.limits), instance.variables
    while True:
        highs.run()
        x = np.array(highs.getSolution().col_value)
        gradients = instance.moved @ x
        worst = farthest(kind, gradients)
        excess = instance.nominal @ x + (gradients * worst).sum(axis=1) - instance.limits
        violated = excess > 1e-8 * instance.limits  # HiGHS leaves 1e-7
        if not violated.any():
            return highs.getObjectiveValue()
        cuts = instance.nominal[violated] + np.einsum("rk,rkn->rn", worst[violated], instance.moved[violated])
        count = len(cuts)
        starts = (np.arange(count) * columns).astype(np.int32)
        indices = np.tile(np.arange(columns), count).astype(np.int32)
        limits = instance.limits[violated]
        highs.addRows(count, np.full(count, -np.inf), limits, cuts.size, starts, indices, cuts.ravel())


def with_rsome(instance, kind):
    import rsome
    from rsome import ro

    m = ro.Model()
    x, z = m.dvar(instance.variables), m.rvar(instance.factors)
    uncertainty = {
        "box": (z >= -1, z <= 1),
        "budget": (rsome.norm(z, np.inf) <= 1, rsome.norm(z, 1) <= BUDGET),
        "ellipsoid": (rsome.norm(z, 2) <= 1,),
    }[kind]
    m.minmax(-(instance.gains @ x), uncertainty)
    for i in range(instance.rows):
        m.st((instance.nominal[i] @ x + (z @ instance.moved[i]) @ x <= instance.limits[i]).forall(uncertainty))
    m.st(x >= 0, x <= 10)
    if kind == "ellipsoid":
        # Its own solver leaves cones out of the problem, with a warning.
        from rsome import eco_solver

        m.solve(eco_solver, display=False)
    else:
        m.solve(display=False)
    return -m.get()


def with_cvxpy(instance, kind):
    import cvxpy

    x = cvxpy.Variable(instance.variables)
    rows = [x >= 0, x <= 10]
    for nominal, moved, limit in zip(instance.nominal, instance.moved, instance.limits, strict=True):
        gradient = moved @ x
        if kind == "budget":
            level, beyond = cvxpy.Variable(nonneg=True), cvxpy.Variable(instance.factors, nonneg=True)
            rows += [nominal @ x + BUDGET * level + cvxpy.sum(beyond) <= limit]
            rows += [gradient <= level + beyond, -gradient <= level + beyond]
        else:
            rows.append(nominal @ x + (cvxpy.norm1 if kind == "box" else cvxpy.norm2)(gradient) <= limit)
    problem = cvxpy.Problem(cvxpy.Maximize(instance.gains @ x), rows)
    problem.solve(solver=cvxpy.CLARABEL if kind == "ellipsoid" else cvxpy.HIGHS)
    return problem.value


def with_pyros(instance, kind):
    """A task that solves the model declared here."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(instance.variables), bounds=(0, 10), initialize=0)
    m.xi = pyo.Param(range(instance.factors), initialize=0.0, mutable=True)
    m.loss = pyo.Objective(expr=-sum(float(g) * m.x[j] for j, g in enumerate(instance.gains)))
    nominal, moved = instance.nominal.tolist(), instance.moved.tolist()
    m.rows = pyo.Constraint(
        range(instance.rows),
        rule=lambda m, i: sum(
            (nominal[i][j] + sum(moved[i][k][j] * m.xi[k] for k in range(instance.factors))) * m.x[j]
            for j in range(instance.variables)
        ) <= instance.limits[i],
    )  # fmt: skip
    highs = pyo.SolverFactory("appsi_highs")

    def task():
        found = pyo.SolverFactory("pyros").solve(
            model=m,
            first_stage_variables=[m.x],
            second_stage_variables=[],
            uncertain_params=[m.xi],
            uncertainty_set=instance.set_of(kind),
            local_solver=highs,
            global_solver=highs,
            objective_focus=ObjectiveType.worst_case,
            solve_master_globally=True,
            progress_logger=logging.getLogger("quiet"),
        )
        return -found.final_objective_value

    return task


@contextlib.contextmanager
def silence():
    """Keep what solvers print, from C too, away from the table."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            yield
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)


def installed():
    """The peers whose packages are here, those of the solvers they are given too."""
    peers = {
        "rsome": (with_rsome, ("rsome", "ecos")),
        "cvxpy": (with_cvxpy, ("cvxpy",)),
        "by hand": (plain_exchange, ()),
    }
    found = {}
    for name, (peer, packages) in peers.items():
        missing = [package for package in packages if find_spec(package) is None]
        if missing:
            print(f"without {name}: {', '.join(missing)} not installed", flush=True)
        else:
            found[name] = peer
    return found


def side_by_side(kind, instance, peers, turns):
    (declaring,), (m,) = timed(lambda: instance.declared(kind), turns=1)
    with silence():
        (ours, *theirs), (optimum, *optima) = timed(
            lambda: osilp.solve(m, progress=False, load=False).objective,
            *(lambda peer=peer: peer(instance, kind) for peer in peers.values()),
            turns=turns,
        )
    limits = {"rsome": 1.0 if kind == "ellipsoid" else 0.5, "by hand": 5.0}
    lines = [Figure(f"{kind}, {instance}, declared model to answer", ours, "s")]
    for peer, taken, value in zip(peers, theirs, optima, strict=True):
        lines.append(Figure(f"{kind}, to the answer", ours / taken, "x", peer, limits.get(peer)))
        lines.append(Figure(f"{kind}, relative difference of the optima", abs(value / optimum - 1), "", peer))
    return [*lines, Figure(f"{kind}, declaring the rules in Pyomo, apart", declaring, "s")]


def against_pyros(instance, turns):
    lines = []
    for kind in ("box", "budget"):
        m, peer = instance.declared(kind), "PyROS with HiGHS"
        (ours,), (value,) = timed(lambda m=m: osilp.solve(m, progress=False, load=False).objective, turns=turns)
        with silence():
            # Once: it is slow enough to be told apart from noise.
            (theirs,), (optimum,) = timed(with_pyros(instance, kind), turns=1)
        lines.append(Figure(f"speedup, {kind}, {instance}", theirs / ours, "x", peer, 100, at_least=True))
        lines.append(Figure(f"{kind}, relative difference of the optima", abs(optimum / value - 1), "", peer, 1e-6))
    return lines


def large(instance):
    """This package alone on a larger instance."""
    lines = []
    for kind in KINDS:
        (declaring,), (m,) = timed(lambda kind=kind: instance.declared(kind), turns=1)
        result = osilp.solve(m, progress=False)
        gap = result.gap / abs(result.objective)
        lines.append(Figure(f"{kind}, {instance}, declared model to answer", result.seconds, "s"))
        lines.append(Figure(f"{kind}, {instance}, {result.status}, relative gap", gap, "", "its objective", 1e-6))
        lines.append(Figure(f"{kind}, {instance}, declaring the rules in Pyomo, apart", declaring, "s"))
    return lines


def figures(quick=False):
    peers, turns = installed(), 5 if quick else 7
    lines = []
    for kind in KINDS:
        lines += side_by_side(kind, Instance(50, 30, 10), peers, turns)
    lines += against_pyros(Instance(20, 10, 5), turns)
    return lines + large(Instance(50, 75, 15) if quick else Instance(200, 300, 30))


if __name__ == "__main__":
    shown("Robust", figures("--quick" in sys.argv))
