"""A controller's state: every call happens whole or not at all, and what is read from a file was saved."""

import contextlib
import gc
import io
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pytest
from interrupts import interrupted_after

import osilp_pyomo as osilp
from osilp_pyomo._files import read_state, write_state
from osilp_pyomo.demo import demo_model
from osilp_pyomo.errors import DataError, OptionError, SavedStateError

MODEL = demo_model(arrivals=50)
PROGRAM = osilp.compile_online(MODEL, stages=MODEL.T, basis=osilp.RBF(5), horizon=1000)
POLICIES = {
    "greedy": osilp.Greedy(),
    "gradient": osilp.GradientDescent(),
    "entropy": osilp.MirrorDescent("entropy"),
    "two stages": osilp.AccelerateThenRefine(),
    "experience": osilp.ExperienceReplay(replays=8, memory=150),
    "resolve": osilp.Resolve(),
    "resolve exact": osilp.Resolve(exact=True),
}


def drawn(count, seed=0, different=None):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({"value": rng.uniform(size=count), "place": rng.uniform(size=count)})
    return rows if different is None else rows.iloc[rng.integers(different, size=count)].reset_index(drop=True)


def told(controller):
    """Everything that a controller would save."""
    live = controller._live
    arrays = {
        f"{name} {view}": each[view] for name, each in (("total", live.total), ("left", live.left)) for view in each
    }
    arrays |= {f"state {name}": value for name, value in live.state.items()}
    if live.history is not None:
        arrays |= {f"history {name}": value for name, value in live.history.to_arrays().items()}
    if live.memory is not None:
        arrays |= {f"memory {name}": value for name, value in live.memory.to_arrays().items()}
    if live.fractions is not None:
        arrays["fractions"] = live.fractions
    return {name: np.array(value) for name, value in arrays.items()} | {
        "numbers": np.array([live.t, live.horizon, live.earned])
    }


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


# -- whole or not at all ----------------------------------------------------------------------------------


class Interrupted(BaseException):
    """What a signal raises; a KeyboardInterrupt that came a little late would end the tests."""


def interrupted(act, seconds):
    """Do something that a signal interrupts after some time, if it takes as long."""
    armed = [True]

    def interrupt(*_):
        if armed[0]:
            raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    # Where others have callbacks in the garbage collector, an interrupt in one of them is lost.
    gc.disable()
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            act()
        finally:
            armed[0] = False
            signal.setitimer(signal.ITIMER_REAL, 0)
    except (Interrupted, TypeError):
        # Numpy makes a TypeError of an interrupt while it compares two kinds of numbers.
        pass
    finally:
        gc.enable()
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", POLICIES)
def test_an_interrupt_changes_nothing(name):
    """A signal at a random moment: each call happened whole or not at all, as if those that did not had never come."""
    rng = np.random.default_rng(len(name))
    data = drawn(300, 1)

    def go_on(controller):
        while controller.t < 290:
            t, some = controller.t, int(rng.integers(1, 40))
            if rng.random() < 0.5:
                controller.steps(data.iloc[t : t + some])
            else:
                controller.step(data.iloc[t])

    # Compiled beforehand, all of it: an interrupt in the middle of numba's own work is numba's.
    go_on(PROGRAM.controller(POLICIES[name], "pointwise"))
    for _ in range(8):
        controller = PROGRAM.controller(POLICIES[name], "pointwise")
        controller.steps(data.iloc[:10])
        interrupted(partial(go_on, controller), float(rng.uniform(0.0005, 0.02)))
        plain = PROGRAM.controller(POLICIES[name], "pointwise")
        plain.steps(data.iloc[: controller.t])
        # The same arrivals in other portions: sums may be rounded otherwise, counts may not.
        one, two = told(controller), told(plain)
        assert one.keys() == two.keys()
        for key in one:
            np.testing.assert_allclose(one[key], two[key], rtol=1e-9, atol=1e-9, err_msg=key)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("guard", ["none", "projected", "pointwise"])
