"""What the paper's numerical section states, claim by claim, what was measured, and whether they agree.

A claim has a rule that says when it holds, in numbers, and a basis: what the paper measures it by. The rule is tried on
the algorithms as they are printed and as they are corrected, on the paper's basis and on others. All rules use medians
over trials: on Cauchy input means do not exist. Nothing here runs anything; claims read the studies of
:mod:`osilp_pyomo.paper.experiments`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import bdtr

from osilp_pyomo.studies.compare import Study

Entrants = Mapping[str, tuple[str, str]]

# The guards that the paper's algorithms have in its text: Algorithm 2 and Simple-GD none, Algorithm 5 its own.
_AS_PRINTED: Entrants = {
    "Ours-MD": ("Ours-MD, printed", "none"), "Ours-log": ("Ours-log, printed", "projected"),
    "Simple-GD": ("Simple-GD, printed", "none"),
}  # fmt: skip
_SHORT: Entrants = {**_AS_PRINTED, "Ours-log": ("Ours-log, printed, J = 10", "projected")}
_AS_CORRECTED: Entrants = {
    "Ours-MD": ("Ours-MD", "none"), "Ours-log": ("Ours-log", "projected"), "Simple-GD": ("Simple-GD", "none"),
}  # fmt: skip
_GUARDED: Entrants = {name: (name, "pointwise") for name in _AS_CORRECTED}
_EVERYTHING = ("Accept everything", "none")

PRINTED, SHORT, CORRECTED, GUARDED = "as printed", "as printed, J = 10", "as corrected", "as corrected, pointwise guard"
_VARIANTS: dict[str, Entrants] = {PRINTED: _AS_PRINTED, SHORT: _SHORT, CORRECTED: _AS_CORRECTED}

# R*_m, the optimum of all rows, is what the paper calls R*_T.
PAPER_REGRET, PROJECTED_REGRET = "against R*_m", "against R*_Phi"
_REGRET = {PAPER_REGRET: "relative_regret_discretized", PROJECTED_REGRET: "relative_regret_projected"}
PAPER_VIOLATION, SINGLE_POINTS = "by the paper's v", "at single points"

# Rules, in shares: what counts as nothing, as good, as poor, and as kept.
_NOTHING, _GOOD, _POOR, _KEPT = 0.01, 0.05, 0.10, 0.01
# The smallest limit per arrival that is drawn anywhere in the section.
_LEAST_LIMIT = 0.4
# Relative regret that falls like T^-1/2, give or take a quarter in the exponent, or faster.
_ROOT = -0.25

YES, NO, UNDECIDED = "yes", "no", "undecided"


@dataclass(frozen=True)
class Finding:
    """What was measured of a claim: of which algorithms, on which basis, whether the rule holds, and the figures."""

    algorithms: str
    basis: str
    holds: str
    figures: str


@dataclass(frozen=True)
class Claim:
    """Something that the paper states, the rule by which it is judged, what was found, and what else that shows.

    ``basis`` is what the paper measures it by.
    """

    where: str
    statement: str
    rule: str
    basis: str
    findings: tuple[Finding, ...]
    remark: str = ""

    def _printed(self, own: bool) -> list[Finding]:
        return [
            each for each in self.findings if each.algorithms.startswith(PRINTED) and (each.basis == self.basis) == own
        ]

    @property
    def verdict(self) -> str:
        """Whether paper and measurement agree, and on which condition."""
        own = [each.holds for each in self._printed(own=True)]
        if all(holds == YES for holds in own):
            strict = [each.holds for each in self._printed(own=False) if each.basis == SINGLE_POINTS]
            return "agrees" if all(holds == YES for holds in strict) else f"agrees {self.basis} only"
        if YES in own:
            return "agrees in part"
        if UNDECIDED in own:
            return "not decided"
        deciding = self.deciding
        if deciding is None:
            return "does not agree"
        what = "as corrected" if deciding.algorithms.startswith(CORRECTED) else "as printed"
        return f"agrees only {what}{'' if deciding.basis == self.basis else f', {deciding.basis}'}"

    @property
    def deciding(self) -> Finding | None:
        """The finding by which a claim that fails as printed holds all the same; None where there is none."""
        held = [each for each in self.findings if each.holds == YES and each.algorithms.startswith("as ")]
        return min(held, key=lambda each: each.basis != self.basis, default=None)

    @property
    def shown(self) -> list[Finding]:
        """The findings whose figures stand beside the verdict: the first, or that which decided; and single points."""
        deciding = self.deciding if self.verdict.startswith("agrees only") else None
        points = [each for each in self._printed(own=False) if each.basis == SINGLE_POINTS]
        return [self.findings[0] if deciding is None else deciding, *points[:1]]


class Evidence:
    """The numbers of one experiment: medians by size of the sweep, policy and guard."""

    def __init__(self, study: Study, along: str) -> None:
        self.runs, self.along = study.runs, along

    @property
    def sizes(self) -> list[int]:
        """The sizes of the sweep."""
        return sorted(set(self.runs[self.along].tolist()))

    def _of(self, entrant: tuple[str, str]) -> pd.DataFrame:
        policy, guard = entrant
        return self.runs[(self.runs["policy"] == policy) & (self.runs["guard"] == guard)]

    def medians(self, entrant: tuple[str, str], measure: str) -> pd.Series:
        """Medians of a measure over the sweep."""
        return self._of(entrant).groupby(self.along)[measure].median().sort_index()

    def last(self, entrant: tuple[str, str], measure: str) -> pd.Series:
        """All values of a measure at the largest size, by trial."""
        runs = self._of(entrant)
        return runs[runs[self.along] == self.sizes[-1]].set_index("trial")[measure].sort_index()

    def difference(self, one: tuple[str, str], other: tuple[str, str], measure: str) -> tuple[float, float, float]:
        """Median of one minus other on the same arrivals at the largest size, and its interval."""
        return median_interval((self.last(one, measure) - self.last(other, measure)).to_numpy(dtype=float))

    def slope(self, entrant: tuple[str, str], measure: str) -> float:
        """Exponent of T that fits a measure best; nan where it is not positive."""
        medians = self.medians(entrant, measure)
        if (medians <= 0).any():
            return np.nan
        return float(np.polyfit(np.log(medians.index.to_numpy(dtype=float)), np.log(medians.to_numpy()), 1)[0])


def median_interval(values: ArrayLike) -> tuple[float, float, float]:
    """A median and its 95 % interval between two of the values, whatever their distribution; without ends below six.

    Examples
    --------
    >>> median_interval(range(1, 11))
    (5.5, 2.0, 9.0)
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    # How seldom k or fewer of the values lie on one side of the true median.
    left_out = [k for k in range(len(ordered) // 2) if bdtr(k, len(ordered), 0.5) <= 0.025]
    if not left_out:
        return float(np.median(ordered)), -np.inf, np.inf
    k = left_out[-1]
    return float(np.median(ordered)), float(ordered[k]), float(ordered[-k - 1])


def all_claims(studies: Mapping[str, Study]) -> Iterator[Claim]:
    """Every claim of the section, in its order; ``studies`` by the names of the experiments."""
    for kind, number in (("uniform", 1), ("normal", 2), ("cauchy", 3)):
        over_horizon, over_rows = Evidence(studies[f"{kind}-T"], "horizon"), Evidence(studies[f"{kind}-m"], "points")
        where = f"Figure {number} ({kind} input, 2,000 rows)"
        statement = "The ratio of regret and optimal value of both Ours-log and Ours-MD can converge to 0."
        yield _converge(over_horizon, where, ("Ours-log", "Ours-MD"), statement)
        yield _faster(over_horizon, where, "Ours-log", "Ours-MD")
        yield _poor_throughout(over_horizon, where)
        yield _because_of_rows(over_rows, over_horizon, where)
        yield _kept(over_horizon, where, ("Ours-log", "Ours-MD", "Simple-GD"),
                    "All three algorithms can satisfy the constraints quite well.")  # fmt: skip
    for kind, number in (("uniform", 4), ("normal", 5), ("cauchy", 6)):
        evidence = Evidence(studies[f"{kind}-m"], "points")
        where = f"Figure {number} ({kind} input, T = 5,000)"
        if kind != "cauchy":
            yield _good_when_small(evidence, where)
        yield _stable(evidence, where)
        if kind == "cauchy":
            yield _degrades(evidence, Evidence(studies["normal-m"], "points"), where)
    evidence = Evidence(studies["permutation-T"], "horizon")
    where = "Figure 7 (random permutation, 2,000 rows)"
    yield _root_rate(evidence, where)
    yield _faster(evidence, where, "Ours-MD", "Simple-GD")
    yield _converge(evidence, where, ("Ours-MD",), "Ours-MD can converge to 0.")
    yield _kept(evidence, where, ("Simple-GD", "Ours-MD"),
                "The violation of Simple-GD is 0, and Ours-MD violates the constraints very little.")  # fmt: skip
    yield _deteriorates(Evidence(studies["permutation-m"], "points"), "Figure 8 (random permutation, T = 5,000)")


def _converge(evidence: Evidence, where: str, names: tuple[str, ...], statement: str) -> Claim:
    """The claim that the regret of some algorithms vanishes as T grows, fast enough, with what was found."""
    first, last = evidence.sizes[0], evidence.sizes[-1]

    def finding(algorithms: str, entrants: Entrants, basis: str) -> Finding:
        told, holds = [], True
        for name in names:
            medians = evidence.medians(entrants[name], _REGRET[basis])
            falls = evidence.slope(entrants[name], _REGRET[basis]) <= _ROOT and medians.iloc[-1] <= _POOR
            holds &= bool(abs(medians.iloc[-1]) <= _NOTHING or falls)
            ends = f"{_percent(medians.iloc[0])} at T = {first:,}, {_percent(medians.iloc[-1])} at {last:,}"
            told.append(f"{name} {ends}")
            if medians.iloc[-1] < -_NOTHING:
                over = evidence.medians(entrants[name], "relative_violation").iloc[-1]
                told[-1] += f" (it overruns points by {_percent(over)} of their limit)"
        return Finding(algorithms, basis, _answer(holds), "; ".join(told))

    everything = finding("accepting everything", dict.fromkeys(names, _EVERYTHING), PROJECTED_REGRET)
    idle = float(evidence.last(_EVERYTHING, "test_violation").max()) == 0
    idle &= float(evidence.last(_EVERYTHING, "least_remaining").min()) > 0
    return Claim(
        where, statement,
        f"|regret| <= {_percent(_NOTHING)} at the largest T, or it is positive, falls like T^{_ROOT} or faster, and "
        f"ends below {_percent(_POOR)}.",
        PAPER_REGRET,
        (
            *(finding(name, entrants, PAPER_REGRET) for name, entrants in _VARIANTS.items()),
            finding(GUARDED, _GUARDED, PAPER_REGRET),
            *(finding(name, entrants, PROJECTED_REGRET) for name, entrants in _VARIANTS.items()),
            everything,
        ),
        "Accepting everything leaves every test function with budget to spare in every trial: on this input regret "
        "against R*_Phi tells nothing about the algorithms." if idle else "",
    )  # fmt: skip


def _faster(evidence: Evidence, where: str, name: str, slower: str) -> Claim:
    def finding(algorithms: str, entrants: Entrants, basis: str) -> Finding:
        median, low, high = evidence.difference(entrants[slower], entrants[name], _REGRET[basis])
        figures = (
            f"regret of {slower} less that of {name}: {_percent(median)}, interval {_percent(low)} to {_percent(high)}"
        )
        holds = YES if low > 0 else NO if high <= 0 else UNDECIDED
        return Finding(algorithms, basis, holds, figures)

    both = {each: (each, "projected") for each in ("Ours-MD", "Ours-log")}
    more = (
        [finding(f"{CORRECTED}, both with the projected guard", both, PROJECTED_REGRET)] if slower == "Ours-MD" else []
    )
    return Claim(
        where, f"{name} converges faster than {slower}.",
        f"On the same arrivals {slower} has more regret at the largest T, the 95 % interval of the median above 0.",
        PAPER_REGRET,
        (
            *(finding(each, entrants, PAPER_REGRET) for each, entrants in _VARIANTS.items()),
            finding(GUARDED, _GUARDED, PAPER_REGRET),
            *more,
        ),
    )  # fmt: skip


def _poor_throughout(evidence: Evidence, where: str) -> Claim:
    def finding(algorithms: str, entrant: tuple[str, str]) -> Finding:
        medians = evidence.medians(entrant, _REGRET[PAPER_REGRET])
        holds = medians.iloc[-1] >= max(_POOR, 0.8 * medians.iloc[0])
        figures = f"{_percent(medians.iloc[0])} at T = {evidence.sizes[0]:,}, {_percent(medians.iloc[-1])} at "
        return Finding(algorithms, PAPER_REGRET, _answer(holds), f"{figures}{evidence.sizes[-1]:,}")

    return Claim(
        where, "Simple-GD has poor performance, and its curve implies an O(T) regret.",
        f"Regret at the largest T is at least {_percent(_POOR)} and at least 0.8 of that at the smallest.",
        PAPER_REGRET,
        (
            finding("as printed, step 1/sqrt(T)", ("Simple-GD, printed", "none")),
            finding("as corrected, scale-free step", ("Simple-GD", "none")),
            finding("as corrected, scale-free step, pointwise guard", ("Simple-GD", "pointwise")),
        ),
    )  # fmt: skip


def _because_of_rows(over_rows: Evidence, over_horizon: Evidence, where: str) -> Claim:
    """The reason that the paper gives for the last claim, judged where the number of rows varies."""
    medians = over_rows.medians(_AS_PRINTED["Simple-GD"], _REGRET[PAPER_REGRET])
    printed = Finding(
        PRINTED, PAPER_REGRET, _answer(medians.iloc[-1] >= 1.5 * medians.iloc[0]), f"Simple-GD {_each(medians)}"
    )
    guarded = float(over_horizon.medians(_GUARDED["Simple-GD"], _REGRET[PAPER_REGRET]).iloc[-1])
    free = Finding(
        "scale-free step, pointwise guard", PAPER_REGRET, _answer(guarded >= _POOR),
        f"Simple-GD {_percent(guarded)} with 2,000 rows at the largest T, no row overrun",
    )  # fmt: skip
    return Claim(
        where, "That is because the regret bound of Simple-GD is linear in the number of constraints, which dominates.",
        "Its regret with the most rows is at least 1.5 times that with the fewest.",
        PAPER_REGRET, (printed, free),
        "It is the step rather than the number of rows: with a scale-free step, and no row overrun, the same algorithm "
        f"has {_percent(guarded)}." if abs(guarded) < _POOR else "",
    )  # fmt: skip


def _kept(evidence: Evidence, where: str, names: tuple[str, ...], statement: str) -> Claim:
    def finding(algorithms: str, entrants: Entrants, basis: str) -> Finding:
        measure = "test_violation" if basis == PAPER_VIOLATION else "relative_violation"
        found = {name: float(evidence.medians(entrants[name], measure).iloc[-1]) for name in names}
        if basis == PAPER_VIOLATION:
            told = [f"{name} v = {value:.3g}" for name, value in found.items()]
            holds = all(value <= _KEPT * _LEAST_LIMIT * evidence.sizes[-1] for value in found.values())
        else:
            told = [f"{name} overruns a point by {_percent(value)}" for name, value in found.items()]
            holds = all(value <= _KEPT for value in found.values())
        return Finding(algorithms, basis, _answer(holds), "; ".join(told))

    bases = (PAPER_VIOLATION, SINGLE_POINTS)
    regret = float(evidence.medians(_AS_PRINTED["Ours-MD"], _REGRET[PAPER_REGRET]).iloc[-1])
    findings = tuple(finding(name, entrants, basis) for basis in bases for name, entrants in _VARIANTS.items())
    return Claim(
        where, statement,
        f"At the largest T v is at most {_KEPT * _LEAST_LIMIT:g} T, {_percent(_KEPT)} of the smallest limit in the "
        f"section; and, where the paper does not look, no single point is overrun by more than {_percent(_KEPT)} of "
        "its limit.",
        PAPER_VIOLATION, findings,
        f"As printed little is served: Ours-MD leaves {_percent(regret)} of the optimum unearned."
        if findings[0].holds == YES and regret >= _POOR else "",
    )  # fmt: skip


def _good_when_small(evidence: Evidence, where: str) -> Claim:
    def finding(algorithms: str, entrants: Entrants) -> Finding:
        names = ("Ours-log", "Ours-MD", "Simple-GD")
        medians = {name: evidence.medians(entrants[name], _REGRET[PAPER_REGRET]) for name in names}
        small = {name: series[series.index < 500] for name, series in medians.items()}
        good = all((small[name].abs() <= _GOOD).all() for name in ("Ours-log", "Ours-MD"))
        holds = good and bool((small["Simple-GD"] >= _POOR).all())
        told = [f"{name} {_span(series)}" for name, series in small.items()]
        return Finding(algorithms, PAPER_REGRET, _answer(holds), f"regret for m < 500: {'; '.join(told)}")

    return Claim(
        where,
        "Even when the number of constraints is small (less than 500), Ours-log and Ours-MD perform well, whereas "
        "Simple-GD is already poor.",
        f"For m < 500 |regret| is at most {_percent(_GOOD)} for both, and at least {_percent(_POOR)} for Simple-GD.",
        PAPER_REGRET,
        tuple(finding(name, entrants) for name, entrants in _VARIANTS.items()),
    )


def _stable(evidence: Evidence, where: str) -> Claim:
    def finding(algorithms: str, entrants: Entrants, basis: str) -> Finding:
        medians = evidence.medians(entrants["Ours-log"], _REGRET[basis])
        holds = medians.max() - medians.min() <= _GOOD and medians.abs().max() <= _POOR
        figures = f"regret {_span(medians)} over m = {evidence.sizes[0]:,} to {evidence.sizes[-1]:,}"
        return Finding(algorithms, basis, _answer(holds), figures)

    return Claim(
        where, "When the number of constraints becomes larger, Ours-log is quite robust with stable performance.",
        f"Its regret differs by at most {_percent(_GOOD)} of the optimum between any two m, and |regret| stays below "
        f"{_percent(_POOR)}.",
        PAPER_REGRET,
        (
            *(finding(name, entrants, PAPER_REGRET) for name, entrants in _VARIANTS.items()),
            finding(CORRECTED, _AS_CORRECTED, PROJECTED_REGRET),
        ),
    )  # fmt: skip


def _degrades(cauchy: Evidence, normal: Evidence, where: str) -> Claim:
    def finding(algorithms: str, entrant: tuple[str, str]) -> Finding:
        heavy, light = (float(each.medians(entrant, _REGRET[PAPER_REGRET]).iloc[-1]) for each in (cauchy, normal))
        over = float(cauchy.medians(entrant, "relative_violation").iloc[-1])
        figures = f"{_percent(heavy)} on Cauchy, {_percent(light)} on normal input at m = {cauchy.sizes[-1]:,}"
        holds = heavy >= 1.5 * max(light, _POOR)
        return Finding(algorithms, PAPER_REGRET, _answer(holds), f"{figures}; largest overrun {_percent(over)}")

    return Claim(
        where, "Simple-GD is prone to severe performance degradation when faced with extreme data.",
        f"Its regret on Cauchy input is at least 1.5 times that on normal input (or than {_percent(_POOR)}).",
        PAPER_REGRET,
        (
            finding(PRINTED, ("Simple-GD, printed", "none")),
            finding(CORRECTED, ("Simple-GD", "none")),
            finding(GUARDED, ("Simple-GD", "pointwise")),
            finding("Ours-log beside it, corrected, pointwise guard", ("Ours-log", "pointwise")),
        ),
    )  # fmt: skip


def _root_rate(evidence: Evidence, where: str) -> Claim:
    def finding(algorithms: str, entrants: Entrants, basis: str) -> Finding:
        slopes = {name: evidence.slope(entrants[name], _REGRET[basis]) for name in ("Simple-GD", "Ours-MD")}
        holds = all(slope <= _ROOT for slope in slopes.values())
        told = [
            f"{name} T^{slope:.2f}" if np.isfinite(slope) else f"{name} no rate, for its regret is not positive"
            for name, slope in slopes.items()
        ]
        return Finding(algorithms, basis, _answer(holds), "; ".join(told))

    guarded = {**_AS_CORRECTED, "Ours-MD": ("Ours-MD", "projected")}
    return Claim(
        where, "Both Simple-GD and Ours-MD have an O(sqrt(T)) convergence rate.",
        f"Relative regret falls like T^{_ROOT} or faster for both (T^-0.5 is what is claimed).",
        PAPER_REGRET,
        (
            finding(PRINTED, _AS_PRINTED, PAPER_REGRET),
            finding(CORRECTED, _AS_CORRECTED, PAPER_REGRET),
            finding(GUARDED, _GUARDED, PAPER_REGRET),
            finding(f"{CORRECTED}, projected guard for Ours-MD", guarded, PROJECTED_REGRET),
        ),
    )  # fmt: skip


def _deteriorates(evidence: Evidence, where: str) -> Claim:
    def finding(algorithms: str, entrants: Entrants) -> Finding:
        ours, simple = (evidence.medians(entrants[name], _REGRET[PAPER_REGRET]) for name in ("Ours-MD", "Simple-GD"))
        small = ours[ours.index < 500]
        holds = bool((small.abs() <= _GOOD).all() and (np.diff(simple.to_numpy()) > 0).all())
        figures = f"Ours-MD {_span(small)} for m < 500; Simple-GD {_each(simple)}"
        return Finding(algorithms, PAPER_REGRET, _answer(holds), figures)

    return Claim(
        where,
        "Ours-MD maintains good performance when the number of constraints is not that large, while that of Simple-GD "
        "deteriorates steadily as it increases.",
        f"|regret| of Ours-MD is at most {_percent(_GOOD)} for m < 500, and regret of Simple-GD grows from each m to "
        "the next.",
        PAPER_REGRET,
        (finding(PRINTED, _AS_PRINTED), finding(CORRECTED, _AS_CORRECTED), finding(GUARDED, _GUARDED)),
    )


def _answer(holds: object) -> str:
    return YES if holds else NO


def _percent(share: float) -> str:
    # What rounding leaves of nothing is nothing.
    return "0 %" if abs(share) < 1e-10 else f"{100 * share:.3g} %"


def _span(series: pd.Series) -> str:
    return f"{_percent(series.min())} to {_percent(series.max())}"


def _each(series: pd.Series) -> str:
    return ", ".join(f"{_percent(value)} at m = {size:,}" for size, value in series.items())
