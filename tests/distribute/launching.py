"""Starts ranks of a script by MPI, for tests."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest


RANKS = pathlib.Path(__file__).parent / "ranks"
TIMEOUT = 400
TWO_OR_THREE = [2, pytest.param(3, marks=pytest.mark.more_ranks)]

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None,
    reason="MPI is not installed: pip install embedra[mpi]",
)


def environment():
    """Returns the environment of ranks: this process's, fit for any user."""
    return {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }


def mpirun():
    """Returns the path of mpirun: of this Python's environment, or any."""
    beside = pathlib.Path(sys.executable).parent / "mpirun"
    return str(beside) if beside.exists() else shutil.which("mpirun")


def run_ranks(count, script, *arguments, timeout=TIMEOUT):
    """Runs a script of the folder `ranks` and returns how that ended."""
    return subprocess.run(
        [
            *[mpirun(), "-n", str(count), "--bind-to", "none"],
            *["--oversubscribe", sys.executable],
            *[str(RANKS / script), *map(str, arguments)],
        ],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def written_by_two_ranks(script, *arguments):
    """Returns a fixture: a folder that two ranks of a script have written to.

    The script gets the arguments, and then the folder.
    """

    @pytest.fixture(scope="module")
    def written_by_two(tmp_path_factory):
        folder = tmp_path_factory.mktemp("two")
        check_passed(run_ranks(2, script, *arguments, folder), 2)
        return folder

    return written_by_two


def run_embedra(*arguments, timeout=TIMEOUT):
    """Runs `embedra run` and returns how that ended."""
    return subprocess.run(
        [sys.executable, "-m", "embedra", "run", *map(str, arguments)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def check_passed(result, count):
    """Asserts that all ranks of a script said that they passed."""
    assert result.returncode == 0, result.stderr[-6000:] + result.stdout
    assert result.stdout.count("passed") == count, result.stdout