def test_what_was_refused_was_not_learned(name, guard):
    controller = PROGRAM.controller(POLICIES[name], guard)
    controller.steps(drawn(20, 2))
    before = told(controller)
    mistakes = [
        lambda: controller.step(value=np.nan, place=0.5),
        lambda: controller.step(value=1e308, place=0.5),
        lambda: controller.steps(pd.DataFrame({"value": [0.5, 1e307, 1e308], "place": [0.1, 0.2, 0.3]})),
        lambda: controller.steps(None),
        lambda: controller.update(value=0.5, place=0.5, x=2.0),
        lambda: controller.release(value=0.5, place=0.5, x=-1.0),
        lambda: controller.add_budget("usage", "5"),
        lambda: controller.add_budget("usage", True),
        lambda: controller.add_budget("usage", [1, 2]),
        lambda: controller.add_budget("usage", np.inf),
        lambda: controller.add_budget("usage", lambda u: "much"),
        lambda: controller.add_budget("usage", lambda u: np.ones(3)),
        lambda: controller.revise(3),
    ]
    for act in mistakes:
        with pytest.raises((DataError, OptionError)):
            act()
        assert_same(told(controller), before)


def test_numbers_that_are_too_large():
    controller = PROGRAM.controller(osilp.MirrorDescent(), "projected")
    with pytest.raises(DataError) as error:
        controller.step(value=1e308, place=0.5)
    assert str(error.value) == (
        "The arrival 0 has numbers so large that what is left or the price would no longer be finite; nothing was "
        "changed. Look for a wrong unit, or for a missing value that was written as a number."
    )
    assert np.isfinite(controller.dual).all()


def test_steps_of_nothing():
    controller = PROGRAM.controller(osilp.Greedy())
    with pytest.raises(DataError) as error:
        controller.steps(None)
    assert str(error.value) == "steps: a frame of arrivals is needed (got None); replay() runs the model's own."
    assert list(controller.steps(PROGRAM.data.head(0)).columns) == ["x", "reason", "reward"]
    assert controller.t == 0


def test_amounts_of_budget_are_numbers():
    controller = PROGRAM.controller(osilp.Greedy())
    for wrong in ("abc", None, [1, 2], 1j, True, "5", np.nan):
        with pytest.raises(OptionError) as error:
            controller.add_budget("usage", wrong)
        assert str(error.value) == f"add_budget: the amount for 'usage' must be a finite number (got {wrong!r})."


def test_arrivals_of_another_program_are_refused():
    other = osilp.compile_online(MODEL, stages=MODEL.T, basis=osilp.Hat(5), horizon=1000)
    for act in (
        lambda: PROGRAM.replay(osilp.MirrorDescent(), other.project(), "projected"),
        lambda: PROGRAM.controller(osilp.Greedy(), "none").step(other.project()[0]),
    ):
        with pytest.raises(DataError) as error:
            act()
        assert str(error.value) == (
            "These arrivals were projected by another program, with other formulas, test functions or points; project "
            "them by this one."
        )
    # The same formulas with other budgets project the same.
    assert PROGRAM.rescaled(500).replay(osilp.Greedy(), PROGRAM.project(), "projected").objective > 0


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_steps_are_those_of_a_replay_where_arrivals_repeat(name, seed):
    data = drawn(300, seed, different=100)
    program = PROGRAM.rescaled(300)
    controller = program.controller(POLICIES[name], "none")
    one = [controller.step(data.iloc[k]).x for k in range(len(data))]
    np.testing.assert_allclose(program.replay(POLICIES[name], data, "none").decisions, one, atol=1e-9)


# -- policies of one's own --------------------------------------------------------------------------------


class Own(osilp.Policy):
    """Gives whatever price it is told to."""

    def __init__(self, price, learn=None):
        self.given, self.learned = price, learn

    def __repr__(self):
        return "Own()"

    def start(self, setting):
        return {"dual": np.zeros(setting.size)}

    def price(self, state, setting):
        return self.given

    def learn(self, state, setting, seen):
        return state if self.learned is None else self.learned(state, setting)


@pytest.mark.parametrize(
    ("price", "text"),
    [
        (np.full(5, np.nan), "the price of resource 0 must be a finite number of at least 0 (got nan)"),
        (np.full(5, -1.0), "the price of resource 0 must be a finite number of at least 0 (got -1)"),
        (np.zeros(3), "price must give 5 numbers, one a resource (got shape (3,))"),
        (None, "price must give 5 numbers, one a resource (got shape ())"),
        ("dear", "price must give 5 numbers, one a resource (got 'dear')"),
    ],
)
def test_a_price_that_is_none(price, text):
    controller = PROGRAM.controller(Own(price), "none")
    with pytest.raises(OptionError) as error:
        controller.step(value=0.5, place=0.5)
    assert str(error.value).startswith(f"Own(): {text}")
    assert controller.t == 0


