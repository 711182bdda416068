"""Draw the pictures of README and tutorials: python docs/draw_pictures.py [FOLDER].

They are committed, so that pages can be read without building anything; the tests draw them again into another folder.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import osilp_pyomo as osilp
from osilp_pyomo.demo import demo_model

OPTIONS = {"dpi": 110, "metadata": {"Software": None}}


def overview(folder: Path) -> None:
    """The README's picture: what is kept, what it is worth, and what deciding online costs."""
    m = demo_model(arrivals=1000)
    exact, projected = osilp.solve(m), osilp.solve(m, method="projected", basis=osilp.RBF(10), load=False)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(10))
    policies = {
        "take all that fits": osilp.Greedy(),
        "mirror descent": osilp.MirrorDescent("entropy", target="remaining"),
        "re-solve": osilp.Resolve(exact=True),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=(1.25, 1))
    rows = osilp.evaluate_rows(m, exact)
    left.plot(rows["u"], rows["upper"], color="black", label="capacity")
    left.plot(
        rows["u"], osilp.evaluate_rows(m, projected)["body"], color="#D55E00", linestyle=":", label="ten averages kept"
    )
    left.plot(rows["u"], rows["body"], color="#0072B2", label="kept at every u (exchange)")
    atoms = exact.price.atoms
    left.vlines(
        atoms["u"], 30, 30 + 12 * atoms["weight"], color="#009E73", linewidth=2.5, label="price of the capacity"
    )
    left.set(xlabel="u, the continuous index", ylabel="use", title="Offline: a row for every u", ylim=(30, None))
    left.legend(fontsize="small", loc="upper right")
    colours = ("0.6", "#E69F00", "#0072B2")
    for (name, policy), colour in zip(policies.items(), colours, strict=True):
        run = program.replay(policy, progress=False)
        share = 100 * run.rewards.cumsum() / exact.objective
        lost = run.regret(exact).relative
        right.plot(np.arange(1, 1001), share, color=colour, label=f"{name}: {lost:.0%} lost")
    right.plot([0, 1000], [0, 100], color="black", linewidth=0.8, label="an even pace to the optimum")
    right.set(xlabel="arrivals so far", ylabel="reward, % of the optimum", title="Online, from the same model")
    right.legend(fontsize="small")
    figure.savefig(folder / "overview.png", **OPTIONS)


def rows_of(folder: Path) -> None:
    """The tutorial's first answer, and that of the projected method."""
    m = demo_model(arrivals=1000)
    osilp.plot_rows(m, osilp.solve(m)).savefig(folder / "first-model.png", **OPTIONS)
    projected = osilp.solve(m, method="projected", basis=osilp.RBF(10))
    osilp.plot_rows(m, projected).savefig(folder / "projection.png", **OPTIONS)


def comparison(folder: Path) -> None:
    """Use minus limit under two guards."""
    m = demo_model(arrivals=300)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(10))
    study = osilp.compare(
        program,
        [osilp.MirrorDescent(), osilp.Resolve(exact=True)],
        trials=1,
        order="permutation",
        guards=["none", "pointwise"],
        progress=False,
    )
    study.plot("violation").savefig(folder / "comparison.png", **OPTIONS)


def of_pages(folder: Path) -> None:
    """What the code of a page draws last, under the page's name."""
    home = Path.cwd()
    for page in ("tutorials/street-lamps.md", "how-to/compare-plans.md"):
        file = Path(__file__).resolve().parent / page
        names: dict[str, object] = {"print": lambda *_: None}
        with tempfile.TemporaryDirectory() as empty:
            os.chdir(empty)
            try:
                for block in re.findall(r"```python\n(.*?)```", file.read_text(), re.DOTALL):
                    exec(block, names)
            finally:
                os.chdir(home)
        names["figure"].savefig(folder / f"{file.stem}.png", **OPTIONS)


def run_and_loss(folder: Path) -> None:
    """What happened in a run, and where policies lose."""
    m = demo_model(arrivals=1000)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(10))
    run = program.replay(osilp.Resolve(), progress=False)
    run.plot(benchmark=program.solve_offline()).savefig(folder / "run.png", **OPTIONS)
    policies = {
        "first come, first served": osilp.Greedy(),
        "mirror descent": osilp.MirrorDescent(),
        "re-solved": osilp.Resolve(),
    }
    study = osilp.compare(
        program, policies, trials=5, order="permutation", benchmarks=["exchange"], progress=False
    )  # fmt: skip
    study.plot("loss").savefig(folder / "loss.png", **OPTIONS)


