"""The paper again: inputs as it describes them, algorithms as it prints them, and claims that can be refuted."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import osilp_pyomo as osilp
from osilp_pyomo.claims import Claim, Evidence, Finding, all_claims
from osilp_pyomo.paper_page import claims_table, paper_page
from osilp_pyomo.printed import PrintedAccelerate, PrintedMirrorDescent, PrintedTwoStage
from osilp_pyomo.reproduction import (
    KINDS,
    Experiment,
    PaperInput,
    experiments,
    least_stage,
    paper_program,
    reproduce,
)

POINTS, HORIZON = 60, 80


@pytest.fixture(scope="module", params=["normal", "permutation"])
def instance(request):
    """A small instance: the program, its arrivals, and the numbers of the paper: r, a, b and the printed Phi."""
    program = paper_program(request.param, POINTS, HORIZON, 3)
    data, profiles = PaperInput(request.param, POINTS)(np.random.default_rng(1), HORIZON)
    if request.param == "normal":
        which = np.random.default_rng(2).integers(len(data), size=HORIZON)
        data, profiles = data.iloc[which].reset_index(drop=True), {"column": profiles["column"][which]}
    places = (np.arange(POINTS) + 0.5) / POINTS
    grid = program.evaluator.grids[0]
    phi = osilp.RBF(10).evaluate(grid.domain, places[:, None])
    limit = program.evaluator.point_total
    return program, data, profiles, data["value"].to_numpy(), profiles["column"], limit, phi


def printed_decisions(rewards, columns, limit, phi, step, guarded):
    """Algorithm 1, and the first stage of Algorithm 3, line by line with the printed Phi."""
    d, w, left = phi.T @ limit / len(rewards), np.zeros(phi.shape[1]), phi.T @ limit
    decisions = []
    for r, a in zip(rewards, columns, strict=True):
        use = phi.T @ a
        wanted = float(r > use @ w)
        taken = wanted * float(np.all(use * wanted <= left)) if guarded else wanted
        w = np.maximum(w + step * (use * wanted - d), 0)
        left = left - use * taken
        decisions.append((wanted, taken))
    return np.array(decisions)


def test_mirror_descent_as_printed(instance):
    program, data, profiles, *numbers = instance
    run = program.replay(PrintedMirrorDescent(POINTS), data, "none", profiles=profiles)
    wanted = printed_decisions(*numbers, 1 / np.sqrt(HORIZON), False)[:, 0]
    assert run.decisions.tolist() == wanted.tolist()
    assert 0 < wanted.sum() < HORIZON


def test_accelerate_as_printed_never_leaves_its_first_stage(instance):
    program, data, profiles, *numbers = instance
    run = program.replay(PrintedAccelerate(POINTS), data, "none", profiles=profiles)
    assert run.decisions.tolist() == printed_decisions(*numbers, 1 / np.log(HORIZON), False)[:, 0].tolist()


def two_stage_decisions(rewards, columns, limit, phi, per_level):
    """Algorithm 5 line by line with the printed Phi; r is the largest reward so far."""
    horizon = len(rewards)
    d = phi.T @ limit / horizon
    w, learner, centre = (np.zeros(phi.shape[1]) for _ in range(3))
    level, points, decisions, largest, refined = 0, [], [], 0.0, False
    for r, a in zip(rewards, columns, strict=True):
        use, largest = phi.T @ a, max(largest, abs(r))
        x = float(r > use @ w)
        decisions.append(x)
        gradient = use * x - d
        size = largest / d.min()
        levels = int(np.ceil(np.log(max(size * horizon, np.e))))
        if refined:
            w = np.maximum(w + gradient / horizon, 0)
            continue
        w = np.maximum(w + gradient / np.log(horizon), 0)
        points.append(learner)
        learner = np.maximum(learner + size / (3 * largest**2) / 2**level * gradient, 0)
        radius, distance = size / 2**level, np.linalg.norm(learner - centre)
        if distance > radius:
            learner = np.maximum(centre + radius / distance * (learner - centre), 0)
        if len(points) == per_level:
            learner = centre = np.mean(points, axis=0)
            points, level = [], level + 1
            if level >= levels:
                w, refined = centre, True
    return decisions


def test_two_stages_as_printed(instance):
    program, data, profiles, *numbers = instance
    run = program.replay(PrintedTwoStage(POINTS, 3), data, "none", profiles=profiles)
    assert run.decisions.tolist() == two_stage_decisions(*numbers, 3)


@pytest.mark.parametrize("policy", [PrintedMirrorDescent(30), PrintedAccelerate(30), PrintedTwoStage(30)], ids=repr)
def test_printed_policies_keep_the_contract(policy):
    osilp.testing.check_policy(policy)


def test_inputs_are_those_of_the_paper():
    rng = np.random.default_rng(0)
    uniform, curves = PaperInput("uniform", 500)(rng, 5000)
    assert uniform["value"].between(0, 1).all()
    assert (curves["column"] >= 0).all() & (curves["column"] <= 4).all()
    assert curves["column"].shape == (100, 500)
    _, curves = PaperInput("normal", 500)(rng, 5000)
    assert curves["column"].mean() == pytest.approx(4, abs=0.02)
    assert curves["column"].std() == pytest.approx(1, abs=0.02)
    _, curves = PaperInput("cauchy", 500)(rng, 5000)
    assert np.median(curves["column"]) == pytest.approx(2, abs=0.05)
    _, curves = PaperInput("permutation", 40)(rng, 1003)
    assert curves["column"].shape == (1003, 40)
    assert set(np.unique(curves["column"][-203:])) == {-1.0, 0.0, 1.0}
    assert (paper_program("uniform", 50, 100, 0).evaluator.point_total / 100 >= 2).all()


def test_printed_levels_are_longer_than_any_horizon_of_the_paper():
    assert all(least_stage(kind, 2000, 0) > 1e5 for kind in KINDS)


def test_all_figures_are_there():
    for quick in (True, False):
        found = experiments(quick)
        assert [each.name for each in found] == [f"{kind}-{along}" for along in "Tm" for kind in KINDS]
        assert all(each.fixed == (2000 if each.along == "horizon" else 5000) for each in found)
        assert all(5000 in each.sizes and max(each.sizes) > 5000 for each in found if each.along == "horizon")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Every experiment, small."""
    chosen = [
        *(Experiment(f"{kind}-T", kind, "horizon", (40, 120), 50) for kind in KINDS),
        *(Experiment(f"{kind}-m", kind, "points", (30, 60), 80) for kind in KINDS),
    ]
    folder = tmp_path_factory.mktemp("paper")
    return chosen, reproduce(folder, chosen, 3, workers=2, progress=False), folder


