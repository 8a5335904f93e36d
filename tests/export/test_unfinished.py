"""What killed exports leave is removed by the next one, and nothing else."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from embedra.saved_model import _folders, _unfinished


KILLED = """
import os, sys
from pathlib import Path
from embedra.saved_model import _folders

folder, step = sys.argv[1:]
if step == "replace":
    # Killed between moving the old model away and the new one to its place.
    old_moved, count = _folders._moved, []

    def moved(source, target):
        count.append(source)
        if len(count) > 1:
            os.kill(os.getpid(), 9)
        return old_moved(source, target)

    _folders._moved = moved
with _folders.appearing(folder, versioned=False, overwrite=True) as new:
    Path(new.temporary, "saved_model.pb").write_text("unfinished")
    if step == "fill":
        os.kill(os.getpid(), 9)
"""


def fill(folder, text="mine", **options):
    options = {"versioned": False} | options
    with _folders.appearing(str(folder), **options) as new:
        Path(new.temporary, "saved_model.pb").write_text(text)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.multiprocess
def test_what_killed_exports_leave_is_removed(tmp_path):
    fill(tmp_path / "model", "before")
    runs = [
        subprocess.run(
            [sys.executable, "-c", KILLED, str(tmp_path / "model"), step],
            check=False,
        )
        for step in ("fill", "replace")
    ]
    assert [run.returncode for run in runs] == [-signal.SIGKILL] * 2
    assert "model" not in names(tmp_path)
    fill(tmp_path / "other")
    # The model that was moved away is back, and all else is gone.
    assert names(tmp_path) == ["model", "other"]
    text = (tmp_path / "model" / "saved_model.pb").read_text()
    assert text == "before"


def test_what_may_still_be_written_is_left_alone(tmp_path, monkeypatch):
    mine = tmp_path / _unfinished.temporary_name("mine")
    parent = tmp_path / _unfinished.temporary_name("theirs").replace(
        f".{os.getpid()}.", f".{os.getppid()}."
    )
    with monkeypatch.context() as patch:
        patch.setattr("socket.gethostname", lambda: "elsewhere")
        away = tmp_path / _unfinished.temporary_name("away").replace(
            f".{os.getpid()}.", ".999999999."
        )
    others = [mine, parent, away, tmp_path / ".model.tmp", tmp_path / ".x"]
    for other in others:
        other.mkdir()
    fill(tmp_path / "model")
    assert names(tmp_path) == sorted([*(p.name for p in others), "model"])


def test_versions_remove_what_other_versions_left(tmp_path):
    gone = _unfinished.temporary_name("123").replace(
        f".{os.getpid()}.", ".999999999."
    )
    (tmp_path / gone).mkdir()
    fill(tmp_path / "124", versioned=True)
    assert names(tmp_path) == ["124"]
