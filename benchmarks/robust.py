"""Robust linear programs side by side with their peers: ratios from one run, each beside the limit it should keep.

Run ``pip install -e '.[peers]'`` and then ``python benchmarks/robust.py``; it takes about two minutes. Peers that are
not installed are left out. Every time is a median of runs that take turns, from data (peers) or from the declared model
(this package) to the answer; what declaring the rules in Pyomo takes is shown apart.
"""

import contextlib
import logging
import os
import sys
import time

import highspy
import numpy as np
import pyomo.environ as pyo
from pyomo.contrib.pyros import AxisAlignedEllipsoidalSet, BoxSet, CardinalitySet, ObjectiveType

import osilp_pyomo as osilp

BUDGET = 4.0


class Instance:
    """max c x over 0 <= x <= 10 with (nominal_i + sum_k xi_k moved_ik) x <= b_i for all xi of a set."""

    def __init__(self, variables, rows, factors, seed=0):
        rng = np.random.default_rng(seed)
        self.nominal = rng.uniform(1, 2, (rows, variables))
        self.moved = 0.1 * rng.uniform(-1, 1, (rows, factors, variables))
        self.limits = rng.uniform(50, 60, rows)
        self.gains = rng.uniform(1, 2, variables)
        self.rows, self.factors, self.variables = rows, factors, variables

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
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    lp = highspy.HighsLp()
    columns = instance.variables
    lp.num_col_, lp.num_row_, lp.sense_ = columns, instance.rows, highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = instance.gains, np.zeros(columns), np.full(columns, 10.0)
    lp.row_lower_, lp.row_upper_ = np.full(instance.rows, -np.inf), instance.limits
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.arange(instance.rows + 1) * columns
    lp.a_matrix_.index_ = np.tile(np.arange(columns), instance.rows)
    lp.a_matrix_.value_ = instance.nominal.ravel()
    highs.passModel(lp)
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
    started = time.perf_counter()
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
    return time.perf_counter() - started, -found.final_objective_value


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


def in_turns(functions, repeats):
    """Median seconds and the answer of each function; those whose package is missing are left out."""
    times, answers = {}, {}
    for _ in range(repeats):
        for name, function in functions.items():
            started = time.perf_counter()
            try:
                with silence():
                    answers[name] = function()
            except ImportError:
                continue
            times.setdefault(name, []).append(time.perf_counter() - started)
    return {name: float(np.median(each)) for name, each in times.items()}, answers


def side_by_side(kind, instance, repeats=7):
    started = time.perf_counter()
    m = instance.declared(kind)
    declaring = time.perf_counter() - started
    seconds, answers = in_turns(
        {
            "osilp": lambda: osilp.solve(m, progress=False, load=False).objective,
            "plain": lambda: plain_exchange(instance, kind),
            "rsome": lambda: with_rsome(instance, kind),
            "cvxpy": lambda: with_cvxpy(instance, kind),
        },
        repeats,
    )
    ours = seconds["osilp"]
    limit = "<= 1" if kind == "ellipsoid" else "<= 0.5"
    table = [(f"{kind}: from the declared model to the answer (s)", ours, "")]
    for peer, wanted in (("rsome", limit), ("cvxpy", ""), ("plain", "<= 5")):
        if peer in seconds:
            difference = abs(answers[peer] / answers["osilp"] - 1)
            table.append((f"  osilp / {peer}", ours / seconds[peer], wanted))
            table.append((f"  relative difference of the optima from {peer}", difference, ""))
    table.append(("  declaring the rules in Pyomo (s), apart", declaring, ""))
    return table


def against_pyros():
    instance = Instance(20, 10, 5)
    table = []
    for kind in ("box", "budget"):
        m = instance.declared(kind)
        seconds, answers = in_turns({"osilp": lambda m=m: osilp.solve(m, progress=False, load=False).objective}, 7)
        with silence():
            theirs, optimum = with_pyros(instance, kind)
        table.append((f"PyROS with HiGHS / osilp, 20 x 10 x 5, {kind}", theirs / seconds["osilp"], ">= 100"))
        table.append(("  relative difference of the optima", abs(optimum / answers["osilp"] - 1), "<= 1e-6"))
    return table


def large():
    """300 rows x 200 variables x 30 factors, with the log it shows."""
    instance = Instance(200, 300, 30)
    table = []
    for kind in ("box", "budget", "ellipsoid"):
        started = time.perf_counter()
        m = instance.declared(kind)
        declaring = time.perf_counter() - started
        print(f"300 rows x 200 variables x 30 factors, {kind}:")
        result = osilp.solve(m, tee=True)
        table.append((f"300 x 200 x 30, {kind}: seconds to the answer", result.seconds, ""))
        table.append((f"  {result.status}, relative gap", result.gap / abs(result.objective), "<= 1e-6"))
        table.append(("  declaring the rules in Pyomo (s), apart", declaring, ""))
    return table


def main():
    rows = []
    for kind in ("box", "budget", "ellipsoid"):
        rows += side_by_side(kind, Instance(50, 30, 10))
    rows += against_pyros()
    rows += large()
    print(f"\n{'':<66} {'measured':>12}   limit")
    for name, value, limit in rows:
        print(f"{name:<66} {value:>12.4g}   {limit}")


if __name__ == "__main__":
    main()
