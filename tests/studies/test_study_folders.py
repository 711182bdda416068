"""A folder of a study: one writer at a time, and what is read was written."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest
from study_inputs import packing_program

import osilp_pyomo as osilp
from osilp_pyomo._files import locked
from osilp_pyomo.errors import OptionError, SavedStateError
from osilp_pyomo.studies import files


def studied(folder, trials=2):
    return osilp.compare(packing_program(10), osilp.Greedy(), order="iid", trials=trials, path=folder, progress=False)


def test_a_second_writer_is_refused(tmp_path):
    folder = tmp_path / "s"
    studied(folder)
    told = []
    with locked(folder):
        for _ in range(2):
            with pytest.raises(SavedStateError) as error:
                studied(folder, 3)
            told.append(str(error.value))
    assert told == [f"'{folder}' is being written by this very process; wait until it has done."] * 2
    assert studied(folder, 3).finished == 3
    assert not (folder / ".lock").exists()


def test_two_writers_lose_nothing(tmp_path):
    """Whoever comes second is refused, or goes on from what the first has finished."""
    folder, told = tmp_path / "s", []

    def write(trials):
        try:
            studied(folder, trials)
        except SavedStateError as error:
            told.append(str(error))

    writers = [threading.Thread(target=write, args=(trials,)) for trials in (2, 6, 4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    finished = osilp.load_study(folder).finished
    assert studied(folder, 6).finished == 6
    assert finished in (2, 4, 6)
    assert all("is being written by" in text for text in told)


HOLDER = """
import sys, time
from pathlib import Path
from osilp_pyomo._files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_lock_of_a_process_that_died_is_taken_over(tmp_path):
    folder = tmp_path / "s"
    studied(folder)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(SavedStateError, match=f"is being written by process {holder.pid} on "):
        studied(folder, 3)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert (folder / ".lock").exists()
    assert studied(folder, 3).finished == 3


def test_the_lock_of_another_machine_is_respected(tmp_path):
    folder = tmp_path / "s"
    studied(folder)
    (folder / ".lock").write_text(json.dumps({"process": 1, "machine": "another"}))
    with pytest.raises(SavedStateError) as error:
        studied(folder, 3)
    assert str(error.value) == (
        f"'{folder}' is being written by process 1 on another; wait until it has done, or remove '{folder / '.lock'}' if "
        "it is no longer there."
    )


@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_table_that_was_cut_is_known(tmp_path, share):
    folder = tmp_path / "s"
    studied(folder)
    content = (folder / "runs.csv").read_bytes()
    (folder / "runs.csv").write_bytes(content[: int(share * len(content))])
    with pytest.raises(SavedStateError, match="is cut or was changed since it was saved"):
        osilp.load_study(folder)


WRONG = {
    "trials": "x",
    "policies": "x",
    "grids": None,
    "benchmarks": ["foo"],
    "guards": [3],
    "model": None,
    "horizons": [],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_header_that_is_none(tmp_path, name):
    folder = tmp_path / "s"
    studied(folder)
    header = json.loads((folder / "study.json").read_text())
    header[name] = WRONG[name]
    (folder / "study.json").write_text(json.dumps(header))
    with pytest.raises(SavedStateError) as error:
        osilp.load_study(folder)
    assert str(error.value) == f"'{folder}': its study.json is damaged, for its {name} are {WRONG[name]!r}."


def test_a_column_that_was_renamed(tmp_path):
    folder = tmp_path / "s"
    studied(folder)
    runs = pd.read_csv(folder / "runs.csv").rename(columns={"reward": "prize"})
    runs.to_csv(folder / "runs.csv", index=False)
    (folder / "tables.json").unlink()
    with pytest.raises(SavedStateError, match="it has no column reward"):
        osilp.load_study(folder)


def test_a_page_is_written_at_once(tmp_path):
    study = osilp.compare(packing_program(10), osilp.Greedy(), order="iid", trials=2, progress=False)
    with pytest.raises(OptionError) as error:
        study.to_html(tmp_path)
    assert str(error.value) == f"to_html: '{tmp_path}' cannot be written (it is a folder); give another path."
    study.to_html(tmp_path / "new" / "page.html", pictures=False)
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["page.html"]


def test_a_lock_without_an_owner_is_one_for_a_while_only(tmp_path):
    """What a crash or a full disk may have left while it was made."""
    folder = tmp_path / "s"
    studied(folder)
    lock = folder / ".lock"
    lock.write_text("")
    with pytest.raises(SavedStateError, match="an unknown machine"):
        studied(folder, 3)
    os.utime(lock, (time.time() - 60,) * 2)
    assert studied(folder, 3).runs["trial"].nunique() == 3
    assert not list(folder.glob(".lock*"))


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[3])
from study_inputs import packing_program
import osilp_pyomo as osilp

def die(*names, **options):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(os, sys.argv[2], die)
osilp.compare(packing_program(10), osilp.Greedy(), order="iid", trials=2, path=sys.argv[1], progress=False)
"""


@pytest.mark.parametrize("moment", ["replace", "link"])
def test_a_study_goes_on_that_was_killed_while_its_first_files_were_written(tmp_path, moment):
    folder = tmp_path / "s"
    done = subprocess.run([sys.executable, "-c", KILLED, folder, moment, str(Path(__file__).parents[1])], timeout=100)
    left = [path.name for path in folder.iterdir()]
    assert done.returncode < 0
    assert any(name.endswith(".tmp") for name in left)
    assert studied(folder).finished == 2
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_files_of_somebody_else_are_no_study(tmp_path):
    (tmp_path / ".notes.tmp").write_text("")
    with pytest.raises(SavedStateError) as error:
        studied(tmp_path)
    assert str(error.value) == f"'{tmp_path}' holds other files than a study; give path= a folder of its own."


@pytest.mark.parametrize("read_first", ["offline", "runs"])
def test_a_study_that_ends_while_it_is_read_is_read_whole(tmp_path, monkeypatch, read_first):
    """Its trials move into the tables after one of those was read, and before the files of the trials are."""
    folder, read, ended = tmp_path / "s", files._read_table, []
    monkeypatch.setattr("osilp_pyomo.studies.compare.write_tables", lambda *arguments: ended.append(arguments))
    assert studied(folder).finished == 2

    def read_while_it_ends(folder, name):
        found = read(folder, name)
        if name == read_first and ended:
            files.write_tables(*ended.pop())
        return found

    monkeypatch.setattr(files, "_read_table", read_while_it_ends)
    study = osilp.load_study(folder)
    assert (study.finished, len(study.runs), len(study.offline)) == (2, 2, 4)
    assert not ended


def test_a_trial_that_is_removed_while_it_is_read_is_no_error(tmp_path, monkeypatch):
    folder, glob = tmp_path / "s", type(tmp_path).glob
    monkeypatch.setattr("osilp_pyomo.studies.compare.write_tables", lambda *arguments: None)
    studied(folder)

    def glob_and_remove(path, pattern):
        found = sorted(glob(path, pattern))
        if pattern == "*.json":
            found[0].unlink()
        return iter(found)

    monkeypatch.setattr(type(tmp_path), "glob", glob_and_remove)
    assert osilp.load_study(folder).finished == 1
