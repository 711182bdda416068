"""Pages that move, driven in a real browser: numbers equal those of the run, nothing is asked for, names are text."""

import html
import urllib.parse

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from browser import CHROMIUM, Browser
from models import packing
from pyomo.dae import ContinuousSet

import osilp_pyomo as osilp
from osilp_pyomo.errors import OptionError
from osilp_pyomo.show.numbers import plain

EVIL = "a</script><script>document.title='broken'</script><b>bold</b>&amp;"

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
long = pytest.mark.long


class Page(Browser):
    """A page of this package in Chromium: its tiles and its slider."""

    def number(self, name):
        """The number of a tile."""
        return float(self.text(f".tile[data-tile='{name}'] strong").split()[0].replace(",", ""))

    def arrivals(self):
        """How many arrivals the slider stands at."""
        return int(self.text("output").split()[1].replace(",", ""))


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("websocket")
    opened = Page()
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def run():
    m = packing(300)
    m.total = pyo.Constraint(expr=sum(m.x[t] for t in m.T) <= 200)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6), grid=osilp.Midpoint(200))
    return program.replay(osilp.Resolve(exact=True))


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    return run.to_html(tmp_path_factory.mktemp("pages") / "run.html", title=EVIL, author=EVIL, units={"reward": "EUR"})


@pytest.fixture(scope="module")
def study():
    m = packing(60)
    m.name = EVIL
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6), grid=osilp.Midpoint(80))
    policies = {EVIL: osilp.MirrorDescent(), "plain": osilp.Resolve()}
    return osilp.compare(program, policies, order="permutation", trials=3, progress=False)


def close(shown, true):
    """Whether a number that is told with five digits is the true one."""
    return shown == pytest.approx(true, rel=6e-5, abs=1e-6)


@long
@needs_browser
def test_the_slider_moves_and_the_numbers_are_those_of_the_run(browser, run, page):
    browser.open(page)
    assert browser.arrivals() == 300
    assert close(browser.number("earned"), run.objective)
    seen = set()
    for stop in ("HOME", "PAGE_UP", "PAGE_UP", "ARROW_RIGHT", "PAGE_UP", "ARROW_LEFT", "END"):
        browser.press("#osilp-time", stop)
        t = browser.arrivals()
        seen.add(t)
        frame = run.use_over_index(t)
        assert close(browser.number("earned"), run.rewards.iloc[:t].sum())
        assert browser.number("taken") == (run.decisions.iloc[:t] != 0).sum()
        assert close(browser.number("row total"), run.decisions.iloc[:t].sum())
        assert browser.number("fullest") == pytest.approx(
            100 * (frame["use"] / frame["upper"]).max(), rel=6e-3, abs=0.05
        )
        assert browser.text("#osilp-time + output") == f"after {t:,} of 300 arrivals"
        # The chart tells the use at its fullest point, and the limit there.
        told = browser.text(".panel.curve .readout")
        at, use, limit = (float(each.split()[0].rstrip(",:")) for each in
                          (told.partition("u = ")[2], told.partition(": ")[2], told.partition("capacity ")[2]))  # fmt: skip
        nearest = frame.iloc[(frame["index"] - at).abs().argmin()]
        assert use == pytest.approx(nearest["use"], rel=1e-4, abs=1e-6)
        assert limit == pytest.approx(nearest["upper"], rel=1e-4)
        # The last arrival in the list is the one before the slider.
        rows = browser.texts(".panel.list tbody tr:first-child td")
        assert rows[0] == (str(run.decisions.index[t - 1]) if t else "No arrival yet.")
    assert {0, 300} <= seen
    assert len(seen) >= 6


@long
@needs_browser
def test_the_price_is_that_of_the_moment(browser, run, page):
    browser.open(page)
    assert close(browser.number("price"), run.price.total)
    browser.press("#osilp-time", "HOME")
    assert browser.number("price") == 0


