"""What moves on a study's page: its first trial, every policy on the same arrivals, over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from osilp_pyomo._arrays import FloatArray
from osilp_pyomo.show.numbers import Units, per
from osilp_pyomo.show.pages import panels
from osilp_pyomo.studies.answer import Answer

# Constraints and policies that are shown.
_ROWS, _POLICIES = 12, 12


def moving_study(study: Any, units: Units, answer: Answer) -> panels.Panel | None:
    """What the script shows of a study; None where its first trial was not told."""
    return _Moving(study, units, answer).whole() if len(study.paths) and len(study.curves) else None


class _Moving:
    """The first trial of the most arrivals on the first grid."""

    def __init__(self, study: Any, units: Units, answer: Answer) -> None:
        self.units, self.model = units, study.settings["model"]
        self.paths = _first(study.paths)
        self.curves = _first(study.curves)
        self.offline = _first(study.offline) if len(study.offline) else study.offline
        self.benchmark = answer.benchmark
        self.keys = [line.key for line in answer.lines[:_POLICIES]]
        self.names = [line.name for line in answer.lines[:_POLICIES]]
        self.total = int(self.paths["horizon"].iloc[0])
        # Use is told at every second moment of the paths, and the last.
        self.times = [0, *sorted(self.paths["t"].unique().tolist())[::-2][::-1]]
        self.verb = "earned" if self.model["sense"] == "maximize" else "spent"
        upper = all(row["side"] == "<=" for row in self.model["rows"])
        self.word = "capacity" if upper else "limit"
        self.rows = list(dict.fromkeys(row["name"] for row in self.model["rows"]))[:_ROWS]

    def whole(self) -> panels.Panel:
        """Everything that the script needs."""
        tiles = [panels.tile("earned", f"{self.verb} so far", self.units.goal, self._path("reward").tolist())]
        shown = []
        for row in self.rows:
            use = self._use(row)
            if use is not None:
                tiles += use[0]
                shown.append(use[1])
            shown += self._prices(row)
        if not any(each["name"] == "fullest" for each in tiles):
            most = 100 * self._path("most_used")
            if np.all(np.isfinite(most)):
                tiles.append(panels.tile("most_used", "used of the fullest budget", "%", most.tolist()))
        shown.append(self._earned())
        return {
            "unit": "arrivals", "total": self.total, "times": self.times,
            "series": [{"name": name} for name in self.names], "rows": self.rows or [""], "tiles": tiles,
            "panels": shown,
        }  # fmt: skip

    def _path(self, column: str) -> FloatArray:
        """A column of the paths (policies, moments), zero before the first arrival."""
        found = self.paths.set_index(["policy", "guard", "t"])[column]
        return np.array([[0.0, *(found[(*key, t)] for t in self.times[1:])] for key in self.keys])

    def _earned(self) -> panels.Panel:
        rewards = self._path("reward")
        lines = [(number, name, rewards[number]) for number, name in enumerate(self.names)]
        levels = []
        if self.benchmark:
            exact = self.benchmark == "exchange"
            what = "the best possible, all known in advance" if exact else "a bound on the best possible"
            levels = [(what, float(self.offline.loc[self.offline["benchmark"] == self.benchmark, "objective"].iloc[0]))]
        title = panels.named(f"{self.verb.capitalize()} over time", self.units.goal)
        return panels.path(title, self.total, self.units.goal, lines, levels)

    # -- along the index -----------------------------------------------------------------------------------

    def _sides(self, row: str) -> list[tuple[str, str]]:
        return [(each["side"], each["axes"][0]) for each in self.model["rows"] if each["name"] == row]

    def _use(self, row: str) -> tuple[list[panels.Panel], panels.Panel] | None:
        """Use along the index of one axis after each moment; None where it was not told."""
        part = self.curves[(self.curves["row"] == row) & (self.curves["kind"] == "use so far")]
        if not len(part):
            return None
        at = np.sort(part["at"].unique())
        lines = []
        for number, (policy, guard) in enumerate(self.keys):
            own = part[(part["policy"] == policy) & (part["guard"] == guard)]
            frames = own.pivot_table(index="t", columns="at", values="value").reindex(self.times, fill_value=0.0)
            lines.append(panels.moving_line(number, self.names[number], frames[at].to_numpy()))
        sides = self._sides(row)
        upper, unit, axis = any(side == "<=" for side, _ in sides), self.units[row], sides[0][1]
        still, limits = [], []
        for kind, look, label in (
            ("upper limit", "limit", self.word),
            ("limit", "limit", self.word if upper else "needed"),
            ("lower limit", "lower", "needed"),
        ):
            values = self._still(row, kind, "", at)
            if values is not None:
                still.append(panels.still_line(look, label, values))
                limits.append(values)
        top = float(part["value"].max())
        chart = panels.curve(
            panels.named(f"Use and {self.word} of '{row}'", unit), row, (axis, self.units[axis]), at, unit, lines,
            still,
            panels.spread(*limits, [top]), upper, "fullest at " if upper else "least reached at ",
            nothing="No policy is switched on.",
        )  # fmt: skip
        return self._fullest(row, part, at, limits[0] if upper and limits else None), chart

    def _fullest(self, row: str, part: pd.DataFrame, at: FloatArray, limit: FloatArray | None) -> list[panels.Panel]:
        if limit is None or not np.all(limit > 0):
            return []
        scale = dict(zip(at.tolist(), limit.tolist(), strict=True))
        share = (100 * part["value"] / part["at"].map(scale)).groupby([part["policy"], part["guard"], part["t"]]).max()
        values = [[0.0, *(float(share[(*key, t)]) for t in self.times[1:])] for key in self.keys]
        return [panels.tile("fullest", "fullest place", "%", values, row=row)]

    def _still(self, row: str, kind: str, policy: str, at: FloatArray) -> FloatArray | None:
        """A function of the index that stays, at some places; those of use are among those of limits."""
        part = self.curves[self.curves["row"] == row]
        part = part[(part["kind"] == kind) & (part["policy"] == policy)]
        if not len(part):
            return None
        return part.drop_duplicates("at").set_index("at")["value"].reindex(at).to_numpy()

    def _prices(self, row: str) -> list[panels.Panel]:
        """The price along the first axis, as it stood at the moments that were told."""
        part = self.curves[(self.curves["row"] == row) & (self.curves["kind"] == "price")]
        online = part[part["guard"] != ""]
        if not len(online) or not float(part["value"].abs().max()) > 0:
            return []
        at = np.sort(online["at"].unique())
        lines = []
        for number, (policy, guard) in enumerate(self.keys):
            own = online[(online["policy"] == policy) & (online["guard"] == guard)]
            frames = own.pivot_table(index="t", columns="at", values="value").reindex(columns=at)
            told = frames.index.to_numpy()
            moments = [int(np.searchsorted(told, t, side="right")) - 1 for t in self.times]
            lines.append(panels.moving_line(number, self.names[number], frames.to_numpy(), moments))
        still = []
        best = self._still(row, "price", "offline, exchange", at)
        heights = [online["value"].to_numpy()]
        if best is not None:
            still.append(panels.still_line("best", "best possible, known afterwards", best))
            # A policy's first prices may be far off, and must not make all others flat.
            heights = [best, np.minimum(online["value"].to_numpy(), 3 * float(np.nanmax(best)) or np.inf)]
        axis = self._sides(row)[0][1]
        unit = per(self.units.goal, self.units[row], self.units[axis])
        told_at = ", ".join(f"{t:,}" for t in sorted(online["t"].unique().tolist()))
        return [panels.curve(
            f"Price along {axis}", row, (axis, self.units[axis]), at, unit, lines, still, panels.spread(*heights),
            peak="dearest at ", nothing="No price is known yet at this moment.",
            note=f"Per unit of {axis}, as it stood after {told_at} arrivals; prices on single points are spread by 2 % "
            "of the index.",
        )]  # fmt: skip


def _first(frame: pd.DataFrame) -> pd.DataFrame:
    """The first trial of the most arrivals, on the first grid."""
    frame = frame[(frame["horizon"] == frame["horizon"].max()) & (frame["grid"] == frame["grid"].min())]
    return frame[frame["trial"] == frame["trial"].min()]
