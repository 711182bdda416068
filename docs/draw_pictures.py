"""Draw the pictures of README and tutorials: python docs/draw_pictures.py [FOLDER].

They are committed, so that pages can be read without building anything; the tests draw them again into another folder.
"""

import sys
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


# Boxes of the flow: text, column, row; arrows between them by number, with the files that do the step.
BOXES = [
    ("Pyomo model\nSemiInfiniteConstraint,\nProfile, Var, Param", 0, 0.5),
    ("SemiInfiniteLP\nfrozen, labelled arrays", 1, 1),
    ("Solved\npoint, duals, bound", 2, 1),
    ("Result\nvalues, price, bracket,\naudit", 3, 1),
    ("OnlineProgram\ntemplate, test functions,\nno Pyomo", 1, 0),
    ("Controller, Run\ndecisions, price,\nviolation", 2, 0),
    ("Study\nframes, pictures, page", 3, 0),
]
ARROWS = [
    (0, 1, "tracing"),
    (1, 2, "exchange,\nprojection, highs"),
    (2, 3, "audit,\nassembly"),
    (0, 4, "stages,\ntemplates"),
    (4, 5, "stage_loop,\nkernels"),
    (5, 6, "trials,\nmeasures"),
    (4, 1, "stage_lp"),
    (3, 6, "benchmark"),
]


def flow(folder: Path) -> None:
    """The architecture page's picture: values as boxes, the files that turn one into the next on the arrows."""
    figure, ax = plt.subplots(figsize=(10.5, 4.2), layout="constrained")
    ax.axhspan(-0.42, 1.42, xmin=0.0, xmax=0.235, color="#E69F00", alpha=0.12, linewidth=0)
    ax.text(0, 1.33, "Pyomo ends here", ha="center", fontsize=9, color="0.35")
    for text, column, row in BOXES:
        box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": "#0072B2", "linewidth": 1.3}
        ax.text(column, row, text, ha="center", va="center", fontsize=9.5, bbox=box)
    for start, end, label in ARROWS:
        (_, x0, y0), (_, x1, y1) = BOXES[start], BOXES[end]
        across = x0 != x1
        tail = (x0 + 0.37, y0) if across else (x0, y0 + 0.2 * np.sign(y1 - y0))
        head = (x1 - 0.37, y1) if across else (x1, y1 - 0.2 * np.sign(y1 - y0))
        ax.annotate("", head, tail, arrowprops={"arrowstyle": "-|>", "color": "0.3", "shrinkA": 0, "shrinkB": 0})
        middle = ((tail[0] + head[0]) / 2, (tail[1] + head[1]) / 2)
        shift = (0, 0.13 if y0 == y1 else 0.16 * np.sign(y1 - y0)) if across else (0.03, 0)
        align = {"ha": "center", "va": "center"} if across else {"ha": "left", "va": "center"}
        ax.text(middle[0] + shift[0], middle[1] + shift[1], label, fontsize=8, style="italic", color="0.25", **align)
    ax.set(xlim=(-0.55, 3.5), ylim=(-0.42, 1.42))
    ax.set_axis_off()
    figure.savefig(folder / "flow.png", **OPTIONS)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (overview, rows_of, comparison, flow):
        draw(folder)
    print("\n".join(sorted(path.name for path in folder.glob("*.png"))))


if __name__ == "__main__":
    main()