def test_every_claim_has_a_verdict_and_figures(small):
    _, studies, _ = small
    claims = list(all_claims(studies))
    assert len(claims) == 22
    for claim in claims:
        assert claim.verdict in ("agrees", "agrees in part", "agrees only as corrected", "does not agree")
        assert claim.findings[0].variant.startswith("as printed")
        assert all("%" in each.figures or "T^" in each.figures or "no rate" in each.figures for each in claim.findings)
    assert claims_table(claims)["claim"].tolist() == list(range(1, 23))


def test_the_page_states_every_claim(small):
    pytest.importorskip("matplotlib")
    chosen, studies, _ = small
    text = paper_page(studies, chosen)
    for claim in all_claims(studies):
        assert claim.statement in text
    assert text.count("<figure>") == 2 * len(chosen)
    assert "<script" not in text


def test_a_second_call_repeats_nothing(small):
    chosen, studies, folder = small
    before = {path: path.stat().st_mtime_ns for path in Path(folder).rglob("curves.csv")}
    again = reproduce(folder, chosen[:1], 3, workers=1, progress=False)
    pd.testing.assert_frame_equal(again[chosen[0].name].runs, studies[chosen[0].name].runs, check_exact=True)
    assert len(before) == len(KINDS) * 3


def claim_of(*holds):
    variants = ("as printed, against R*_T", "as printed, J = 10", "as corrected")
    return Claim("", "", "", tuple(Finding(variant, each, "") for variant, each in zip(variants, holds, strict=True)))


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        ((True, True, False), "agrees"), ((True, False, True), "agrees in part"),
        ((False, False, True), "agrees only as corrected"), ((False, False, False), "does not agree"),
    ],
)  # fmt: skip
def test_verdicts(holds, verdict):
    assert claim_of(*holds).verdict == verdict


def test_claims_can_be_refuted_and_confirmed(small):
    """The same study with regrets put in by hand: a claim follows the numbers."""
    _, studies, _ = small
    study = studies["normal-T"]

    def with_regret(at_first, at_last):
        runs = study.runs.copy()
        runs["relative_regret_discretized"] = np.where(runs["horizon"] == 40, at_first, at_last)
        tables = {name: getattr(study, name) for name in ("rows", "offline", "paths", "curves", "iterations")}
        return {**studies, "normal-T": osilp.Study(study.settings, {"runs": runs, **tables})}

    def converges(found):
        return next(claim for claim in all_claims(found) if claim.where.startswith("Figure 2")).findings[0].holds

    assert converges(with_regret(0.3, 0.1))
    assert converges(with_regret(0.3, -0.005))
    assert not converges(with_regret(0.3, 0.29))
    assert not converges(with_regret(0.3, -0.15))
    evidence = Evidence(with_regret(0.4, 0.2)["normal-T"], "horizon")
    # From 40 to 120 arrivals regret is halved: T^k with k = log(1/2) / log 3.
    assert evidence.slope(("Ours-MD", "none"), "relative_regret_discretized") == pytest.approx(np.log(0.5) / np.log(3))
    mean, half = evidence.difference(("Ours-MD", "none"), ("Ours-log", "projected"), "relative_regret_discretized")
    assert (mean, half) == (0.0, 0.0)
