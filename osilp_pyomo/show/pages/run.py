"""The page of a run: a slider over time, use and limits along the index, prices, what was earned, what was decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.index.grids import tensor_points
from osilp_pyomo.offline.prices import AtomicPrice, Price
from osilp_pyomo.offline.results import FamilyMap, Result
from osilp_pyomo.online.over_time import moments_of, prices_over_time, row_use_over_time, use_over_time
from osilp_pyomo.online.runs import Run
from osilp_pyomo.online.stages.template import StageFamily
from osilp_pyomo.show.numbers import Units, per, percent, plain
from osilp_pyomo.show.pages import panels
from osilp_pyomo.show.pages.html import definitions, folded, moving_part, page, preformatted, sentence

# Moments that the slider stops at, and numbers that all charts along the index hold together (4 bytes each, a third
# more on the page).
_MOMENTS, _NUMBERS = 100, 380_000
# Points along the one axis of an index, and along each of two.
_POINTS, _SIDE = 401, 41
# Constraints that are shown, arrivals that are listed one by one, and columns of data beside them.
_ROWS, _LISTED, _COLUMNS = 12, 3000, 6
# Prices on single points are spread by this share of the index, to be drawn as a function of it.
_SPREAD = 0.02
# What is exceeded by less than this share of its limit is kept, as for solvers.
_KEPT = 1e-6

_WAYS = ("taken", "taken, but changed to fit", "refused: worth less than the price", "refused: no room")


def run_page(
    run: Run, title: str | None, author: str | None, given: Mapping[str, Any] | None, benchmark: Result | None
) -> str:
    """The page of a run."""
    return _Page(run, given, benchmark).text(title, author)


class _Page:
    """What one run shows, piece by piece."""

    def __init__(self, run: Run, given: Mapping[str, Any] | None, benchmark: Result | None) -> None:
        self.run, self.benchmark = run, benchmark
        self.regret = None if benchmark is None else run.regret(benchmark)
        self.evaluator, self.arrivals = run.evaluator, run.arrivals
        template = self.template = self.evaluator.template
        self.units = Units(given, _names(run), template.goal, _objective(run), "to_html")
        self.count = len(self.arrivals)
        self.moments = moments_of(self.count, _MOMENTS)
        self.times = [0, *self.moments]
        self.shown = list(template.families)[:_ROWS]
        self.maximize = template.maximize
        self.verb = "earned" if self.maximize else "spent"
        self.word = "capacity" if self._only_upper() else "limit"
        self.broken = "exceeded" if self._only_upper() else "broken"

    def _only_upper(self) -> bool:
        return all(family.sides == (1,) for family in self.template.families)

    # -- the page ------------------------------------------------------------------------------------------

    def text(self, title: str | None, author: str | None) -> str:
        """The whole page."""
        name = self.template.model
        moving = self._moving()
        parts = [
            sentence(self._headline(), "headline"),
            moving_part(),
            *self._folds(),
        ]
        return page(title or name or "A run, arrival by arrival", parts, moving, _byline(author, name if title else ""))

    def _headline(self) -> str:
        run = self.run
        best = ""
        if self.regret is not None and self.benchmark is not None:
            size = abs(self.benchmark.objective)
            if self.maximize and self.benchmark.objective > 0:
                best = f", {percent(run.objective / size)} of the best possible"
            elif size:
                more = "more" if (self.regret.value > 0) != self.maximize else "less"
                best = f", {percent(abs(self.regret.relative))} {more} than the best possible"
        policy = run.policy.partition("(")[0]
        return (
            f"{policy} decided {self.count:,} arrivals one by one and {self.verb} "
            f"{plain(run.objective, unit=self.units.goal)}{best}; {self._kept()}."
        )

    def _kept(self) -> str:
        """Whether limits were kept, in words; points between those of the grid are looked at too."""
        overrun = [use for use in self.run.uses if use.relative > _KEPT]
        rows = self.run.row_violation[self.run.row_violation > 0]
        if overrun:
            worst = max(overrun, key=lambda use: use.relative)
            return f"'{worst.name}' was {self.broken} by up to {percent(worst.relative, up=True)} of its limit"
        if len(rows):
            return f"'{rows.idxmax()}' was {self.broken} by {plain(float(rows.max()))}"
        between = self.run.violation_between
        found = between if isinstance(between, FamilyMap) else {None: between}
        beyond = max((float(each) / self._scale(name) for name, each in found.items()), default=0.0)
        whole = self.word == "capacity"
        if beyond > _KEPT:
            what = "capacity was never exceeded" if whole else "no limit was broken"
            return f"{what} by more than {percent(beyond, up=True)}"
        return "capacity was never exceeded" if whole else "every limit was kept"

    def _scale(self, name: str | None) -> float:
        """The size of the limits of a row, or of the only one."""
        sizes = [
            float(np.median(np.abs(self.evaluator.limit(group))))
            for group in self.evaluator.groups
            if group.family is not None and name in (None, group.name)
        ]
        return max([size for size in sizes if size > 0], default=1.0)

    def _folds(self) -> Iterator[str]:
        yield folded("What the words mean", [definitions(self._words())])
        yield folded("The run in figures", [preformatted(str(self.run))])

    def _words(self) -> dict[str, str]:
        words = {
            "arrival": "One request, customer or order; it is decided when it comes, before the next one is known.",
            self.word: "The limit of a constraint, at every point of its index; use must stay within it everywhere.",
            "price": "What one more unit of the limit at a place is worth at that moment, as the policy sees it; an "
            "arrival is taken where it brings more than its use costs at these prices.",
            "fullest place": "Where the largest share of the limit is used.",
        }
        if self.regret is not None:
            words["best possible"] = (
                f"What could have been {self.verb} with all arrivals known in advance: {self.regret.benchmark}."
            )
        return words

    # -- what moves ----------------------------------------------------------------------------------------

    def _moving(self) -> panels.Panel:
        prices = prices_over_time(self.run.anew(), self.evaluator.batches(self.arrivals), self.moments)
        tiles, shown = [self._earned_tile(), self._taken_tile()], []
        for number, family in enumerate(self.shown):
            own = [price[family.name] if isinstance(price, FamilyMap) else price for price in prices]
            tile, drawn = self._row(number, family, own)
            tiles += tile
            shown += drawn
        tiles += self._ordinary_tiles()
        shown += [self._earned_path(), self._decisions()]
        if self.count <= _LISTED:
            shown.append(self._listed())
        return {
            "unit": "arrivals", "total": self.count, "times": self.times, "series": [{"name": self.run.policy}],
            "rows": [family.name for family in self.shown] or [""], "tiles": tiles, "panels": shown,
        }  # fmt: skip

    def _earned(self) -> FloatArray:
        earned = self.run.rewards.to_numpy().cumsum() + self.template.offset
        return np.concatenate([[self.template.offset], earned[np.array(self.moments) - 1]])

    def _earned_tile(self) -> panels.Panel:
        return panels.tile("earned", f"{self.verb} so far", self.units.goal, [self._earned().tolist()])

    def _ways(self) -> FloatArray:
        """How each arrival ended, by number of ``_WAYS``."""
        taken = np.any(self.run.decided != 0, axis=1)
        own = self.run.reasons.isin(["priced", "tie"]).to_numpy()
        return np.where(taken, np.where(own, 0, 1), np.where(own, 2, 3))

    def _taken_tile(self) -> panels.Panel:
        taken = np.concatenate([[0], (self._ways() < 2).cumsum()[np.array(self.moments) - 1]])
        notes = [f"of {t:,}" + (f", {percent(k / t)}" if t else "") for k, t in zip(taken, self.times, strict=True)]
        return panels.tile("taken", "arrivals taken", "", [taken.tolist()], [notes])

    def _earned_path(self) -> panels.Panel:
        levels = []
        if self.benchmark is not None:
            levels = [("the best possible, all known in advance", self.benchmark.objective)]
        title = f"{self.verb.capitalize()} over time" + (f" ({self.units.goal})" if self.units.goal else "")
        return panels.path(title, self.count, self.units.goal, [(0, f"{self.verb} so far", self._earned())], levels)

    def _decisions(self) -> panels.Panel:
        edges = [0, *moments_of(self.count, _MOMENTS)]
        ways = self._ways()
        parts = []
        for number, label in enumerate(_WAYS):
            counts, _ = np.histogram(np.flatnonzero(ways == number), bins=np.array(edges) - 0.5)
            if counts.any():
                parts.append((number, label, counts.tolist()))
        note = "Each bar is one arrival."
        if self.count > len(edges) - 1:
            note = f"Each bar stands for about {self.count / (len(edges) - 1):,.0f} arrivals."
        if self.count > _LISTED:
            note += (
                f" {self.count:,} decisions are too many to list one by one on a page; run.decisions holds them all."
            )
        return panels.stack("Decisions over time", edges, parts, note)

    def _listed(self) -> panels.Panel:
        data = self.run.data.iloc[:, :_COLUMNS]
        decisions = self.run.decisions
        frame = decisions.to_frame() if isinstance(decisions, pd.Series) else decisions.iloc[:, :_COLUMNS]
        name = [str(each) for each in self.arrivals.index]
        columns = [name, *(data[each].tolist() for each in data), *(frame[each].tolist() for each in frame)]
        columns += [self.run.rewards.tolist(), [_WAYS[way] for way in self._ways()]]
        heads = ["arrival", *(panels.named(_label(each), self.units[_label(each)]) for each in (*data, *frame))]
        heads += [panels.named(self.verb, self.units.goal), "why"]
        return {
            "kind": "list", "title": "The last arrivals", "columns": heads,
            "rows": [list(map(_entry, row)) for row in zip(*columns, strict=True)],
        }  # fmt: skip

    def _ordinary_tiles(self) -> Iterator[panels.Panel]:
        for row in self.template.rows[:_ROWS]:
            used = row_use_over_time(self.evaluator, row, self.arrivals, self.run.decided, self.moments)
            limit = row.lower if row.upper is None else row.upper
            assert limit is not None
            note = (
                f"of {plain(limit, unit=self.units[row.name])}" if row.upper is not None else f"{plain(limit)} needed"
            )
            yield panels.tile(
                f"row {row.name}", f"'{row.name}' so far", self.units[row.name], [[0.0, *used.tolist()]],
                [[note] * len(self.times)],
            )  # fmt: skip

    # -- rows along their index ----------------------------------------------------------------------------

    def _row(
        self, number: int, family: StageFamily, prices: Sequence[Price]
    ) -> tuple[list[panels.Panel], list[panels.Panel]]:
        """The tiles and the charts of a semi-infinite row."""
        most = _NUMBERS // (2 * len(self.shown) * len(self.times))
        flat = family.domain.dimension == 2 and family.domain.body is None
        points = _lattice(family, most) if flat else _thinned(self.evaluator.points[number], self._worst(number), most)
        inside = np.ones(len(points), dtype=bool) if family.domain.inside is None else family.domain.inside(points)
        (use,) = use_over_time(self.evaluator, family, self.arrivals, [self.run.decided], points[inside], self.moments)
        frames = np.full((len(self.times), len(points)), np.nan)
        frames[:, inside] = np.concatenate([np.zeros((1, int(inside.sum()))), use])
        limits = {
            group.sign: self.evaluator.limit(group, points) for group in self.evaluator.groups if group.family == number
        }
        tiles = self._row_tiles(family, points, frames, limits, prices)
        if flat:
            return tiles, self._maps(family, points, frames, limits, prices)
        if family.domain.dimension > 1:
            return tiles, [self._sorted(family, frames, limits)]
        return tiles, self._curves(family, points[:, 0], frames, limits, prices)

    def _worst(self, number: int) -> int:
        """The point that is overrun most at the end, or comes nearest to it."""
        return int(np.argmax(self.run.uses[number].excess))

    def _row_tiles(
        self, family: StageFamily, points: FloatArray, frames: FloatArray, limits: Mapping[int, FloatArray],
        prices: Sequence[Price],
    ) -> list[panels.Panel]:  # fmt: skip
        unit = self.units[family.name]
        totals = [price.total for price in prices]
        worth = f"for one unit{f' ({unit})' if unit else ''} more at every place"
        label = f"worth of more {self.word}"
        tiles = [panels.tile("price", label, self.units.goal, [totals], [[worth] * len(totals)], family.name)]
        upper = limits.get(1)
        if upper is not None and _all_positive(upper, frames):
            with np.errstate(invalid="ignore"):
                share = 100 * frames / upper
            at = np.nanargmax(share, axis=1)
            notes = [f"at {self._place(family, points[place])}" for place in at]
            values = share[np.arange(len(at)), at].tolist()
            tiles.insert(0, panels.tile("fullest", "fullest place", "%", [values], [notes], family.name))
        return tiles

    def _place(self, family: StageFamily, point: FloatArray) -> str:
        told = (
            f"{name} = {plain(float(value), 3, self.units[name])}"
            for name, value in zip(family.domain.names, point, strict=True)
        )
        return ", ".join(told)

    def _curves(
        self, family: StageFamily, at: FloatArray, frames: FloatArray, limits: Mapping[int, FloatArray],
        prices: Sequence[Price],
    ) -> list[panels.Panel]:  # fmt: skip
        (name,) = family.domain.names
        axis, unit = (name, self.units[name]), self.units[family.name]
        upper = 1 in limits
        still = [panels.still_line("limit", self.word if upper else "needed", limits[1] if upper else limits[-1])]
        if len(limits) == 2:
            still.append(panels.still_line("lower", "needed", limits[-1]))
        use = panels.curve(
            f"Use and {self.word} of '{family.name}'" + (f" ({unit})" if unit else ""), family.name, axis, at, unit,
            [panels.moving_line(0, "used so far", frames)], still,
            panels.spread(frames, *limits.values()), upper, "fullest at " if upper else "least reached at ",
        )  # fmt: skip
        density = np.array([_density(price, at) for price in prices])
        if not density.any():
            return [use]
        later = density[len(density) // 5 :]
        spread = any(isinstance(price, AtomicPrice) for price in prices)
        note = "Prices on single points are spread by 2 % of the index." if spread else ""
        price = panels.curve(
            f"Price along {name}", family.name, axis, at, per(self.units.goal, unit, axis[1]),
            [panels.moving_line(0, f"price of one more unit of {self.word}", density)], [], panels.spread(later), True,
            "dearest at ", note=f"Per unit of {name}. {note}".strip(),
        )  # fmt: skip
        return [use, price]

    def _sorted(self, family: StageFamily, frames: FloatArray, limits: Mapping[int, FloatArray]) -> panels.Panel:
        """Over more than two axes the points are sorted by how full they are."""
        sign, limit = next(iter(limits.items()))
        whole = _all_positive(limit, frames)
        values = 100 * frames / limit if whole else frames - limit
        values = -np.sort(-sign * values, axis=1) * sign
        at = 100 * (np.arange(values.shape[1]) + 0.5) / values.shape[1]
        unit = "%" if whole else self.units[family.name]
        level = panels.still_line("limit", self.word, np.full(len(at), 100.0 if whole else 0.0))
        title = (
            f"'{family.name}': use as a share of the {self.word}" if whole else f"'{family.name}': use less the limit"
        )
        return panels.curve(
            title, family.name, (f"points of ({', '.join(family.domain.names)}), fullest first", "%"), at, unit,
            [panels.moving_line(0, "used so far", values)], [level], panels.spread(values, least=105 if whole else 0),
            sign > 0,
        )  # fmt: skip

    def _maps(
        self, family: StageFamily, points: FloatArray, frames: FloatArray, limits: Mapping[int, FloatArray],
        prices: Sequence[Price],
    ) -> list[panels.Panel]:  # fmt: skip
        side = round(len(points) ** 0.5)
        axes = [
            {"name": name, "unit": self.units[name], "label": panels.named(name, self.units[name]),
             "low": float(low), "high": float(high)}
            for name, low, high in zip(family.domain.names, family.domain.lower, family.domain.upper, strict=True)
        ]  # fmt: skip
        sign, limit = next(iter(limits.items()))
        whole = _all_positive(limit, frames)
        values = 100 * frames / limit if whole else frames
        unit = "%" if whole else self.units[family.name]
        top = 100.0 if whole else float(np.nanmax(values, initial=1e-12))
        use = panels.heat(
            f"How full '{family.name}' is" if whole else f"Use of '{family.name}'", family.name, axes,
            _as_maps(values, side),
            {"label": f"share of the {self.word} used:" if whole else "used:", "low": 0.0, "high": top, "unit": unit},
            f"of the {self.word} used" if whole else "used", "fullest at ",
            "exceeded" if whole and sign > 0 else "",
        )  # fmt: skip
        density = np.array([_density_on_lattice(price, points, axes, side) for price in prices])
        inside = np.isfinite(frames[0])
        density[:, ~inside] = np.nan
        if not np.any(density[:, inside]):
            return [use]
        # A few high prices must not make all others look alike.
        low, high = np.quantile(density[:, inside][density[:, inside] != 0], [0.005, 0.995])
        price_unit = per(self.units.goal, self.units[family.name], *(str(axis["unit"]) for axis in axes))
        price = panels.heat(
            f"Price over {' and '.join(family.domain.names)}", family.name, axes, _as_maps(density, side),
            {"label": "price:", "low": min(0.0, float(low)), "high": max(0.0, float(high)), "unit": price_unit},
            f"a unit of {self.word}, per unit of area", "dearest at ",
        )  # fmt: skip
        return [use, price]


def _names(run: Run) -> list[str]:
    """Names that a unit may be given for: objective, rows, axes, data, decisions."""
    template = run.evaluator.template
    names = [template.goal, *(family.name for family in template.families), *(row.name for row in template.rows)]
    names += [axis for family in template.families for axis in family.domain.names]
    names += [field.label.name for field in template.fields if not field.hidden]
    return [*names, *(label.name for label in template.decisions)]


def _objective(run: Run) -> dict[str, Any]:
    template = run.evaluator.template
    return {
        "objective": template.texts["objective"] or "0",
        "decisions": [{"name": str(label)} for label in template.decisions],
    }


def _byline(author: str | None, name: str) -> str:
    return " \u00b7 ".join(each for each in (f"model: {name}" if name else "", author) if each)


def _label(column: Any) -> str:
    """A column's name as the user would write it."""
    return f"{column[0]}[{','.join(map(str, column[1:]))}]" if isinstance(column, tuple) else str(column)


