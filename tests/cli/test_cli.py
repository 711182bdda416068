"""The command line in real processes."""

import json
import os
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

import osilp_pyomo as osilp
from osilp_pyomo.cli import main
from osilp_pyomo.cli.parsing import parse_call
from osilp_pyomo.errors import OptionError
from osilp_pyomo.index.registry import BASES, GRIDS
from osilp_pyomo.online.registry import POLICIES

MODEL = """
import numpy as np
import pandas as pd
import pyomo.environ as pyo
from pyomo.dae import ContinuousSet
import osilp_pyomo as osilp


def build_model():
    m = pyo.ConcreteModel()
    m.u = ContinuousSet(bounds=(0, 1))
    m.T = pyo.RangeSet(30)
    m.value = pyo.Param(m.T, mutable=True, initialize=lambda m, t: 1 + (7 * t) % 5)
    m.place = pyo.Param(m.T, mutable=True, initialize=lambda m, t: (0.37 * t) % 1)
    m.x = pyo.Var(m.T, bounds=(0, 1))
    m.reward = pyo.Objective(expr=sum(m.value[t] * m.x[t] for t in m.T), sense=pyo.maximize)

    @m.SemiInfiniteConstraint(m.u)
    def usage(m, u):
        return sum(pyo.exp(-((u - m.place[t]) / 0.2) ** 2) * m.x[t] for t in m.T) <= 4

    return m


def draw(rng, horizon):
    return pd.DataFrame({"value": rng.uniform(size=horizon), "place": rng.uniform(size=horizon)})


def draw_slowly(rng, horizon):
    import time

    time.sleep(0.3)
    return draw(rng, horizon)


def draw_badly(rng, horizon):
    return 1 / 0


ready = osilp.Resolve()


class Never(osilp.Policy):
    def start(self, setting):
        return {"dual": np.full(setting.size, 1e9)}

    def price(self, state, setting):
        return state["dual"]

    def learn(self, state, setting, seen):
        return state
"""


