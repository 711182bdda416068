"""What the paper's numerical section states, claim by claim, what was measured, and whether they agree.

A claim has a rule that says when it holds, in numbers; the rule is tried on the algorithms as they are printed and as
they are corrected. Nothing here runs anything: claims read the studies of :mod:`osilp_pyomo.reproduction`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from osilp_pyomo.measures import measures_for, quantile, summarize
from osilp_pyomo.studies import Study

# The guards that the paper's algorithms have in its text: Algorithms 2 and Simple-GD none, Algorithm 5 its own.
_PRINTED = {
    "Ours-MD": ("Ours-MD, printed", "none"), "Ours-log": ("Ours-log, printed", "projected"),
    "Simple-GD": ("Simple-GD, printed", "none"),
}  # fmt: skip
_SHORT = {**_PRINTED, "Ours-log": ("Ours-log, printed, J = 10", "projected")}
_CORRECTED = {"Ours-MD": ("Ours-MD", "none"), "Ours-log": ("Ours-log", "projected"), "Simple-GD": ("Simple-GD", "none")}
_EVERYTHING = ("Accept everything", "none")
_VARIANTS = {"as printed": _PRINTED, "as printed, J = 10": _SHORT, "as corrected": _CORRECTED}

# Rules, in shares: what counts as nothing, as good, as poor, and as kept.
_NOTHING, _GOOD, _POOR, _KEPT = 0.01, 0.05, 0.10, 0.01
# A rate of T^-1/2, give or take a quarter.
_ROOT = (-0.75, -0.25)

_KEPT_RULE = f"No point is overrun by more than {_KEPT:.0%} of its limit at the largest T, mean over trials."

_TRUE, _PROJECTED = "relative_regret_discretized", "relative_regret_projected"


@dataclass(frozen=True)
class Finding:
    """What was measured of a claim in one variant: which, whether the rule holds, and the figures."""

    variant: str
    holds: bool
    figures: str


@dataclass(frozen=True)
class Claim:
    """Something that the paper states, the rule by which it is judged, what was found, and what else that shows."""

    where: str
    statement: str
    rule: str
    findings: tuple[Finding, ...]
    remark: str = ""

    @property
    def verdict(self) -> str:
        """Whether paper and measurement agree."""
        printed = [finding.holds for finding in self.findings if finding.variant.startswith("as printed")]
        if all(printed):
            return "agrees"
        if any(printed):
            return "agrees in part"
        corrected = any(finding.holds for finding in self.findings if finding.variant.startswith("as corrected"))
        return "agrees only as corrected" if corrected else "does not agree"


class Evidence:
    """The numbers of one experiment: means by size of the sweep, policy and guard."""

    def __init__(self, study: Study, along: str) -> None:
        self.study, self.along = study, along

    @cached_property
    def _means(self) -> pd.DataFrame:
        summary = summarize(self.study.runs, measures_for(self.study.benchmarks), [self.along, "policy", "guard"])
        means = summary.xs("mean", axis=1, level=1)
        assert isinstance(means, pd.DataFrame)
        return means

    @property
    def sizes(self) -> list[int]:
        """The sizes of the sweep."""
        return sorted(set(self.study.runs[self.along].tolist()))

    def means(self, entrant: tuple[str, str], measure: str) -> pd.Series:
        """Means of a measure over the sweep."""
        policy, guard = entrant
        return self._means[measure].xs(policy, level="policy").xs(guard, level="guard").sort_index()

    def difference(self, one: tuple[str, str], other: tuple[str, str], measure: str) -> tuple[float, float]:
        """Mean of one minus other on the same arrivals at the largest size, and half its 95 % interval."""
        runs = self.study.runs[self.study.runs[self.along] == self.sizes[-1]]
        pair = [
            runs[(runs["policy"] == name) & (runs["guard"] == guard)].set_index("trial")[measure]
            for name, guard in (one, other)
        ]
        apart = (pair[0] - pair[1]).to_numpy(dtype=float)
        if len(apart) < 2:
            return float(apart.mean()), np.inf
        half = quantile(len(apart)) * apart.std(ddof=1) / np.sqrt(len(apart))
        return float(apart.mean()), float(half)

    def slope(self, entrant: tuple[str, str], measure: str) -> float:
        """Exponent of T that fits a measure best; nan where it is not positive."""
        means = self.means(entrant, measure)
        if (means <= 0).any():
            return np.nan
        return float(np.polyfit(np.log(means.index.to_numpy(dtype=float)), np.log(means.to_numpy()), 1)[0])


def all_claims(studies: Mapping[str, Study]) -> Iterator[Claim]:
    """Every claim of the section, in its order; ``studies`` by the names of the experiments."""
    for kind, figure in (("uniform", "Figure 1"), ("normal", "Figure 2"), ("cauchy", "Figure 3")):
        evidence = Evidence(studies[f"{kind}-T"], "horizon")
        where = f"{figure} ({kind} input, 2,000 rows)"
        statement = "The ratio of regret and optimal value of both Ours-log and Ours-MD can converge to 0."
        yield _converge(evidence, where, ("Ours-log", "Ours-MD"), statement)
        yield _faster(evidence, where)
        yield _poor_throughout(evidence, where)
        yield _kept(evidence, where)
    for kind, figure in (("uniform", "Figure 4"), ("normal", "Figure 5")):
        evidence = Evidence(studies[f"{kind}-m"], "points")
        where = f"{figure} ({kind} input, T = 5,000)"
        yield _good_when_small(evidence, where)
        yield _stable(evidence, where)
    yield _stable(Evidence(studies["cauchy-m"], "points"), "Figure 6 (cauchy input, T = 5,000)")
    yield _degrades(
        Evidence(studies["cauchy-m"], "points"), Evidence(studies["normal-m"], "points"),
        "Figure 6 (cauchy input, T = 5,000)",
    )  # fmt: skip
    evidence = Evidence(studies["permutation-T"], "horizon")
    where = "Figure 7 (random permutation, 2,000 rows)"
    yield _root_rate(evidence, where)
    yield _converge(evidence, where, ("Ours-MD",), "Ours-MD converges faster than Simple-GD and can converge to 0.")
    yield _kept_by_both(evidence, where)
    yield _deteriorates(Evidence(studies["permutation-m"], "points"), "Figure 8 (random permutation, T = 5,000)")


def _converge(evidence: Evidence, where: str, names: tuple[str, ...], statement: str) -> Claim:
    first, last = evidence.sizes[0], evidence.sizes[-1]

    def finding(
        variant: str, entrants: Mapping[str, tuple[str, str]], measure: str, run: tuple[str, ...] = names
    ) -> Finding:
        told, holds = [], True
        for name in run:
            means = evidence.means(entrants[name], measure)
            small = abs(means.iloc[-1]) <= _NOTHING
            holds &= small or 0 < means.iloc[-1] <= 0.5 * means.iloc[0]
            ends = f"{_percent(means.iloc[0])} at T = {first:,}, {_percent(means.iloc[-1])} at {last:,}"
            told.append(ends if len(run) == 1 else f"{name} {ends}")
            over = evidence.means(entrants[name], "relative_violation").iloc[-1]
            if means.iloc[-1] < -_NOTHING:
                told[-1] += f" (it overruns points by {_percent(over)} of their limit)"
        return Finding(variant, holds, "; ".join(told))

    everything = finding("accepting everything, against R*_Phi", {names[0]: _EVERYTHING}, _PROJECTED, names[:1])
    return Claim(
        where, statement,
        f"|regret| <= {_percent(_NOTHING)} at the largest T, or positive and at most half of that at the smallest.",
        (
            *(finding(f"{variant}, against R*_T", entrants, _TRUE) for variant, entrants in _VARIANTS.items()),
            *(finding(f"{variant}, against R*_Phi", entrants, _PROJECTED) for variant, entrants in _VARIANTS.items()),
            finding("as corrected, pointwise guard, against R*_T", _guarded("pointwise"), _TRUE),
            everything,
        ),
        "Accepting everything does the same: on this input no test function ever runs out, so that it tells nothing "
        "about the algorithms." if everything.holds else "",
    )  # fmt: skip


def _faster(evidence: Evidence, where: str) -> Claim:
    def finding(variant: str, entrants: Mapping[str, tuple[str, str]], measure: str) -> Finding:
        mean, half = evidence.difference(entrants["Ours-MD"], entrants["Ours-log"], measure)
        figures = f"regret of Ours-MD less that of Ours-log: {_percent(mean)} +- {_percent(half)} of the optimum"
        return Finding(variant, mean - half > 0, figures)

    both = {"Ours-MD": ("Ours-MD", "projected"), "Ours-log": ("Ours-log", "projected")}
    return Claim(
        where, "Ours-log converges faster than Ours-MD.",
        "On the same arrivals Ours-MD has more regret at the largest T, its 95 % interval above 0.",
        (
            *(finding(f"{variant}, against R*_T", entrants, _TRUE) for variant, entrants in _VARIANTS.items()),
            finding("as corrected, both with the projected guard, against R*_Phi", both, _PROJECTED),
        ),
    )  # fmt: skip


def _poor_throughout(evidence: Evidence, where: str) -> Claim:
    def finding(variant: str, entrant: tuple[str, str]) -> Finding:
        means = evidence.means(entrant, _TRUE)
        holds = means.iloc[-1] >= max(_POOR, 0.8 * means.iloc[0])
        figures = f"{_percent(means.iloc[0])} at T = {evidence.sizes[0]:,}, {_percent(means.iloc[-1])} at "
        return Finding(variant, holds, f"{figures}{evidence.sizes[-1]:,}")

    printed = finding("as printed, step 1/sqrt(T)", ("Simple-GD, printed", "none"))
    guarded = finding("that, with the pointwise guard", ("Simple-GD", "pointwise"))
    return Claim(
        where, "Simple-GD has poor performance; its curve implies an O(T) regret, because of the number of rows.",
        f"Regret against R*_T at the largest T is at least {_percent(_POOR)} and at least 0.8 of that at the smallest.",
        (printed, finding("the same algorithm with a scale-free step", ("Simple-GD", "none")), guarded),
        "It is the step and not the number of rows: with a scale-free step and no row overrun the same algorithm has "
        f"{guarded.figures}." if printed.holds and not guarded.holds else "",
    )  # fmt: skip


def _kept(evidence: Evidence, where: str) -> Claim:
    findings = tuple(
        _violation(evidence, variant, entrants, ("Ours-log", "Ours-MD", "Simple-GD"))
        for variant, entrants in _VARIANTS.items()
    )
    regret = float(evidence.means(_PRINTED["Ours-MD"], _TRUE).iloc[-1])
    remark = (
        f"As printed, rows are kept for little is served: Ours-MD leaves {_percent(regret)} of the optimum unearned."
        if findings[0].holds and regret >= _POOR
        else ""
    )
    return Claim(where, "All three algorithms can satisfy the constraints quite well.", _KEPT_RULE, findings, remark)


def _violation(
    evidence: Evidence, variant: str, entrants: Mapping[str, tuple[str, str]], names: tuple[str, ...]
) -> Finding:
    told, holds = [], True
    for name in names:
        over = float(evidence.means(entrants[name], "relative_violation").iloc[-1])
        tested = float(evidence.means(entrants[name], "test_violation").iloc[-1])
        holds &= over <= _KEPT
        told.append(f"{name} {_percent(over)} (the paper's v reads {tested:.3g})")
    return Finding(variant, holds, "; ".join(told))


def _good_when_small(evidence: Evidence, where: str) -> Claim:
    def finding(variant: str, entrants: Mapping[str, tuple[str, str]]) -> Finding:
        means = {name: evidence.means(entrants[name], _TRUE) for name in ("Ours-log", "Ours-MD", "Simple-GD")}
        small = {name: series[series.index <= 500] for name, series in means.items()}
        good = all((small[name].abs() <= _GOOD).all() for name in ("Ours-log", "Ours-MD"))
        holds = good and bool((small["Simple-GD"] >= _POOR).all())
        told = [f"{name} {_span(series)}" for name, series in small.items()]
        return Finding(variant, holds, f"regret for m <= 500: {'; '.join(told)}")

    return Claim(
        where,
        "Even when the number of constraints is small (less than 500), Ours-log and Ours-MD perform well, whereas "
        "Simple-GD is already poor.",
        f"For m <= 500 |regret| against R*_T is at most {_percent(_GOOD)} for both, and at least {_percent(_POOR)} for "
        "Simple-GD.",
        tuple(finding(variant, entrants) for variant, entrants in _VARIANTS.items()),
    )


def _stable(evidence: Evidence, where: str) -> Claim:
    def finding(variant: str, entrant: tuple[str, str], measure: str, benchmark: str) -> Finding:
        means = evidence.means(entrant, measure)
        return Finding(
            f"{variant}, against {benchmark}", bool(means.max() - means.min() <= _GOOD),
            f"regret {_span(means)} over m = {evidence.sizes[0]:,} to {evidence.sizes[-1]:,}",
        )  # fmt: skip

    return Claim(
        where, "When the number of constraints becomes larger, Ours-log is quite robust with stable performance.",
        f"Its mean regret differs by at most {_percent(_GOOD)} of the optimum between any two m.",
        (
            *(finding(variant, entrants["Ours-log"], _TRUE, "R*_T") for variant, entrants in _VARIANTS.items()),
            finding("as corrected", _CORRECTED["Ours-log"], _PROJECTED, "R*_Phi"),
        ),
    )  # fmt: skip


def _degrades(cauchy: Evidence, normal: Evidence, where: str) -> Claim:
    def finding(variant: str, entrant: tuple[str, str]) -> Finding:
        heavy, light = (float(each.means(entrant, _TRUE).iloc[-1]) for each in (cauchy, normal))
        over = float(cauchy.means(entrant, "relative_violation").iloc[-1])
        figures = f"{_percent(heavy)} on Cauchy, {_percent(light)} on normal input at m = {cauchy.sizes[-1]:,}"
        return Finding(variant, heavy >= 1.5 * max(light, _POOR), f"{figures}; largest overrun {_percent(over)}")

    return Claim(
        where, "Simple-GD is prone to severe performance degradation when faced with extreme data.",
        f"Its regret on Cauchy input is at least 1.5 times that on normal input (or than {_percent(_POOR)}).",
        (
            finding("as printed", ("Simple-GD, printed", "none")),
            finding("with a scale-free step", ("Simple-GD", "none")),
            finding("with a scale-free step and the pointwise guard", ("Simple-GD", "pointwise")),
            finding("Ours-log as corrected, pointwise guard, beside it", ("Ours-log", "pointwise")),
        ),
    )  # fmt: skip


def _root_rate(evidence: Evidence, where: str) -> Claim:
    def finding(variant: str, entrants: Mapping[str, tuple[str, str]], measure: str) -> Finding:
        slopes = {name: evidence.slope(entrants[name], measure) for name in ("Simple-GD", "Ours-MD")}
        holds = all(_ROOT[0] <= slope <= _ROOT[1] for slope in slopes.values())
        told = [
            f"{name} T^{slope:.2f}" if np.isfinite(slope) else f"{name} no rate, for its regret is not positive"
            for name, slope in slopes.items()
        ]
        return Finding(variant, holds, "; ".join(told))

    return Claim(
        where, "Both Simple-GD and Ours-MD have an O(sqrt(T)) convergence rate.",
        f"Relative regret falls like T^k with k between {_ROOT[0]} and {_ROOT[1]} for both.",
        (
            finding("as printed, against R*_T", _PRINTED, _TRUE),
            finding("as corrected, against R*_T", _CORRECTED, _TRUE),
            finding("as corrected, projected guard for Ours-MD, against R*_Phi",
                    {**_CORRECTED, "Ours-MD": ("Ours-MD", "projected")}, _PROJECTED),
        ),
    )  # fmt: skip


def _kept_by_both(evidence: Evidence, where: str) -> Claim:
    findings = tuple(
        _violation(evidence, variant, entrants, ("Ours-MD", "Simple-GD"))
        for variant, entrants in _VARIANTS.items()
        if variant != "as printed, J = 10"
    )
    statement = "The violation of Simple-GD is 0, and Ours-MD violates the constraints very little."
    return Claim(where, statement, _KEPT_RULE, findings)


def _deteriorates(evidence: Evidence, where: str) -> Claim:
    def finding(variant: str, entrants: Mapping[str, tuple[str, str]]) -> Finding:
        ours, simple = (evidence.means(entrants[name], _TRUE) for name in ("Ours-MD", "Simple-GD"))
        good = bool((ours[ours.index <= 500].abs() <= _GOOD).all())
        falls = bool((np.diff(simple.to_numpy()) > 0).all())
        figures = f"Ours-MD {_span(ours[ours.index <= 500])} for m <= 500; Simple-GD {_each(simple)}"
        return Finding(variant, good and falls, figures)

    return Claim(
        where,
        "Ours-MD maintains good performance when the number of constraints is not that large, while that of Simple-GD "
        "deteriorates steadily as it increases.",
        f"|regret| of Ours-MD against R*_T is at most {_percent(_GOOD)} for m <= 500, and that of Simple-GD grows from "
        "each m to the next.",
        (finding("as printed", _PRINTED), finding("as corrected", _CORRECTED),
         finding("as corrected, pointwise guard", _guarded("pointwise"))),
    )  # fmt: skip


def _guarded(guard: str) -> dict[str, tuple[str, str]]:
    return {name: (name, guard) for name in _CORRECTED}


def _percent(share: float) -> str:
    # What rounding leaves of nothing is nothing.
    return "0 %" if abs(share) < 1e-10 else f"{100 * share:.3g} %"


def _span(series: pd.Series) -> str:
    return f"{_percent(series.min())} to {_percent(series.max())}"


def _each(series: pd.Series) -> str:
    return ", ".join(f"{_percent(value)} at m = {size:,}" for size, value in series.items())
