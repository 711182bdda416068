"""Pictures of runs: who was served, what was used of the rows over time, and what is left of them at a moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.errors import DataError, OptionError
from osilp_pyomo.index.domain import Domain
from osilp_pyomo.offline.prices import Price
from osilp_pyomo.online.arrival_costs import costs_of
from osilp_pyomo.online.service.along_index import left_along_index
from osilp_pyomo.online.stages.evaluator import Evaluator
from osilp_pyomo.online.stages.template import Arrivals, StageFamily
from osilp_pyomo.show.drawing import (
    FAINT,
    LIMIT,
    PRICE,
    SHADES,
    USE,
    draw_below_each_other,
    draw_cells,
    name_of,
    new_figure,
    shades_over,
)
from osilp_pyomo.show.rows import MOST_PANELS, RowsDisplay

#: More arrivals than these are drawn as cells of a picture, not one by one.
MOST_DOTS = 5000
# Cells along each axis of such a picture.
_CELLS = (64, 44)
# Points of a border; moments and points of a row over time; points along each side of a plane.
_BORDER, _MOMENTS, _POINTS, _ASIDE = 201, 80, 200, 60
# Values that a picture of a plane may cost: arrivals times points.
_MOST_VALUES = 1e8
# How the arrivals of each outcome are drawn, those that matter most on top.
_LOOKS = {
    "refused": {"color": FAINT, "marker": "o", "s": 9, "linewidths": 0},
    "served": {"color": USE, "marker": "o", "s": 11, "linewidths": 0},
    "served in part": {"color": "#E69F00", "marker": "D", "s": 17, "linewidths": 0},
    "changed by the guard": {"color": PRICE, "marker": "x", "s": 17, "linewidths": 1.0},
}

#: A border: what its price is called, the price of each semi-infinite row, and that of each ordinary one.
Border = tuple[str, Mapping[str, Price], Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class ServedDisplay:
    """Who was served: each arrival by its data, with the border where it is worth just what it uses.

    Where the rows depend on a single number of an arrival, that is the horizontal axis and the border a curve.
    Else it is what a unit of the decision uses, at its price, and the border is the diagonal; where that price is zero
    for all of them, it is the order in which they came, without a border.

    Parameters
    ----------
    frame : DataFrame
        A row for each decision of each arrival: ``decision`` (its name), ``arrival``, ``x``, ``y`` (what a unit of it
        earns, or costs where the model minimizes), ``share`` of what could be taken, and the ``outcome``.
    border : DataFrame
        Points of the border: ``decision``, ``x`` and ``y``; nan where there is none.
    price : str
        What the price of the border is called.
    x_label : str
        What stands below.
    y_labels : dict
        What stands beside, for each decision.

    Examples
    --------
    >>> frame = pd.DataFrame({"decision": "x", "arrival": [1, 2], "x": [0.2, 0.7], "y": [3.0, 1.0]})
    >>> frame["share"], frame["outcome"] = [1.0, 0.0], ["served", "refused"]
    >>> border = pd.DataFrame({"decision": "x", "x": [0.0, 1.0], "y": [2.0, 2.0]})
    >>> ServedDisplay(frame, border, "the last price", "place", {"x": "value"}).plot().axes[0].get_title()
    '1 of 2 arrivals served'
    """

    frame: pd.DataFrame
    border: pd.DataFrame
    price: str
    x_label: str
    y_labels: Mapping[str, str]

    title = "Who was served"

    @classmethod
    def of_run(
        cls, evaluator: Evaluator, arrivals: Arrivals, taken: FloatArray, reasons: Any, border: Border
    ) -> ServedDisplay:
        """What there is to draw of decisions (T, n), taken for reasons (T,)."""
        template = evaluator.template
        if not template.linear:
            raise DataError(
                "plot: 'served' draws the border where an arrival is worth what it uses, which stages that are linear "
                "in the decision have, and these are not; plot('use') shows what was used."
            )
        labels = [str(label) for label in template.decisions]
        if len(labels) > MOST_PANELS:
            raise DataError(
                f"plot: the {len(labels)} decisions of a stage do not fit into one picture of who was served, "
                f"{MOST_PANELS} do; run.decisions and run.reasons hold them, and plot('use') shows what was used."
            )
        worth = template.numbers(template.objective, arrivals)[0]
        along = _only_number(evaluator)
        price = border[0]
        if along is None:
            places, x_label, drawn = _by_cost(evaluator, arrivals, border, labels)
        else:
            values = np.asarray(arrivals.values[along], dtype=float)
            places = np.repeat(values[:, None], len(labels), axis=1)
            x_label = str(template.fields[along].label)
            drawn = _curves(evaluator, arrivals, along, border, labels)
        low, high = (
            template.limits(sides, none, arrivals)
            for sides, none in ((template.lower, -np.inf), (template.upper, np.inf))
        )
        share, outcome = _outcomes(taken, low, high, np.asarray(reasons))
        frame = pd.DataFrame(
            {
                "decision": np.repeat(labels, len(arrivals)),
                "arrival": np.tile(np.asarray(arrivals.index), len(labels)),
                "x": places.T.ravel(),
                "y": worth.T.ravel(),
                "share": share.T.ravel(),
                "outcome": outcome.T.ravel(),
            }
        )
        parts = [pd.DataFrame({"decision": label, "x": x, "y": y}) for label, (x, y) in drawn.items()]
        earns = "earns" if template.maximize else "costs"
        y_labels = {
            label: _name_of_numbers(evaluator, arrivals, worth[:, j]) or f"what a unit of {label} {earns}"
            for j, label in enumerate(labels)
        }
        return cls(frame, pd.concat(parts, ignore_index=True), price, x_label, y_labels)

    @property
    def _columns(self) -> int:
        return min(len(self.y_labels), 3)

    @property
    def height(self) -> float:
        """Height in inches at a width of nine."""
        return 0.6 + (3.8 if self._columns == 1 else 3.0) * -(-len(self.y_labels) // self._columns)

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        if not len(self.frame):
            raise DataError("ServedDisplay: there is nothing to draw, for no arrival was met.")
        figure = new_figure(self.height) if figure is None else figure
        rows = -(-len(self.y_labels) // self._columns)
        axes = figure.subplots(rows, self._columns, squeeze=False)
        for ax in axes.flat[len(self.y_labels) :]:
            ax.set_axis_off()
        binned = len(self.frame) > MOST_DOTS * len(self.y_labels)
        shown: dict[str, Any] = {}
        for ax, decision in zip(axes.flat, self.y_labels, strict=False):
            own = self.frame[self.frame["decision"] == decision]
            draw = self._draw_cells if binned else self._draw_dots
            drawn = draw(ax, own)
            low, high = ax.get_ylim()
            border = self.border[self.border["decision"] == decision]
            if border["x"].notna().any():
                # White below it keeps the line apart from what it crosses.
                ax.plot(border["x"], border["y"], color="white", linewidth=4.5, alpha=0.8)
                ax.plot(
                    border["x"], border["y"], color=LIMIT, linewidth=2, label=f"worth what it uses, at {self.price}"
                )
            ax.set_ylim(low, high)
            ax.margins(x=0.01)
            ax.set(xlabel=name_of(self.x_label), ylabel=name_of(self.y_labels[decision]))
            served = int((own["share"] > 0).sum())
            called = f"{decision}: " if len(self.y_labels) > 1 else ""
            ax.set_title(name_of(f"{called}{served:,} of {len(own):,} arrivals served"), fontsize="medium")
            shown |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
            if binned and decision == list(self.y_labels)[-1]:
                figure.colorbar(drawn, ax=list(axes.flat), label="served, % of the arrivals there")
        # In one line, if they fit into it.
        columns = len(shown) if sum(map(len, shown)) <= 100 else 2
        figure.legend(
            shown.values(), shown.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize="small"
        )
        return figure

    def _draw_dots(self, ax: Any, own: pd.DataFrame) -> Any:
        met = {outcome: own[own["outcome"] == outcome] for outcome in _LOOKS}
        return [
            ax.scatter(part["x"], part["y"], label=outcome, rasterized=len(own) > 1500, **_LOOKS[outcome])
            for outcome, part in met.items()
            if len(part)
        ]

    def _draw_cells(self, ax: Any, own: pd.DataFrame) -> Any:
        x, y, share = (own[name].to_numpy() for name in ("x", "y", "share"))
        edges = [np.linspace(each.min(), _beyond(each), count + 1) for each, count in zip((x, y), _CELLS, strict=True)]
        met = np.histogram2d(x, y, edges)[0]
        served = np.histogram2d(x, y, edges, weights=share)[0]
        with np.errstate(invalid="ignore"):
            values = np.where(met > 0, 100 * served / met, np.nan)
        return ax.pcolormesh(*edges, values.T, cmap=SHADES, vmin=0, vmax=100, rasterized=True, linewidth=0)


def _beyond(values: FloatArray) -> float:
    """The largest value, or a little more where all are equal."""
    return float(values.max()) if values.max() > values.min() else float(values.min()) + 1.0


def _only_number(evaluator: Evaluator) -> int | None:
    """The number of the only field that the rows depend on, where it is a number; else None."""
    template = evaluator.template
    terms = [term for rows in (template.families, template.rows) for row in rows for term in row.terms]
    slots = {slot if isinstance(slot, int) else -1 for term in terms for slot in term.slots}
    if len(slots) != 1 or -1 in slots:
        return None
    (found,) = slots
    field = template.fields[found]
    return None if field.curve is not None or field.hidden else found


def _by_cost(
    evaluator: Evaluator, arrivals: Arrivals, border: Border, labels: list[str]
) -> tuple[FloatArray, str, dict[str, tuple[FloatArray, FloatArray]]]:
    """Places by what a unit costs, what that is called, and the diagonal; if all cost nothing, by their order."""
    places = costs_of(evaluator, arrivals, *border[1:])[0]
    if not places.any():
        order = np.arange(1.0, len(arrivals) + 1)
        none = np.array([np.nan])
        return np.repeat(order[:, None], len(labels), axis=1), "arrivals t", dict.fromkeys(labels, (none, none))
    ends = np.array([places.min(initial=0.0), places.max(initial=0.0)])
    return places, f"what a unit of it uses, at {border[0]}", dict.fromkeys(labels, (ends, ends))


def _curves(
    evaluator: Evaluator, arrivals: Arrivals, along: int, border: Border, labels: list[str]
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """For each decision where the border runs: what a unit costs, over the only number that the rows depend on."""
    values = np.asarray(arrivals.values[along], dtype=float)
    places = np.linspace(values.min(), values.max(), _BORDER)
    some = arrivals.take(np.zeros(_BORDER, dtype=int))
    made = Arrivals((*some.values[:along], places, *some.values[along + 1 :]), some.index)
    costs = costs_of(evaluator, made, *border[1:])[0]
    return {label: (places, costs[:, j]) for j, label in enumerate(labels)}


def _outcomes(taken: FloatArray, low: FloatArray, high: FloatArray, reasons: Any) -> tuple[FloatArray, Any]:
    """Which share of what could be taken was taken (T, n), and what that is called."""
    low = np.where(np.isfinite(low), low, np.minimum(0.0, taken))
    width = high - low
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(np.isfinite(width) & (width > 0), (taken - low) / width, (taken > low).astype(float))
    share = np.clip(np.where(share < 1e-9, 0.0, np.where(share > 1 - 1e-9, 1.0, share)), 0.0, 1.0)
    outcome = np.where(share == 0, "refused", np.where(share == 1, "served", "served in part")).astype(object)
    outcome[np.isin(reasons, ["guard", "null", "overrun"])] = "changed by the guard"
    return share, outcome


def _name_of_numbers(evaluator: Evaluator, arrivals: Arrivals, numbers: FloatArray) -> str | None:
    """What the user calls these numbers, where they are data of the arrivals as they are."""
    for field, values in zip(evaluator.template.fields, arrivals.values, strict=True):
        if not field.hidden and isinstance(values, np.ndarray) and np.array_equal(values, numbers):
            return str(field.label)
    return None


@dataclass(frozen=True, eq=False)
class UseDisplay:
    """What was used of each row, as a share of its limit, along its index and over time, and at the end.

    Over an index of two dimensions it is drawn at the end; of more, the points are sorted by it. Where a limit is not
    positive everywhere, the room to it takes the place of the share.

    Parameters
    ----------
    frame : DataFrame
        A row for each moment and point of each row of the model: ``row``, ``t``, the index under its own name, ``use``
        so far, and ``limit``.
    axes : dict
        Names of the index for each row.
    needs : frozenset
        Rows with a lower limit, which is to be reached.

    Examples
    --------
    >>> frame = pd.DataFrame({"row": "c", "t": [1, 1, 2, 2], "u": [0.0, 1.0, 0.0, 1.0], "use": [1.0, 0.0, 1.0, 2.0]})
    >>> frame["limit"] = 4.0
    >>> figure = UseDisplay(frame, {"c": ("u",)}).plot()
    >>> [float(value) for value in figure.axes[0].collections[0].get_array().ravel()]
    [25.0, 25.0, 0.0, 50.0]
    """

    frame: pd.DataFrame
    axes: Mapping[str, tuple[str, ...]]
    needs: frozenset[str] = frozenset()

    title = "Use over time"

    @classmethod
    def of_run(cls, evaluator: Evaluator, arrivals: Arrivals, taken: FloatArray) -> UseDisplay:
        """What there is to draw of decisions (T, n)."""
        template = evaluator.template
        if not template.families:
            raise DataError("plot: 'use' draws semi-infinite rows, and this model has none over its stages.")
        if len(template.families) > MOST_PANELS:
            raise DataError(
                f"plot: {len(template.families)} families of rows do not fit into one picture of their use, "
                f"{MOST_PANELS} do; run.uses holds how far each was kept."
            )
        parts, axes, needs = [], {}, set()
        for number, family in enumerate(template.families):
            axes[family.name] = tuple(
                f"{name}_" if name in ("row", "t", "use", "limit") else name for name in family.domain.names
            )
            parts.append(_used_over_time(evaluator, number, arrivals, taken, axes[family.name]))
            if family.sides[0] < 0:
                needs.add(family.name)
        return cls(pd.concat(parts, ignore_index=True), axes, frozenset(needs))

    @property
    def height(self) -> float:
        """Height in inches at a width of nine."""
        return sum(4.4 if len(axes) == 2 else 3.3 for axes in self.axes.values())

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        if not len(self.frame):
            raise DataError("UseDisplay: there is nothing to draw, for no arrival was met.")
        figure = new_figure(self.height) if figure is None else figure
        heights = [4.4 if len(axes) == 2 else 3.3 for axes in self.axes.values()]
        parts = figure.subfigures(len(self.axes), 1, height_ratios=heights)
        draw: Mapping[int, Callable[..., None]] = {1: self._over_time, 2: self._plane}
        for part, (row, axes) in zip(np.atleast_1d(parts), self.axes.items(), strict=True):
            own = self.frame[self.frame["row"] == row]
            draw.get(len(axes), self._sorted)(part, row, own)
        return figure

    def _shares(self, row: str, own: pd.DataFrame) -> tuple[pd.Series, str, dict[str, Any]]:
        """What is drawn of a row, what it is called, and the scale of its colours."""
        if (own["limit"].dropna() > 0).all():
            values = 100 * own["use"] / own["limit"]
            largest = float(values.max())
            over = row not in self.needs and largest > 100 * (1 + 1e-9)
            scale = {"vmin": 0.0, "vmax": 100.0, "cmap": shades_over(), "extend": "max" if over else "neither"}
            if row in self.needs:
                return values, "met, % of the limit", {**scale, "cmap": SHADES}
            return values, "used, % of the limit" + (", beyond it orange" if over else ""), scale
        room = own["use"] - own["limit"] if row in self.needs else own["limit"] - own["use"]
        return room, "room to the limit", {"cmap": SHADES, "extend": "neither"}

    def _over_time(self, figure: Any, row: str, own: pd.DataFrame) -> None:
        (index,) = self.axes[row]
        values, called, scale = self._shares(row, own)
        extend = scale.pop("extend")
        ax, end = figure.subplots(1, 2, width_ratios=(3.2, 1), sharey=True)
        moments = own["t"].unique()
        last = own[own["t"] == moments[-1]]
        places = last[index].to_numpy()
        table = values.to_numpy().reshape(len(moments), len(places)).T
        # What is drawn over the arrivals before a moment is what was used by then.
        cells = draw_cells(ax, moments, places, table, first_edges=np.concatenate([[0], moments]), **scale)
        figure.colorbar(cells, ax=ax, label=called, extend=extend, pad=0.01)
        ax.set(xlabel="arrivals so far", ylabel=name_of(index))
        ax.set_title(name_of(f"'{row}': what was used so far"), fontsize="medium")
        end.plot(last["use"], places, color=USE, linewidth=1.6, label="use")
        end.plot(last["limit"], places, color=LIMIT, linewidth=1.2, label="limit")
        end.fill_betweenx(
            places, last["use"], last["limit"], where=self._broken(row, last), color=PRICE, alpha=0.5, linewidth=0
        )
        end.set_title("at the end", fontsize="medium")
        end.set_xlabel("use and limit")
        end.set_xlim(left=min(0.0, end.get_xlim()[0]))
        figure.legend(
            *end.get_legend_handles_labels(), loc="outside lower right", ncols=2, frameon=False, fontsize="small"
        )
        end.grid(alpha=0.3)

    def _broken(self, row: str, own: pd.DataFrame) -> Any:
        return own["use"] < own["limit"] if row in self.needs else own["use"] > own["limit"]

    def _plane(self, figure: Any, row: str, own: pd.DataFrame) -> None:
        first, second = self.axes[row]
        values, called, scale = self._shares(row, own)
        extend = scale.pop("extend")
        table = own.assign(value=values).pivot_table(index=second, columns=first, values="value", dropna=False)
        ax = figure.subplots()
        cells = draw_cells(ax, table.columns.to_numpy(), table.index.to_numpy(), table.to_numpy(), **scale)
        if np.ptp(table.columns) < 3 * np.ptp(table.index) < 9 * np.ptp(table.columns):
            ax.set_aspect("equal")
        figure.colorbar(cells, ax=ax, label=called, extend=extend)
        ax.set(xlabel=name_of(first), ylabel=name_of(second))
        ax.set_title(name_of(f"'{row}': what was used at the end"), fontsize="medium")

    def _sorted(self, figure: Any, row: str, own: pd.DataFrame) -> None:
        values, called, _ = self._shares(row, own)
        ax = figure.subplots()
        ax.plot(100 * (np.arange(len(own)) + 0.5) / len(own), np.sort(values)[::-1], color=USE, linewidth=1.6)
        ax.axhline(100 if "%" in called else 0, color=LIMIT, linewidth=1.0)
        ax.margins(x=0)
        ax.set(xlabel=name_of(f"% of the points ({', '.join(self.axes[row])})"), ylabel=called)
        ax.set_title(name_of(f"'{row}': what was used at the end"), fontsize="medium")
        ax.grid(alpha=0.3)


def _used_over_time(
    evaluator: Evaluator, number: int, arrivals: Arrivals, taken: FloatArray, names: tuple[str, ...]
) -> pd.DataFrame:
    """Use and limit of a family at some points: at some moments along one axis, at the end over several."""
    family, count = evaluator.template.families[number], len(arrivals)
    points = _places(family.domain, evaluator.points[number], count)
    group = next(each for each in evaluator.groups if each.family == number)
    # Where a row does not hold there is nothing to use.
    holds = family.domain.contains(points)
    moments = np.unique(np.linspace(0, count, min(count, _MOMENTS) + 1).round().astype(int))
    if family.domain.dimension > 1:
        moments = moments[[0, -1]]
    use = np.full((len(moments) - 1, len(points)), np.nan)
    limit = np.full(len(points), np.nan)
    use[:, holds] = _cumulated(evaluator, family, arrivals, taken, points[holds], moments)
    limit[holds] = evaluator.limit(group, points[holds])
    index = {name: np.tile(points[:, axis], len(use)) for axis, name in enumerate(names)}
    return pd.DataFrame(
        {
            "row": family.name,
            "t": np.repeat(moments[1:], len(points)),
            **index,
            "use": use.ravel(),
            "limit": np.tile(limit, len(use)),
        }
    )


def _cumulated(
    evaluator: Evaluator, family: StageFamily, arrivals: Arrivals, taken: FloatArray, points: FloatArray, moments: Any
) -> FloatArray:
    """What was used at points by each moment after the first."""
    parts = [
        evaluator.at_points(family, arrivals.part(slice(start, stop)), taken[start:stop], points)
        for start, stop in zip(moments[:-1].tolist(), moments[1:].tolist(), strict=True)
    ]
    return np.cumsum(parts, axis=0)


def _places(domain: Domain, known: FloatArray, count: int) -> FloatArray:
    """Points of a picture: some of those known along one axis, with holes between; a lattice of a plane."""
    if domain.dimension == 1:
        places = np.unique(known[:, 0])
        places = places[np.unique(np.linspace(0, len(places) - 1, min(len(places), _POINTS)).round().astype(int))]
        if domain.inside is not None:
            middles = (places[1:] + places[:-1]) / 2
            places = np.sort(np.concatenate([places, middles[~domain.contains(middles[:, None])]]))
        return places[:, None]
    if domain.dimension > 2:
        return known
    low, high = (domain.lower, domain.upper) if domain.bounded else (known.min(axis=0), known.max(axis=0))
    side = int(np.clip(np.sqrt(_MOST_VALUES / max(count, 1)), 20, _ASIDE))
    ends = [np.linspace(a, b, side + 1) for a, b in zip(low, high, strict=True)]
    first, second = np.meshgrid(*((each[1:] + each[:-1]) / 2 for each in ends), indexing="ij")
    return np.stack([first.ravel(), second.ravel()], axis=1)


class RunDisplays:
    """One picture of a run, or both, one below the other."""

    def __init__(
        self,
        evaluator: Evaluator,
        arrivals: Arrivals,
        taken: FloatArray,
        reasons: Any,
        border: Border,
        what: str | None,
    ) -> None:
        if what not in (None, "served", "use"):
            raise OptionError(f"plot: what must be 'served' or 'use', or nothing for both (got {what!r}).")
        template = evaluator.template
        self._displays: list[Any] = []
        drawable = template.linear and len(template.decisions) <= MOST_PANELS
        if what == "served" or (what is None and (drawable or not template.families)):
            self._displays.append(ServedDisplay.of_run(evaluator, arrivals, taken, reasons, border))
        if what == "use" or (what is None and (template.families or not drawable)):
            self._displays.append(UseDisplay.of_run(evaluator, arrivals, taken))

    def plot(self, figure: Any = None) -> Any:
        """Draw; into a Figure or SubFigure, or a new one, which is given back."""
        return draw_below_each_other(self._displays, figure)


def left_display(evaluator: Evaluator, left: FloatArray, prices: Mapping[str, Price]) -> RowsDisplay:
    """What was used of each row along its index, and its limit, with the price that it has; ``left`` is at points."""
    frame = left_along_index(evaluator, left)
    parts, axes = [], {}
    for number, family in enumerate(evaluator.template.families):
        names = axes[family.name] = tuple(
            f"{name}_" if name in ("family", "lower", "body", "upper", "violation") else name
            for name in family.domain.names
        )
        points = evaluator.points[number]
        points = points[np.lexsort(points.T[::-1])]
        made = pd.DataFrame({"family": family.name, **{name: points[:, k] for k, name in enumerate(names)}})
        own = frame[frame["row"] == family.name]
        # A row with two limits has its upper one first; what it used is the same by both.
        sides = [own.iloc[k * len(points) : (k + 1) * len(points)] for k in range(len(family.sides))]
        made["lower"], made["upper"] = -np.inf, np.inf
        made["body"] = (sides[0]["limit"] - sides[0]["remaining"]).to_numpy()
        for sign, side in zip(family.sides, sides, strict=True):
            made["upper" if sign > 0 else "lower"] = side["limit"].to_numpy()
        over = np.maximum(made["body"] - made["upper"], made["lower"] - made["body"])
        made["violation"] = np.maximum(over, 0.0)
        parts.append(made)
    return RowsDisplay(
        pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(),
        axes,
        {name: price for name, price in prices.items() if name in axes},
        {f.name: f.domain.inside for f in evaluator.template.families if f.domain.inside is not None},
        "used so far",
    )