def test_a_policy_that_learns_nothing():
    controller = PROGRAM.controller(Own(np.zeros(5), lambda state, setting: None), "none")
    with pytest.raises(OptionError) as error:
        controller.step(value=0.5, place=0.5)
    assert str(error.value) == "Own(): learn must give back the new state, a dictionary of arrays (got NoneType)."


def test_a_policy_cannot_change_the_program():
    def spoil(state, setting):
        setting.floor[:] = 5.0
        return state

    controller = PROGRAM.controller(Own(np.zeros(5), spoil), "none")
    with pytest.raises(ValueError, match="read-only"):
        controller.step(value=0.5, place=0.5)
    assert controller.t == 0


# -- files ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["mirror", "resolve"])
def saved(request, tmp_path_factory):
    """A controller, its policy, and the bytes of its file."""
    policy = {"mirror": osilp.MirrorDescent(), "resolve": osilp.Resolve()}[request.param]
    controller = PROGRAM.controller(policy, "pointwise")
    controller.steps(drawn(25, 3))
    path = tmp_path_factory.mktemp("saved") / "state.npz"
    controller.save(path)
    return controller, path.read_bytes()


def loaded(content, path):
    path.write_bytes(content)
    return osilp.load_controller(path, PROGRAM)


def assert_refused_or_equal(content, path, controller):
    """True where a file was refused."""
    try:
        found = loaded(content, path)
    except SavedStateError:
        return True
    assert_same(told(found), told(controller))
    assert (found.guard, found.beyond, found.seed, found.policy) == (
        controller.guard, controller.beyond, controller.seed, controller.policy,
    )  # fmt: skip
    return False


