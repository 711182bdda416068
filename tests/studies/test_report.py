"""The page of a study: complete, self-contained, and as a browser shows it."""

import base64
import hashlib
import re
import subprocess
from html.parser import HTMLParser

import pyomo.environ as pyo
import pytest
from browser import CHROMIUM
from models import packing
from pyomo.dae import ContinuousSet
from study_inputs import POLICIES, packing_program

import osilp_pyomo as osilp
from osilp_pyomo.show.mathml import mathml, model_mathml


@pytest.fixture(scope="module")
def study():
    return osilp.compare(packing_program(40), POLICIES, order="permutation", trials=3, guards=["none", "pointwise"])


class Checker(HTMLParser):
    """Collects headings and pictures, and whether every element is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.images, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.images.append(dict(attrs))
        elif tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_the_page_is_whole_and_needs_nothing_else(study, tmp_path):
    pytest.importorskip("matplotlib")
    text = study.to_html(tmp_path / "new" / "report.html").read_text()
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert len(checker.images) == 8
    assert all(image["src"].startswith("data:image/svg+xml;base64,") and image["alt"] for image in checker.images)
    assert not re.search(r"""(src|href)=['"](?!data:)""", text)
    # The policy of contents lets the page's own style and its one script run, and nothing else be asked for.
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    scripts, styles = (
        re.findall(r"<script>(.*?)</script>", text, re.DOTALL),
        re.findall(r"<style>(.*?)</style>", text, re.DOTALL),
    )
    known = {
        f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'" for each in (*scripts, *styles)
    }
    assert len(scripts) == len(styles) == 1
    assert len(known) == 2
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert set(re.findall(r"'sha256-[^']*'", policy)) == known
    assert "http" not in re.sub(r"http://www\.w3\.org/\S+", "", "".join(scripts))
    told = " ".join(checker.texts)
    for measure in study.measures:
        assert measure.title in told
        assert measure.definition in told
    for part in ("Seed 0", "pyomo ", "highspy ", "R*_T (exact over the continuum)", "MirrorDescent(potential='euclidean'",
                 "Program ", "no point of the index that is within its limit is ever taken beyond it"):  # fmt: skip
        assert part in told


def test_an_unfinished_study_says_so(study, tmp_path):
    cut = osilp.Study({**study.settings, "trials": 9}, {name: getattr(study, name) for name in
                      ("runs", "rows", "offline", "paths", "curves", "iterations")})  # fmt: skip
    text = cut.to_html(tmp_path / "report.html", pictures=False).read_text()
    assert "3 of 9 trials are finished; the numbers below are of those." in text


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_shows_the_page(study, tmp_path):
    pytest.importorskip("matplotlib")
    page = study.to_html(tmp_path / "report.html")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
        f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,3000",
    ]  # fmt: skip
    # The probe is a script of its own, which the page's policy would not run.
    script = (
        "<script>addEventListener('load', () => { const broken = [...document.images].filter(i => !i.naturalWidth).length;"
        "const formula = document.querySelector('math').getBoundingClientRect();"
        "const wide = document.documentElement.scrollWidth > innerWidth;"
        "document.title = [document.images.length, broken, formula.width > 50, wide].join(' '); })</script>"
    )
    probed = tmp_path / "probed.html"
    opened = page.read_text().replace("<details>", "<details open>").replace("Content-Security-Policy", "none")
    probed.write_text(opened.replace("</body>", f"{script}</body>"))
    shown = subprocess.run(
        [*command, "--dump-dom", "--virtual-time-budget=5000", probed.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    # Eight pictures, none broken; the formulas take up room; nothing sticks out of the window.
    assert re.search(r"<title>(.*?)</title>", shown.stdout).group(1) == "8 0 true false"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a + b*c", "<mi>a</mi><mo>+</mo><mi>b</mi><mo>&#x2062;</mo><mi>c</mi>"),
        ("(a + b)*c", "<mrow><mo>(</mo><mi>a</mi><mo>+</mo><mi>b</mi><mo>)</mo></mrow><mo>&#x2062;</mo><mi>c</mi>"),
        ("a - (b - c)", "<mi>a</mi><mo>&#x2212;</mo><mrow><mo>(</mo><mi>b</mi><mo>&#x2212;</mo><mi>c</mi><mo>)</mo></mrow>"),
        ("(-a)**2", "<msup><mrow><mrow><mo>(</mo><mo>&#x2212;</mo><mi>a</mi><mo>)</mo></mrow></mrow><mn>2</mn></msup>"),
        ("exp(-u)", "<msup><mi>e</mi><mrow><mo>&#x2212;</mo><mi>u</mi></mrow></msup>"),
        ("x[t,flex]", "<msub><mi>x</mi><mrow><mi>t</mi><mo>,</mo><mi>flex</mi></mrow></msub>"),
        ("sqrt(u)/abs(v)", "<mfrac><mrow><msqrt><mi>u</mi></msqrt></mrow><mrow><mrow><mo>|</mo><mi>v</mi><mo>|</mo></mrow></mrow></mfrac>"),
        ("if <b> else", "<mtext>if &lt;b&gt; else</mtext>"),
        ("__import__('os').system('x')", None),
    ],
)  # fmt: skip
def test_formulas(text, written):
    found = mathml(text)
    assert written is None or found == written


def test_a_model_as_mathematics():
    m = packing(5)
    m.y = pyo.Var(m.T, domain=pyo.NonNegativeIntegers)
    m.reward.set_value(sum(m.value[t] * m.x[t] + 2 * m.y[t] for t in m.T) + 7)
    m.own = pyo.Constraint(m.T, rule=lambda m, t: m.x[t] + m.y[t] <= 3)
    m.total = pyo.Constraint(expr=sum(m.y[t] for t in m.T) <= 4)
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(3), grid=osilp.Midpoint(12))
    study = osilp.compare(program, osilp.Greedy())
    text = model_mathml(study.settings["model"])
    for part in ("<td>maximize</td>", "for all u in [0, 1]", "<i>usage</i>", "<i>total</i>", "<i>own</i>", "<mo>+</mo><mn>7</mn>",
                 "each t, whole numbers", "<mi>&#x221E;</mi>", "<mo>&#x2264;</mo>"):  # fmt: skip
        assert part in text


def test_what_has_no_optimum_is_told_by_an_empty_cell(tmp_path):
    """A capacity below zero: no answer holds it, offline or online."""
    m = pyo.ConcreteModel()
    m.u, m.T = ContinuousSet(bounds=(0, 1)), pyo.RangeSet(6)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 0.1 * t)
    m.total = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: t / 6)
    m.usage = osilp.SemiInfiniteConstraint(
        m.u, rule=lambda m, u: sum(pyo.exp(-((u - m.place[t]) ** 2)) * m.x[t] for t in m.T) <= -1
    )
    program = osilp.compile_online(m, stages=m.T, basis=osilp.RBF(4))
    study = osilp.compare(program, osilp.Greedy(), progress=False)
    assert set(study.offline["status"]) == {"infeasible"}
    study.to_html(tmp_path / "report.html")
    assert ">nan<" not in (tmp_path / "report.html").read_text(encoding="utf-8")