def run(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "osilp_pyomo.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MODEL)
    return tmp_path


@pytest.mark.long
def test_demo_prints_the_tables_and_writes_the_report(tmp_path):
    done = run("demo", "--arrivals", 200, "--trials", 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # On a slow machine the log has a line of progress each half minute.
    assert [line for line in done.stderr.splitlines() if "trials:" not in line] == []
    for part in ("projected on RBF(10)", "discretized on Midpoint(500)", "exchange, exact on [0, 1]",
                 "The optimum lies in [", "MirrorDescent", "AccelerateThenRefine", "Resolve(exact=True)",
                 "2 trials, 200 arrivals in random order"):  # fmt: skip
        assert part in done.stdout
    assert done.stdout.rstrip().endswith("Report: osilp-demo/report.html")
    assert "<figure>" in (tmp_path / "osilp-demo" / "report.html").read_text()


@pytest.mark.long
def test_demo_as_json(tmp_path):
    done = run("demo", "--arrivals", 60, "--trials", 2, "--json", "--out", tmp_path / "here", cwd=tmp_path)
    record = json.loads(done.stdout)
    assert set(record) == {"offline", "online", "report"}
    assert record["offline"]["exchange, exact on [0, 1]"]["status"] == "optimal"
    assert len(record["online"]["runs"]) == 10


@pytest.mark.long
def test_solve_a_file(folder):
    done = run("solve", "mine.py", "--values", "values.csv", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("exchange: optimal in ")
    assert len(pd.read_csv(folder / "values.csv")) == 30
    record = json.loads(
        run("solve", "mine.py", "--method", "projected", "--basis", "RBF(5)", "--json", cwd=folder).stdout
    )
    assert record["status"] == "optimal"
    assert set(record["violation"]) == {"usage"}
    assert record["objective"] >= json.loads(run("solve", "mine.py", "--json", cwd=folder).stdout)["objective"]


@pytest.mark.long
def test_a_model_that_has_no_answer_ends_with_3(tmp_path):
    (tmp_path / "never.py").write_text(
        "import pyomo.environ as pyo\nfrom pyomo.dae import ContinuousSet\nimport osilp_pyomo as osilp\n"
        "model = m = pyo.ConcreteModel()\nm.u = ContinuousSet(bounds=(0, 1))\nm.x = pyo.Var(bounds=(0, 1))\n"
        "m.o = pyo.Objective(expr=m.x)\n"
        "m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= 2 + u)\n"
    )
    done = run("solve", "never.py", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stdout.startswith("exchange: infeasible")
    assert "'c' at u = 1, at least 3\n             bound of x, at most 1\n" in done.stdout
    done = run("solve", "never.py", "--json", cwd=tmp_path)
    assert done.returncode == 3
    assert [part["name"] for part in json.loads(done.stdout)["conflict"]] == ["c", "x"]


@pytest.mark.long
def test_compare_a_file_in_processes_with_its_own_sampler_and_policy(folder):
    arguments = ["compare", "mine.py", "--stages", "T", "--policies", "Never", "Resolve(exact=True)", "--sampler", "draw",
                 "--trials", 3, "--workers", 2, "--save", "kept", "--report", "page.html", "--seed", 1,
                 "--title", "A <b>band</b>", "--author", "Planning"]  # fmt: skip
    done = run(*arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    for part in ("Never", "Resolve(exact=True)", "3 trials, drawn by draw, seed 1; T = 30", "Report: page.html"):
        assert part in done.stdout
    page = (folder / "page.html").read_text()
    assert "<h1>A &lt;b&gt;band&lt;/b&gt;</h1>" in page
    assert "Planning</p>" in page
    assert "Take <strong>Resolve(exact=True)</strong>: it earns" in page
    record = json.loads(run(*arguments, "--json", cwd=folder).stdout)
    assert len(record["runs"]) == 6
    assert [each["reward_mean"] for each in record["summary"] if each["policy"] == "Never"] == [0.0]


@pytest.mark.long
def test_compare_takes_arrivals_from_a_table(folder):
    pd.DataFrame({"value": [1.0, 2.0, 3.0], "place": [0.1, 0.5, 0.9]}).to_csv(folder / "arrivals.csv", index=False)
    done = run("compare", "mine.py", "--stages", "T", "--data", "arrivals.csv", "--order", "iid", "--trials", 2, "--horizons", 20, 40,
               "--policies", "Greedy", "--guards", "none", "pointwise", cwd=folder)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 arrivals drawn with replacement, seed 0; T = 20, 40" in done.stdout


@pytest.mark.long
def test_an_interrupted_compare_says_how_to_go_on(folder):
    # A shell that runs the tests in the background leaves SIGINT ignored.
    heeding = (
        "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "runpy.run_module('osilp_pyomo.cli', run_name='__main__')"
    )
    command = [sys.executable, "-c", heeding, "compare", "mine.py", "--stages", "T", "--policies", "Greedy",
               "--sampler", "draw_slowly", "--trials", "30", "--save", "kept"]  # fmt: skip
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(list((folder / "kept" / "trials").glob("*.json"))) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.startswith("osilp: stopped after ")
    assert said.endswith(" of 30 trials; the same call goes on with them from 'kept'.\n")
    assert "Traceback" not in said


SENTENCES = [
    (["demo", "--arrivals", 1], "demo: the number of arrivals must be at least 2 (got 1)."),
    (["demo", "--trials", 0], "demo: trials must be a whole number >= 1 (got 0)."),
    (["solve", "nowhere.py"], "There is no file 'nowhere.py'."),
    (["solve", "empty.py"], "'empty.py' has neither a 'model' nor a function 'build_model()'; it needs one of them."),
    (["solve", "broken.py"], "'broken.py', line 2: ZeroDivisionError: division by zero"),
    (["solve", "wrong.py"], "'wrong.py', line 1: SyntaxError: invalid syntax (wrong.py, line 1)"),
    (["solve", "fails.py"], "'fails.py', line 2: build_model() failed: KeyError: 'nothing'"),
    (["solve", "number.py"], "solve: expected a Pyomo model or one of its blocks (got int)."),
    (["solve", "mine.py", "--basis", "RBF(5)"],
     "solve: basis= is for method='projected' only (got it with method='auto')."),
    (["solve", "mine.py", "--method", "projected", "--basis", "Wavelet(5)"],
     "There is no basis 'Wavelet'; there are RBF, Hat, BSpline, Bernstein, Indicator, Cells, Dirac, Functions, Tensor."),
    (["compare", "mine.py", "--stages", "Q"], "The model of 'mine.py' has no Set 'Q' for --stages."),
    (["compare", "mine.py", "--stages", "T", "--sampler", "nobody"],
     "'mine.py' has no function 'nobody' for --sampler."),
    (["compare", "mine.py", "--stages", "T", "--trials", 2],
     "compare: 2 trials of the same arrivals in the same order would all be equal; use order='permutation' or 'iid', or a "
     "sampler=, or trials=1."),
    (["compare", "mine.py", "--stages", "T", "--data", "nowhere.csv"],
     "Arrivals: there is no file 'nowhere.csv'."),
    (["compare", "mine.py", "--stages", "T["], "The model of 'mine.py' has no Set 'T[' for --stages."),
    (["compare", "mine.py", "--stages", "T", "--policies", "ready(exact=True)"],
     "policy 'ready(exact=True)': 'ready' is made already and takes no arguments; write 'ready'."),
    (["compare", "mine.py", "--stages", "T", "--sampler", "draw_badly"],
     "ZeroDivisionError: division by zero (--debug shows where)"),
    (["solve", "leaves.py"], "'leaves.py', line 2: SystemExit: 5"),
    (["compare", "my-model.py", "--stages", "T", "--sampler", "draw", "--workers", 2, "--policies", "Greedy"],
     "--workers: other processes cannot import 'my-model.py' by its name, and it holds a sampler or a policy; call the "
     "file like a Python module, such as model.py."),
    (["new", "notes.txt"], "new: the name of the file must end in .py (got 'notes.txt')."),
    (["new", "mine.py"], "new: 'mine.py' exists already and is left as it is; give another name."),
    (["solve", "mine.py", "--plot", "a.gif"],
     "--plot: the name of the file must end in .png, .svg, .pdf (got 'a.gif')."),
    (["reproduce", "--trials", 0], "reproduce: trials must be a whole number >= 1 (got 0)."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "sentence"), SENTENCES, ids=[" ".join(map(str, each[:4])) for each, _ in SENTENCES]
)
def test_errors_are_one_sentence(folder, arguments, sentence, monkeypatch, capsys):
    # In this process, for a process of each would take seconds to start; what it imports is forgotten again.
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (folder / "empty.py").write_text("x = 1\n")
    (folder / "broken.py").write_text("x = 1\ny = x / 0\n")
    (folder / "wrong.py").write_text("def\n")
    (folder / "fails.py").write_text("def build_model():\n    return {}['nothing']\n")
    (folder / "number.py").write_text("model = 3\n")
    (folder / "leaves.py").write_text("import sys\nsys.exit(5)\n")
    (folder / "my-model.py").write_text(MODEL)
    assert main([str(each) for each in arguments]) == 1
    for name, module in list(sys.modules.items()):
        if str(folder) in str(getattr(module, "__file__", None)):
            del sys.modules[name]
    said = capsys.readouterr()
    assert said.err == f"osilp: {sentence}\n"
    assert said.out == ""


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("value,place\n0.9,0.1,7\n0.8,0.5,7\n0.3,0.2,7\n", "cannot be read as CSV"),
        ("value,place,value\n0.9,0.1,7\n0.8,0.5,7\n", "has two columns 'value'"),
    ],
)
def test_a_table_with_shifted_or_double_columns(folder, table, text):
    (folder / "wrong.csv").write_text(table)
    done = run("compare", "mine.py", "--stages", "T", "--policies", "Greedy", "--data", "wrong.csv", cwd=folder)
    assert done.returncode != 0
    assert text in done.stderr


def test_a_report_that_cannot_be_written_is_found_out_before_the_trials(folder):
    (folder / "taken").mkdir()
    done = run("compare", "mine.py", "--stages", "T", "--policies", "Greedy", "--report", "taken", cwd=folder)
    assert done.returncode != 0
    assert done.stderr.strip() == "osilp: --report: 'taken' cannot be written (it is a folder); give another path."
    assert not done.stdout


def test_a_title_without_a_page_is_refused(folder):
    done = run("compare", "mine.py", "--stages", "T", "--title", "A band", cwd=folder)
    assert done.returncode != 0
    assert done.stderr.strip() == (
        "osilp: --title and --author stand on the page of --report; add --report page.html, or leave them out."
    )


def test_a_refusal_is_one_line_of_a_real_process(folder):
    done = run("solve", "nowhere.py", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "osilp: There is no file 'nowhere.py'.\n")


@pytest.mark.long
def test_what_a_file_prints_stays_out_of_json(folder):
    (folder / "chatty.py").write_text("print('hello')\n" + MODEL)
    done = run("solve", "chatty.py", "--json", cwd=folder)
    assert json.loads(done.stdout)["status"] == "optimal"
    assert done.stderr == "hello\n"


@pytest.mark.long
def test_debug_shows_where(folder):
    done = run("solve", "nowhere.py", "--debug", cwd=folder)
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr


@pytest.mark.long
def test_usage_version_and_help():
    assert run("--version").stdout.startswith("osilp_pyomo 0.")
    text = run("--help").stdout
    for word in ("demo", "new", "solve", "compare", "reproduce", "Exit codes"):
        assert word in text
    bare = run()
    assert (bare.returncode, bare.stdout, bare.stderr) == (0, text, "")
    wrong = run("slove")
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines()[-1].startswith("osilp: error: argument COMMAND: invalid choice: 'slove'")
    for command in ("demo", "solve", "compare", "reproduce"):
        assert "--json" in run(command, "--help").stdout


@pytest.mark.parametrize(
    ("text", "known", "found"),
    [
        ("Resolve", POLICIES, "Resolve(exact=False, growth=1.3, caution=2.0)"),
        ("MirrorDescent('entropy', target='remaining')", POLICIES,
         "MirrorDescent(potential='entropy', target='remaining', step=1.0, scale='free')"),
        ("Midpoint([3, 4])", GRIDS, "Midpoint(count=[3, 4])"), ("Hat(7)", BASES, "Hat(count=7)"),
    ],
)  # fmt: skip
def test_what_is_written_is_made(text, known, found):
    assert repr(parse_call(text, known, "thing")) == found


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Resolve(", "policy 'Resolve(' cannot be read; write it like Resolve(exact=True), with plain numbers and texts only."),
        ("Resolve(__import__('os').system('true'))",
         "policy 'Resolve(__import__('os').system('true'))' cannot be read; write it like Resolve(exact=True), with plain "
         "numbers and texts only."),
        ("Resolve({[1]: 2})",
         "policy 'Resolve({[1]: 2})' cannot be read; write it like Resolve(exact=True), with plain numbers and texts only."),
        ("Resolve(growth=99)", "Resolve: growth must lie in (1, 10] (got 99)."),
        ("Resolve(speed=9)", "policy 'Resolve(speed=9)': Resolve takes exact, growth, caution, discount, smoothed, solver; write it like Resolve(exact=True)."),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_said(text, sentence):
    with pytest.raises(OptionError) as refused:
        parse_call(text, POLICIES, "policy")
    assert str(refused.value) == sentence


def test_help_and_version_load_nothing():
    """Whoever asks what there is does not wait for Pyomo and numpy."""
    code = (
        "import sys; from osilp_entry.command import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('osilp_pyomo', 'pyomo', 'numpy', 'pandas')])"
    )
    for arguments in ([], ["--help"], ["--version"], ["slove"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]"
    assert (
        osilp.__version__
        in subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True).stdout
    )


@pytest.mark.long
def test_a_new_model_is_solved_and_compared(tmp_path):
    done = run("new", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    first, *commands = done.stdout.splitlines()
    assert first == "Wrote model.py. Next:"
    assert [each.split()[:3] for each in commands] == [["osilp", "solve", "model.py"], ["osilp", "compare", "model.py"]]
    for command in commands:
        done = run(*command.split()[1:], cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    assert "Resolve" in done.stdout
    made = subprocess.run([sys.executable, "model.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert made.stdout.startswith("exchange: optimal in ")
    record = json.loads(run("new", "robust.py", "--kind", "robust", "--json", cwd=tmp_path).stdout)
    assert record == {"file": "robust.py", "next": ["osilp solve robust.py"]}
    done = run("solve", "robust.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "proof      no row is violated" in done.stdout


@pytest.mark.long
def test_solve_draws_and_writes_a_page(folder):
    done = run("solve", "mine.py", "--plot", "rows.png", "--report", "page.html", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "rows.png").read_bytes().startswith(b"\x89PNG")
    text = (folder / "page.html").read_text()
    for part in ("<h1>mine</h1>", "<figure>", "It is proved that the values below keep every row", "<h2>Prices</h2>", "<h2>Values</h2>",
                 "x[2]", "more variables are 0."):  # fmt: skip
        assert part in text


@pytest.mark.long
def test_a_page_of_what_has_no_answer_or_no_picture(tmp_path):
    (tmp_path / "never.py").write_text(
        "import pyomo.environ as pyo\nfrom pyomo.dae import ContinuousSet\nimport osilp_pyomo as osilp\n"
        "model = m = pyo.ConcreteModel('<b>never</b>')\nm.u = ContinuousSet(bounds=(0, 1))\nm.x = pyo.Var(bounds=(0, 1))\n"
        "m.o = pyo.Objective(expr=m.x)\n"
        "m.c = osilp.SemiInfiniteConstraint(m.u, rule=lambda m, u: m.x >= 2 + u)\n"
    )
    done = run("solve", "never.py", "--report", "page.html", "--plot", "rows.svg", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")
    assert not (tmp_path / "rows.svg").exists()
    text = (tmp_path / "page.html").read_text()
    assert "<h1>&lt;b&gt;never&lt;/b&gt;</h1>" in text
    assert "There is no answer: the exchange method ended with status" in text
    assert "What cannot hold together" in text