def test_flipped_bits_are_refused_or_harmless(saved, tmp_path):
    controller, content = saved
    rng = np.random.default_rng(6)
    refused = 0
    for place in rng.integers(8 * len(content), size=150):
        wrong = bytearray(content)
        wrong[place // 8] ^= 1 << (place % 8)
        refused += assert_refused_or_equal(bytes(wrong), tmp_path / "wrong.npz", controller)
    assert refused > 100


def test_names_in_the_directory_of_the_file(saved, tmp_path):
    """The last kilobytes hold the names, where a flipped bit once made an array vanish."""
    controller, content = saved
    rng = np.random.default_rng(7)
    for place in rng.integers(8 * (len(content) - 3000), 8 * len(content), size=150):
        wrong = bytearray(content)
        wrong[place // 8] ^= 1 << (place % 8)
        assert_refused_or_equal(bytes(wrong), tmp_path / "wrong.npz", controller)


def test_cut_files_are_refused(saved, tmp_path):
    _, content = saved
    for length in np.random.default_rng(8).integers(len(content), size=30):
        with pytest.raises(SavedStateError):
            loaded(content[:length], tmp_path / "cut.npz")


def crafted(content, change, path):
    """The same file with something changed, written as by save, digest and all."""
    with np.load(io.BytesIO(content)) as archive:
        header = json.loads(str(archive["header"]))
        arrays = {name[2:]: archive[name] for name in archive.files if name != "header"}
    for own in ("format", "arrays", "digest"):
        del header[own]
    change(header, arrays)
    write_state(path, header, arrays)
    return path


CRAFTED = {
    "fewer numbers left": lambda h, a: a.update({"remaining": a["remaining"][:1]}),
    "more duals": lambda h, a: a.update({"state:dual": np.zeros(500_000)}),
    "a dual that is no number": lambda h, a: a["state:dual"].fill(np.nan),
    "an infinite dual in single precision": lambda h, a: a.update(
        {"state:dual": np.full(len(a["state:dual"]), np.inf, np.float32)}
    ),
    "a dual below its floor": lambda h, a: a["state:dual"].fill(-1.0),
    "whole numbers": lambda h, a: a.update({"remaining": np.zeros(5, dtype=int)}),
    "another array": lambda h, a: a.update({"junk": np.zeros(3)}),
    "an array less": lambda h, a: a.pop("null"),
    "a negative time": lambda h, a: h.update(t=-5),
    "a time that is no number": lambda h, a: h.update(t="5"),
    "true for a time": lambda h, a: h.update(t=True),
    "no horizon": lambda h, a: h.update(horizon=0),
    "another guard": lambda h, a: h.update(guard="nothing"),
    "another end": lambda h, a: h.update(beyond="maybe"),
    "a negative seed": lambda h, a: h.update(seed=-1),
    "an infinite reward": lambda h, a: h.update(earned=float("inf")),
    "a reward beyond all numbers": lambda h, a: h.update(earned=10**400),
    "more arrivals than there are": lambda h, a: h.update(horizon=3, beyond="error"),
    "gaps that are none": lambda h, a: h.update(gaps=[1]),
    "negative counts": lambda h, a: a.update({"state:numbers": np.full(5, -1.0), "state:dual": a["state:dual"]}),
    "no policy": lambda h, a: h.update(policy=None),
    "a policy of other settings": lambda h, a: h["policy"].update(arguments={"speed": 3}),
    "a policy that is no policy": lambda h, a: h["policy"].update(name="os"),
    "nothing at all": lambda h, a: (h.clear(), a.clear()),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_files_are_refused(saved, tmp_path, name):
    _, content = saved
    with pytest.raises(SavedStateError):
        osilp.load_controller(crafted(content, CRAFTED[name], tmp_path / "crafted.npz"), PROGRAM)


HISTORIES = {
    "counts that do not add up": lambda a: a["history:counts"].__setitem__(0, 5.0),
    "counts in single precision": lambda a: a.update({"history:counts": a["history:counts"].astype(np.float32)}),
    "fewer rewards": lambda a: a.update({"history:rewards": a["history:rewards"][:3]}),
    "wider uses": lambda a: a.update({"history:usage": np.zeros((25, 1, 9))}),
    "keys that are too long": lambda a: a["history:key_lengths"].__setitem__(0, 2**60),
    "keys that are the same": lambda a: a["history:keys"].fill(0),
    "more arrivals than were met": lambda a: a.update({"history:met": np.array(99)}),
    "shares above one": lambda a: a.update({"fractions": np.full((3, 1), 7.0)}),
    "more shares than arrivals": lambda a: a.update({"fractions": np.zeros((90, 1))}),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_crafted_histories_are_refused(tmp_path, name):
    controller = PROGRAM.controller(osilp.Resolve(), "pointwise")
    controller.steps(drawn(25, 3))
    controller.save(tmp_path / "state.npz")
    content = (tmp_path / "state.npz").read_bytes()
    path = crafted(content, lambda h, a: HISTORIES[name](a), tmp_path / "crafted.npz")
    with pytest.raises(SavedStateError):
        osilp.load_controller(path, PROGRAM)


def test_what_a_damaged_directory_asks_for_is_not_made(saved, tmp_path):
    """One flipped bit of a length, and a reader of zip files asked for a gigabyte of memory."""
    _, content = saved
    path, names = tmp_path / "wrong.npz", content.rindex(b"PK\x05\x06")
    first = content.index(b"PK\x01\x02")
    # The size of the directory, and those of an entry before and after packing.
    for place in (names + 15, first + 23, first + 27):
        wrong = bytearray(content)
        wrong[place] ^= 1 << 5
        path.write_bytes(wrong)
        tracemalloc.start()
        try:
            with contextlib.suppress(SavedStateError):
                read_state(path)
            assert tracemalloc.get_traced_memory()[1] < 10 * len(content) + 100_000
        finally:
            tracemalloc.stop()


def test_packed_entries_are_not_unpacked(saved, tmp_path):
    """A small file of zeros that would fill the memory."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", bytes(10_000_000))
    with pytest.raises(SavedStateError):
        osilp.load_controller(path, PROGRAM)
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", head.getvalue())
    with pytest.raises(SavedStateError):
        osilp.load_controller(path, PROGRAM)


def test_another_policy_than_the_one_that_was_saved(tmp_path):
    controller = PROGRAM.controller(osilp.Resolve(exact=True))
    controller.steps(drawn(20, 1))
    controller.save(tmp_path / "a.npz")
    with pytest.raises(SavedStateError) as error:
        osilp.load_controller(tmp_path / "a.npz", PROGRAM, policy=osilp.Resolve())
    assert (
        str(error.value)
        == f"'{tmp_path / 'a.npz'}' was saved with the policy {osilp.Resolve(exact=True)!r} (got {osilp.Resolve()!r})."
    )
    assert osilp.load_controller(tmp_path / "a.npz", PROGRAM, policy=osilp.Resolve(exact=True)).t == 20


def test_places_that_nothing_can_be_saved_to(tmp_path):
    controller = PROGRAM.controller(osilp.Greedy())
    for path, text in (
        (tmp_path, f"save: '{tmp_path}' is a folder; give the path of a file in it."),
        (None, "save: the path of a file is needed (got None)."),
        (tmp_path / "no" / "a.npz", f"save: there is no folder '{tmp_path / 'no'}'; make it first."),
        ("a\0b", "save: 'a\\x00b' cannot be the name of a file (embedded null byte)."),
        ("x" * 300, f"save: {'x' * 300!r} cannot be the name of a file (file name too long)."),
    ):
        with pytest.raises(SavedStateError) as error:
            controller.save(path)
        assert str(error.value) == text
    assert not list(tmp_path.iterdir())


def test_a_link_into_a_folder_that_is_not_there(tmp_path):
    (tmp_path / "link.npz").symlink_to(tmp_path / "no" / "real.npz")
    with pytest.raises(SavedStateError) as error:
        PROGRAM.controller(osilp.Greedy()).save(tmp_path / "link.npz")
    assert str(error.value) == f"save: there is no folder '{tmp_path / 'no'}'; make it first."


def test_a_link_stays_one(tmp_path):
    (tmp_path / "real.npz").write_bytes(b"")
    (tmp_path / "link.npz").symlink_to(tmp_path / "real.npz")
    PROGRAM.controller(osilp.Greedy()).save(tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink()
    assert osilp.load_controller(tmp_path / "real.npz", PROGRAM).t == 0


WRITER = """
import sys
import numpy as np
from osilp_pyomo._files import read_state, write_state
print("begun", flush=True)
for k in range(10**9):
    write_state(sys.argv[1], {"number": k}, {"numbers": np.full(20_000, float(k))})
"""


def test_a_writer_that_is_killed(tmp_path):
    """The file is whole whenever its writer is killed, and what was left beside it is swept by the next one."""
    path = tmp_path / "state.npz"
    rng = np.random.default_rng(9)
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        writer.stdout.readline()
        time.sleep(float(rng.uniform(0.02, 0.1)))
        writer.kill()
        writer.wait()
        writer.stdout.close()
        if path.exists():
            with np.load(path) as archive:
                header = json.loads(str(archive["header"]))
                assert np.all(archive["a:numbers"] == header["number"])
    write_state(path, {"number": -1}, {"numbers": np.zeros(2)})
    assert [each.name for each in tmp_path.iterdir()] == ["state.npz"]


# An archive that was cut short complains when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_an_interrupt_while_a_file_is_written(tmp_path):
    """Within an entry zipfile once made a ValueError of it; the file of before stays, and nothing beside it."""
    path = tmp_path / "state.npz"
    controller = PROGRAM.controller(osilp.Greedy())
    controller.save(path)
    content = path.read_bytes()
    controller.steps(drawn(5))

    tried = 0
    while interrupted_after(11 * tried, ("zipfile.py",), lambda: controller.save(path)):
        tried += 1
        assert path.read_bytes() == content
        assert os.listdir(tmp_path) == ["state.npz"]
    assert tried > 20
    gc.collect()


def test_a_full_disk(tmp_path, monkeypatch):
    """What was saved before stays where the next save does not fit."""
    import resource

    controller = PROGRAM.controller(osilp.Greedy())
    controller.save(tmp_path / "state.npz")
    controller.steps(drawn(10))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
        with pytest.raises(OSError, match="File too large"):
            controller.save(tmp_path / "state.npz")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert osilp.load_controller(tmp_path / "state.npz", PROGRAM).t == 0
    assert os.listdir(tmp_path) == ["state.npz"]
