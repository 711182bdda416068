"""Take the pictures of pages that move: python docs/draw_pages.py [FOLDER].

Needs selenium, Chromium and chromedriver.
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import osilp_pyomo as osilp
from osilp_pyomo.demo import demo_model

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
    options = webdriver.ChromeOptions()
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(each)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    with TemporaryDirectory() as folder:
        write_pages(Path(folder))
        for name, (width, height, script) in SHOTS.items():
            sizes = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
            driver.get((Path(folder) / f"{name}.html").as_uri())
            driver.execute_script(script)
            driver.save_screenshot(str(target / f"{name}.png"))
    driver.quit()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures" / "pages")
