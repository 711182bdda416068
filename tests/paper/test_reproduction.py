"""The paper again: inputs as it describes them, algorithms as it prints them, and claims that can be refuted."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import osilp_pyomo as osilp
from osilp_pyomo.paper.algorithms import PrintedAccelerate, PrintedMirrorDescent, PrintedTwoStage
from osilp_pyomo.paper.claims import (
    CORRECTED,
    GUARDED,
    NO,
    PAPER_REGRET,
    PAPER_VIOLATION,
    PRINTED,
    PROJECTED_REGRET,
    SHORT,
    SINGLE_POINTS,
    UNDECIDED,
    YES,
    Claim,
    Evidence,
    Finding,
    all_claims,
    median_interval,
)
from osilp_pyomo.paper.experiments import (
    KINDS,
    Experiment,
    PaperInput,
    experiments,
    least_stage,
    paper_program,
    reproduce,
)
from osilp_pyomo.paper.page import claims_table, paper_page

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
    limit = program.evaluator.resources["pointwise"].total
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


@pytest.mark.parametrize("guard", ["none", "projected"])
@pytest.mark.parametrize(
    ("policy", "step"),
    [(PrintedMirrorDescent(POINTS), 1 / np.sqrt(HORIZON)), (PrintedAccelerate(POINTS), 1 / np.log(HORIZON))],
    ids=["mirror descent", "accelerate"],
)
def test_first_order_algorithms_as_printed(instance, policy, step, guard):
    program, data, profiles, *numbers = instance
    run = program.replay(policy, data, guard, profiles=profiles)
    wanted, taken = printed_decisions(*numbers, step, guard != "none").T
    assert run.wanted.tolist() == wanted.tolist()
    assert 0 < wanted.sum() < HORIZON
    # Where the printed guard takes nothing, that of this package takes the part that fits.
    assert (run.decisions.to_numpy() >= taken).all()
    if guard == "none":
        assert run.decisions.tolist() == taken.tolist()


def projected(point, centre, radius):
    """The nearest point of orthant and ball, by a solver that knows nothing of either's form."""
    found = minimize(
        lambda w: ((w - point) ** 2).sum() / radius**2, np.maximum(centre, 0), jac=lambda w: 2 * (w - point) / radius**2,
        bounds=[(0, None)] * len(point), method="SLSQP", options={"maxiter": 500, "ftol": 1e-15},
        constraints={"type": "ineq", "fun": lambda w: 1 - ((w - centre) ** 2).sum() / radius**2,
                     "jac": lambda w: -2 * (w - centre) / radius**2},
    )  # fmt: skip
    return found.x


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
        learner = projected(learner + size / (3 * largest**2) / 2**level * gradient, centre, size / 2**level)
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
    assert (paper_program("uniform", 50, 100, 0).evaluator.resources["pointwise"].total / 100 >= 2).all()


def test_printed_levels_are_longer_than_any_horizon_of_the_paper():
    for kind in KINDS:
        sharpness, least = least_stage(kind, 2000, 0)
        assert sharpness > 0
        assert least > 1e5


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


@pytest.mark.long
def test_every_claim_has_a_verdict_and_figures(small):
    _, studies, _ = small
    claims = list(all_claims(studies))
    assert len(claims) == 26
    for claim in claims:
        assert claim.verdict.startswith(("agrees", "does not agree", "not decided"))
        assert claim.findings[0].algorithms.startswith(PRINTED)
        assert claim.findings[0].basis == claim.basis
        assert all(any(mark in each.figures for mark in ("%", "T^", "no rate", "v =")) for each in claim.findings)
    assert claims_table(claims)["claim"].tolist() == list(range(1, 27))
    kept = claims_table(claims).set_index("claim").loc[5, "figures"]
    assert "by the paper's v: " in kept
    assert "at single points: " in kept


@pytest.mark.long
def test_the_page_states_every_claim(small):
    pytest.importorskip("matplotlib")
    chosen, studies, _ = small
    text = paper_page(studies, chosen)
    for claim in all_claims(studies):
        assert claim.statement in text
    assert text.count("<figure>") == 2 * len(chosen)
    assert "<script" not in text


@pytest.mark.long
def test_a_second_call_repeats_nothing(small):
    chosen, studies, folder = small
    # Times of steps are measured anew whenever a trial runs, so that equal ones were read from the folder.
    again = reproduce(folder, chosen[:1], 3, workers=1, progress=False)
    pd.testing.assert_frame_equal(again[chosen[0].name].runs, studies[chosen[0].name].runs, check_exact=True)
    assert {path.name for path in Path(folder).iterdir()} == {
        f"{each.name}-{points}" for each in chosen for points, _ in each.parts
    }