@long
@needs_browser
def test_no_request_leaves_the_file_and_names_are_text(browser, page):
    browser.open(page)
    browser.press("#osilp-time", "HOME")
    asked = browser.asked()
    assert [urllib.parse.unquote(each) for each in asked] == [urllib.parse.unquote(page.as_uri())]
    assert browser.complaints() == []
    assert browser.run("return document.title") == EVIL
    assert browser.text("h1") == EVIL
    assert browser.run("return document.querySelectorAll('b').length") == 0
    # What the page does not hold itself is refused: the policy of its head forbids requests and other scripts.
    refused = browser.run("return fetch('data:text/plain,x').then(() => 'asked', () => 'refused')")
    assert refused == "refused"


@long
@needs_browser
def test_charts_are_read_by_keys_and_by_the_pointer(browser, run, page):
    browser.open(page)
    area = ".panel.curve .area"
    browser.press(area, "HOME")
    assert browser.text(".panel.curve .readout").startswith("u = 0: ")
    browser.press(area, "END")
    assert browser.text(".panel.curve .readout").startswith("u = 1: ")
    outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    browser.press(area, "ESCAPE")
    assert browser.text(".panel.curve .readout").startswith("fullest at ")
    browser.point(area)
    told = browser.text(".panel.curve .readout")
    assert 0.4 < float(told.split()[2].rstrip(":")) < 0.6
    # Everything that can be moved says what it is.
    unnamed = browser.run(
        "return [...document.querySelectorAll('[tabindex], input, select, button')].filter((each) =>"
        "!each.getAttribute('aria-label') && !each.textContent && !each.closest('label')).length"
    )
    assert unnamed == 0


@long
@needs_browser
@pytest.mark.parametrize("width", [400, 320])
def test_narrow_screens_need_no_scrolling_to_the_side(browser, study, page, tmp_path, width):
    report = study.to_html(tmp_path / "report.html", pictures=False)
    try:
        browser.size(width, 800)
        for each in (page, report):
            browser.open(each)
            browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            assert browser.run("return document.documentElement.scrollWidth") <= width
    finally:
        browser.size(1200, 900)


@long
@needs_browser
def test_policies_of_a_study_are_switched_on_and_off(browser, study, tmp_path):
    page = study.to_html(tmp_path / "report.html", pictures=False)
    browser.open(page)
    browser.run("document.querySelector('details').open = true")
    assert browser.complaints() == []
    assert browser.run("return document.querySelectorAll('b').length") == 0
    assert browser.text("h1") == EVIL
    lines = "return document.querySelectorAll('.panel.curve .line[class*=\" c\"], .panel.curve .line.c1').length"
    before = browser.run(lines)
    browser.press("fieldset input", "SPACE")
    assert 0 < browser.run(lines) < before
    # What is told of each policy is the first trial's, at that moment.
    browser.press("#osilp-time", "HOME", *["ARROW_RIGHT"] * 10)
    t = browser.arrivals()
    paths = study.paths[(study.paths["trial"] == 0) & (study.paths["t"] == t)].set_index("policy")
    names = browser.texts(".tiles tbody th")
    assert set(names) == {EVIL, "plain"}
    for name, shown in zip(names, browser.texts(".tiles td[data-tile=earned]"), strict=True):
        assert close(float(shown), paths.loc[name, "reward"])
    curves = study.curves[(study.curves["kind"] == "use so far") & (study.curves["t"] == t)]
    limit = study.curves[study.curves["kind"] == "limit"].set_index("at")["value"]
    for name, shown in zip(names, browser.texts(".tiles td[data-tile=fullest]"), strict=True):
        own = curves[curves["policy"] == name].set_index("at")["value"]
        assert float(shown.split()[0]) == pytest.approx(100 * (own / limit.reindex(own.index)).max(), rel=6e-3)