def _entry(value: Any) -> Any:
    return value if isinstance(value, str) or np.isfinite(value) else None


def _all_positive(limit: FloatArray, frames: FloatArray) -> bool:
    """Whether a limit is above zero wherever the index has points, so that shares of it mean something."""
    return bool(np.all(limit[np.isfinite(frames[0])] > 0))


def _thinned(points: FloatArray, worst: int, most: int) -> FloatArray:
    """Some points in order along the index: both ends, the worst one, and as many between as fit."""
    order = np.lexsort(points.T[::-1])
    step = max(1, -(-len(points) // min(_POINTS, max(40, most))))
    kept = np.unique(np.concatenate([np.arange(0, len(order), step), [len(order) - 1, int(np.argmax(order == worst))]]))
    return points[order[kept]]


def _lattice(family: StageFamily, most: int) -> FloatArray:
    """Points at equal distances along both axes."""
    side = min(_SIDE, max(12, int(most**0.5)))
    axes = [np.linspace(low, high, side) for low, high in zip(family.domain.lower, family.domain.upper, strict=True)]
    return tensor_points(axes)


def _as_maps(values: FloatArray, side: int) -> FloatArray:
    """Points run along the second axis first, pictures along the first."""
    return values.reshape(len(values), side, side).swapaxes(1, 2)


def _density(price: Price, at: FloatArray) -> FloatArray:
    """A price along one axis, per unit of it; atoms as ``price.smooth`` spreads them, all at once."""
    if not isinstance(price, AtomicPrice):
        return np.asarray(price(at), dtype=float)
    low, high = float(price.domain.lower[0]), float(price.domain.upper[0])
    width = _SPREAD * (high - low)
    places = price.points[:, 0]
    inside = ndtr((high - places) / width) - ndtr((low - places) / width)
    shape = np.exp(-(((at[:, None] - places) / width) ** 2) / 2) / (np.sqrt(2 * np.pi) * width)
    return shape @ (price.masses / inside)


def _density_on_lattice(price: Price, points: FloatArray, axes: Sequence[panels.Panel], side: int) -> FloatArray:
    """A price over two axes, per unit of area; atoms are counted in the cells around the points."""
    if not isinstance(price, AtomicPrice):
        return np.asarray(price(points[:, 0], points[:, 1]), dtype=float)
    edges = []
    for axis in axes:
        half = (axis["high"] - axis["low"]) / (side - 1) / 2
        cells = np.linspace(axis["low"] - half, axis["high"] + half, side + 1)
        edges.append(np.clip(cells, axis["low"], axis["high"]))
    masses, *_ = np.histogram2d(price.points[:, 0], price.points[:, 1], bins=edges, weights=price.masses)
    area = np.outer(*(np.diff(each) for each in edges))
    return (masses / area).ravel()