def claim_of(basis, *found):
    return Claim("", "", "", basis, tuple(Finding(algorithms, of, holds, "") for algorithms, of, holds in found))


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (claim_of(PAPER_REGRET, (PRINTED, PAPER_REGRET, YES), (SHORT, PAPER_REGRET, YES)), "agrees"),
        (claim_of(PAPER_REGRET, (PRINTED, PAPER_REGRET, YES), (SHORT, PAPER_REGRET, NO)), "agrees in part"),
        (claim_of(PAPER_REGRET, (PRINTED, PAPER_REGRET, UNDECIDED), (CORRECTED, PAPER_REGRET, YES)), "not decided"),
        (claim_of(PAPER_REGRET, (PRINTED, PAPER_REGRET, NO), (CORRECTED, PAPER_REGRET, YES)), "agrees only as corrected"),
        (claim_of(PAPER_REGRET, (PRINTED, PAPER_REGRET, NO), (CORRECTED, PROJECTED_REGRET, YES)),
         "agrees only as corrected, against R*_Phi"),
        (claim_of(PAPER_REGRET, (PRINTED, PAPER_REGRET, NO), (PRINTED, PROJECTED_REGRET, YES)),
         "agrees only as printed, against R*_Phi"),
        (claim_of(PAPER_REGRET, (PRINTED, PAPER_REGRET, NO), ("accepting everything", PROJECTED_REGRET, YES)),
         "does not agree"),
        (claim_of(PAPER_VIOLATION, (PRINTED, PAPER_VIOLATION, YES), (PRINTED, SINGLE_POINTS, NO)),
         "agrees by the paper's v only"),
        (claim_of(PAPER_VIOLATION, (PRINTED, PAPER_VIOLATION, YES), (PRINTED, SINGLE_POINTS, YES)), "agrees"),
    ],
)  # fmt: skip
def test_verdicts(claim, verdict):
    assert claim.verdict == verdict


@pytest.mark.parametrize(
    ("values", "interval"),
    [
        (range(1, 11), (5.5, 2, 9)),
        (range(1, 7), (3.5, 1, 6)),
        (range(1, 6), (3, -np.inf, np.inf)),
        ([7] * 20, (7, 7, 7)),
    ],
)
def test_intervals_of_medians(values, interval):
    assert median_interval(list(values)) == interval


def imagined(studies, name, numbers):
    """The studies with one of them replaced: {measure: f(policy, guard, size)} in place of what was measured."""
    study = studies[name]
    along = "horizon" if name.endswith("-T") else "points"
    runs = study.runs.copy()
    for measure, value in numbers.items():
        runs[measure] = [
            float(value(policy, guard, size))
            for policy, guard, size in zip(runs["policy"], runs["guard"], runs[along], strict=True)
        ]
    tables = {frame: getattr(study, frame) for frame in ("rows", "offline", "paths", "curves", "iterations")}
    return {**studies, name: osilp.Study(study.settings, {"runs": runs, **tables})}


def found(studies, words):
    return next(claim for claim in all_claims(studies) if words in f"{claim.where}: {claim.statement}")