# The flow: boxes are values (text, x, y), zones the rooms that hold them (name, left, right, low, high, colour), arrows
# steps between boxes, with the files that do them (from, to, label, its place and alignment).
BOXES = [
    ("Pyomo model\nSemiInfiniteConstraint,\nProfile, Var, Param", 0.85, 2.75),
    ("SemiInfiniteLP\nrows as functions\nof the index", 4.1, 3.75),
    ("Solved\nx, duals, bound,\naudit", 6.55, 3.75),
    ("Result\nvalues, price,\nbracket", 9.05, 3.75),
    ("OnlineProgram\ntemplate, evaluator,\nstage solver", 4.1, 1.75),
    ("Controller\nDecision, Run", 6.55, 1.75),
    ("Study\nframes, pictures,\npage", 9.05, 1.75),
]
ZONES = [
    ("model", 2.0, 2.95, 1.15, 4.6, "#E69F00"),
    ("offline", 3.15, 9.95, 3.05, 4.6, "#0072B2"),
    ("online", 3.15, 7.5, 1.15, 2.55, "#009E73"),
    ("studies", 8.15, 9.95, 1.15, 2.55, "#CC79A7"),
    ("index: points, sets, test functions, formulas", 3.15, 9.95, 0.55, 0.95, "0.5"),
    ("lp: finite LPs and HiGHS", 3.15, 9.95, 0.05, 0.45, "0.5"),
]
ARROWS = [
    (0, 1, "trace.py", (2.475, 3.5), "center"),
    (0, 4, "stages.py", (2.475, 2.0), "center"),
    (1, 2, "methods.py\nsearch/", (5.35, 4.12), "center"),
    (2, 3, "assemble.py", (7.83, 3.98), "center"),
    (4, 5, "loop.py\nkernels/", (5.42, 2.1), "center"),
    (5, 6, "trial.py", (7.83, 1.92), "center"),
    (4, 1, "hindsight/", (4.2, 2.8), "left"),
    (3, 6, "what a run is measured by", (8.95, 2.8), "right"),
]


def flow(folder: Path) -> None:
    """The architecture page's picture: values as boxes in their rooms, the files that do a step on its arrow."""
    figure, ax = plt.subplots(figsize=(10.5, 4.9), layout="constrained")
    for name, left, right, low, high, colour in ZONES:
        ax.add_patch(plt.Rectangle((left, low), right - left, high - low, facecolor=colour, alpha=0.12, linewidth=0))
        middle = high - low < 1
        place = ((left + right) / 2, (low + high) / 2) if middle else (left + 0.08, high - 0.17)
        align = {"ha": "center" if middle else "left", "va": "center"}
        ax.text(*place, name, fontsize=9.5 if middle else 10.5, fontweight="bold", color="0.25", **align)
    drawn = []
    for text, x, y in BOXES:
        box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": "0.3", "linewidth": 1.1}
        drawn.append(ax.text(x, y, text, ha="center", va="center", fontsize=9.5, bbox=box, zorder=3))
    for start, end, label, place, align in ARROWS:
        style = {"arrowstyle": "-|>", "color": "0.3", "shrinkA": 3, "shrinkB": 3}
        ends = {"patchA": drawn[start].get_bbox_patch(), "patchB": drawn[end].get_bbox_patch()}
        ax.annotate("", BOXES[end][1:], BOXES[start][1:], arrowprops=style | ends, zorder=2)
        ax.text(*place, label, fontsize=8.5, style="italic", color="0.2", zorder=4, ha=align, va="center")
    ax.text(0.85, 4.43, "written by the user", ha="center", va="center", fontsize=9.5, color="0.35")
    ax.set(xlim=(-0.1, 10.05), ylim=(0, 4.65))
    ax.set_axis_off()
    figure.savefig(folder / "flow.png", **OPTIONS)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (overview, rows_of, comparison, run_and_loss, of_pages, flow):
        draw(folder)
    print("\n".join(sorted(path.name for path in folder.glob("*.png"))))


if __name__ == "__main__":
    main()
