"""Take the pictures of pages that move: python docs/draw_pages.py [FOLDER].

Needs Chromium and websocket-client.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import osilp_pyomo as osilp
from osilp_pyomo.demo import demo_model

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser import Browser

# Widths and heights of the pictures, and what is done before they are taken.
SHOTS = {
    "report": (1100, 800, ""),
    "run": (
        1100,
        980,
        "const s = document.getElementById('osilp-time'); s.value = 60; s.dispatchEvent(new Event('input'))",
    ),
}


def write_pages(folder):
    """The pages of docs/how-to/report.md."""
    m = demo_model(arrivals=300)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(10))
    policies = [osilp.MirrorDescent(), osilp.AccelerateThenRefine(), osilp.ExperienceReplay()]
    study = osilp.compare(program, policies, trials=8, order="permutation", seed=0)
    units = {"reward": "EUR", "u": "GHz"}
    study.to_html(folder / "report.html", title="3.5 GHz band", author="Planning", units=units)
    run = program.replay(osilp.ExperienceReplay())
    run.to_html(folder / "run.html", title="One day", units=units, benchmark=program.solve_offline())


def main(target):
    """Write the pages, open them, and take their pictures."""
    browser = Browser()
    with TemporaryDirectory() as folder:
        write_pages(Path(folder))
        for name, (width, height, script) in SHOTS.items():
            browser.size(width, height)
            browser.open(Path(folder) / f"{name}.html")
            browser.run(script)
            browser.picture(target / f"{name}.png")
    browser.quit()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures" / "pages")