def city(arrivals):
    """Couriers over a plane and an hour of the day."""
    random = np.random.default_rng(1)
    m = pyo.ConcreteModel("couriers")
    m.u, m.v, m.h = ContinuousSet(bounds=(0, 10)), ContinuousSet(bounds=(0, 6)), ContinuousSet(bounds=(8, 20))
    m.T = pyo.RangeSet(arrivals)
    m.px = pyo.Param(m.T, mutable=True, initialize=lambda m, t: random.uniform(0, 10))
    m.py = pyo.Param(m.T, mutable=True, initialize=lambda m, t: random.uniform(0, 6))
    m.hour = pyo.Param(m.T, mutable=True, initialize=lambda m, t: random.uniform(8, 20))
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.income = pyo.Objective(expr=sum((1 + m.px[t]) * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u, m.v)
    def area(m, u, v):
        return sum(pyo.exp(-((u - m.px[t]) ** 2) - (v - m.py[t]) ** 2) * m.x[t] for t in m.T) <= 1 + 0.1 * u

    @m.SemiInfiniteConstraint(m.h)
    def desk(m, h):
        return sum(pyo.exp(-(((h - m.hour[t]) / 0.5) ** 2)) * m.x[t] for t in m.T) <= 3

    return m


@long
@needs_browser
def test_a_plane_is_a_map_and_constraints_are_chosen(browser, tmp_path):
    m = city(50)
    program = osilp.compile_online(m, stages=m.T)
    run = program.replay(osilp.MirrorDescent())
    browser.open(run.to_html(tmp_path / "run.html"))
    assert browser.complaints() == []
    shown = (
        "return [...document.querySelectorAll('.panel')].filter((each) => !each.hidden).map((each) => each.className)"
    )
    assert sum("heat" in each for each in browser.run(shown)) == 2
    browser.press(".panel.heat .area", "HOME")
    told = browser.text(".panel.heat .readout")
    u, v, share = (float(told.partition(mark)[2].split()[0].rstrip(",:")) for mark in ("u = ", "v = ", ": "))
    true = run.evaluator.at_points(program.template.families[0], run.arrivals, run.decided, np.array([[u, v]])) / (
        1 + 0.1 * u
    )
    # Places are told with three digits.
    assert share == pytest.approx(100 * true[0], rel=0.02, abs=0.05)
    browser.run(
        "const c = document.getElementById('osilp-row'); c.value = 'desk'; c.dispatchEvent(new Event('change'))"
    )
    assert not any("heat" in each for each in browser.run(shown))
    frame = run.use_over_index().query("row == 'desk'")
    assert browser.number("fullest") == pytest.approx(100 * (frame["use"] / frame["upper"]).max(), rel=6e-3)


@long
def test_a_hundred_thousand_arrivals_fit_into_three_megabytes(tmp_path):
    m = packing(60)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6), grid=osilp.Midpoint(200)).rescaled(100_000)
    random = np.random.default_rng(0)
    data = pd.DataFrame({"value": random.uniform(size=100_000), "place": random.uniform(size=100_000)})
    run = program.replay(osilp.MirrorDescent(), data)
    page = run.to_html(tmp_path / "run.html")
    assert page.stat().st_size < 3_000_000
    text = page.read_text()
    assert "Each bar stands for about 1,000 arrivals." in text
    assert "100,000 decisions are too many to list one by one on a page; run.decisions holds them all." in text
    assert f"MirrorDescent decided 100,000 arrivals one by one and earned {plain(run.objective)}" in text


def test_what_the_page_of_a_run_says_at_its_top(run, tmp_path):
    text = run.to_html(tmp_path / "run.html").read_text()
    assert "capacity was never exceeded." in text
    assert "A run, arrival by arrival" in text
    m = packing(60)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6))
    loose = program.replay(osilp.MirrorDescent(), guard="none")
    text = loose.to_html(tmp_path / "loose.html", benchmark=program.solve_offline()).read_text()
    text = html.unescape(text).replace("\xa0", " ")
    assert (
        f"'usage' was exceeded by up to {plain(np.ceil(1000 * loose.relative_violation) / 10)} % of its limit." in text
    )
    assert f"{100 * loose.objective / program.solve_offline().objective:.1f} % of the best possible" in text


def test_runs_that_cannot_be_shown_are_refused(run, tmp_path):
    m = packing(60)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(6))
    projected = program.replay(osilp.MirrorDescent(), program.project(program.data))
    for each, path, text in (
        (projected, tmp_path / "run.html", "to_html: projected arrivals do not say what they use at single points; replay the data themselves."),
        (run, tmp_path, f"to_html: '{tmp_path}' cannot be written (it is a folder); give another path."),
        (run, None, "to_html: the path of a file is needed, such as 'page.html' (got None)."),
    ):  # fmt: skip
        with pytest.raises(OptionError) as refused:
            each.to_html(path)
        assert str(refused.value) == text
    assert not list(tmp_path.iterdir())