TRUE = "relative_regret_discretized"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "words", "numbers", "holds"),
    [
        # Sizes are T = 40 and 120, m = 30 and 60.
        ("normal-T", "Figure 2 (normal input, 2,000 rows): The ratio", {TRUE: lambda p, g, T: 0.3 if T == 40 else 0.05}, YES),
        ("normal-T", "Figure 2 (normal input, 2,000 rows): The ratio", {TRUE: lambda p, g, T: -0.005}, YES),
        ("normal-T", "Figure 2 (normal input, 2,000 rows): The ratio", {TRUE: lambda p, g, T: 0.3 if T == 40 else 0.29}, NO),
        ("normal-T", "Figure 2 (normal input, 2,000 rows): The ratio", {TRUE: lambda p, g, T: -0.15}, NO),
        ("normal-T", "Figure 2 (normal input, 2,000 rows): Simple-GD has", {TRUE: lambda p, g, T: 0.5}, YES),
        ("normal-T", "Figure 2 (normal input, 2,000 rows): Simple-GD has", {TRUE: lambda p, g, T: 20 / T}, NO),
        ("normal-m", "Figure 2 (normal input, 2,000 rows): That is because", {TRUE: lambda p, g, m: m / 100}, YES),
        ("normal-m", "Figure 2 (normal input, 2,000 rows): That is because", {TRUE: lambda p, g, m: 0.5}, NO),
        ("normal-T", "Figure 2 (normal input, 2,000 rows): All three", {"test_violation": lambda p, g, T: 0.0}, YES),
        ("normal-T", "Figure 2 (normal input, 2,000 rows): All three", {"test_violation": lambda p, g, T: 0.01 * T}, NO),
        ("normal-m", "Figure 5 (normal input, T = 5,000): Even", {TRUE: lambda p, g, m: 0.3 if "Simple" in p else 0.02}, YES),
        ("normal-m", "Figure 5 (normal input, T = 5,000): Even", {TRUE: lambda p, g, m: 0.02}, NO),
        ("normal-m", "Figure 5 (normal input, T = 5,000): When", {TRUE: lambda p, g, m: 0.06}, YES),
        ("normal-m", "Figure 5 (normal input, T = 5,000): When", {TRUE: lambda p, g, m: 0.32}, NO),
        ("cauchy-m", "Figure 6 (cauchy input, T = 5,000): Simple-GD is prone", {TRUE: lambda p, g, m: 5.0}, YES),
        ("cauchy-m", "Figure 6 (cauchy input, T = 5,000): Simple-GD is prone", {TRUE: lambda p, g, m: 0.01}, NO),
        ("permutation-T", "Figure 7 (random permutation, 2,000 rows): Both", {TRUE: lambda p, g, T: T**-0.5}, YES),
        ("permutation-T", "Figure 7 (random permutation, 2,000 rows): Both", {TRUE: lambda p, g, T: T**-1.0}, YES),
        ("permutation-T", "Figure 7 (random permutation, 2,000 rows): Both", {TRUE: lambda p, g, T: T**-0.1}, NO),
        ("permutation-T", "Figure 7 (random permutation, 2,000 rows): Both", {TRUE: lambda p, g, T: -0.1}, NO),
        ("permutation-T", "Figure 7 (random permutation, 2,000 rows): The violation", {"test_violation": lambda p, g, T: 9.0}, NO),
        ("permutation-m", "Figure 8", {TRUE: lambda p, g, m: m / 100 if "Simple" in p else 0.01}, YES),
        ("permutation-m", "Figure 8", {TRUE: lambda p, g, m: 1 / m if "Simple" in p else 0.01}, NO),
    ],
)  # fmt: skip
def test_every_rule_can_be_met_and_missed(small, name, words, numbers, holds):
    _, studies, _ = small
    assert found(imagined(studies, name, numbers), words).findings[0].holds == holds


@pytest.mark.long
def test_who_is_faster_is_left_open_where_the_interval_is(small):
    _, studies, _ = small
    # Three trials have an interval without ends.
    assert (
        found(studies, "Figure 2 (normal input, 2,000 rows): Ours-log converges faster").findings[0].holds == UNDECIDED
    )
    study = studies["normal-T"]
    runs = pd.concat([study.runs.assign(trial=study.runs["trial"] + 3 * k) for k in range(4)], ignore_index=True)
    tables = {frame: getattr(study, frame) for frame in ("rows", "offline", "paths", "curves", "iterations")}
    many = {**studies, "normal-T": osilp.Study(study.settings, {"runs": runs, **tables})}
    for better, holds in (("Ours-log", YES), ("Ours-MD", NO)):
        numbers = {TRUE: lambda p, g, T, better=better: 0.1 if p.startswith(better) else 0.2}
        claim = found(
            imagined(many, "normal-T", numbers), "Figure 2 (normal input, 2,000 rows): Ours-log converges faster"
        )
        assert {each.holds for each in claim.findings if each.basis == PAPER_REGRET} == {holds}


@pytest.mark.long
def test_remarks_are_made_where_they_are_true_only(small):
    _, studies, _ = small
    words = "Figure 2 (normal input, 2,000 rows): "
    spare = {"test_violation": lambda p, g, T: 0.0, "least_remaining": lambda p, g, T: 0.2}
    assert "tells nothing" in found(imagined(studies, "normal-T", spare), f"{words}The ratio").remark
    short = {**spare, "least_remaining": lambda p, g, T: -0.1}
    assert found(imagined(studies, "normal-T", short), f"{words}The ratio").remark == ""
    step = imagined(studies, "normal-T", {TRUE: lambda p, g, T: 0.05 if g == "pointwise" else 0.5})
    assert "It is the step rather than the number of rows" in found(step, f"{words}That is because").remark
    poor = imagined(studies, "normal-T", {TRUE: lambda p, g, T: 0.5})
    assert found(poor, f"{words}That is because").remark == ""
    assert "little is served" in found(imagined(poor, "normal-T", spare), f"{words}All three").remark


@pytest.mark.long
def test_slopes_are_exponents(small):
    _, studies, _ = small
    evidence = Evidence(imagined(studies, "normal-T", {TRUE: lambda p, g, T: 3 * T**-0.5})["normal-T"], "horizon")
    assert evidence.slope(("Ours-MD", "none"), TRUE) == pytest.approx(-0.5)
    assert GUARDED.startswith(CORRECTED)
