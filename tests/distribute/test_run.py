"""`embedra run`: ranks, their output, signals and failures."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from distribute.launching import (
    RANKS,
    TIMEOUT,
    environment,
    needs_mpi,
    run_embedra,
)
from embedra.cli._app import app


pytestmark = pytest.mark.distributed
ENGINES = [pytest.param("mpi", marks=needs_mpi), "tf"]
RUN = [sys.executable, "-m", "embedra", "run"]


def runs(status):
    try:
        return ") Z " not in status.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_end(process):
    """Waits until a process is gone, or only not yet buried by its parent."""
    stop = time.monotonic() + TIMEOUT
    status = Path("/proc", process, "stat")
    while process and runs(status):
        assert time.monotonic() < stop, f"process {process} still runs"
        time.sleep(0.05)


@pytest.mark.parametrize("engine", ENGINES)
def test_ranks_are_started_and_their_lines_marked(engine, tmp_path):
    way = "config" if engine == "tf" else "ends"
    result = run_embedra(
        *["-n", 3, "--engine", engine, RANKS / "plain.py", way, tmp_path],
        *["--epochs", "2", "-n", "x"],
    )
    assert result.returncode == 0, result.stderr
    expected = [
        f"[{rank}] rank {rank} of 3: ['--epochs', '2', '-n', 'x']"
        for rank in range(3)
    ]
    assert sorted(result.stdout.splitlines()) == expected
    for rank in range(3):
        assert f"[{rank}] an error\n" in result.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_first_failure_ends_all_ranks_with_its_status(engine, tmp_path):
    # The other would sleep for longer than this waits.
    result = run_embedra(
        *["-n", 2, "--engine", engine, RANKS / "plain.py", "fails", tmp_path]
    )
    assert result.returncode == 7
    told = "embedra: rank 1 exited with status 7, so that the job was ended.\n"
    assert told in result.stderr
    for file in tmp_path.iterdir():
        wait_for_end(file.read_text())


@pytest.mark.parametrize("engine", ENGINES)
def test_signals_reach_the_ranks_which_end_by_themselves(engine, tmp_path):
    command = [*RUN, "-n", "2", "--engine", engine]
    process = subprocess.Popen(
        [*command, str(RANKS / "plain.py"), "waits", str(tmp_path)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while len(list(tmp_path.glob("ready *"))) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT) == 5
    for rank in range(2):
        assert (tmp_path / f"{signal.SIGTERM:d} {rank}").exists()


def test_what_cannot_be_run_is_an_error_that_says_why(tmp_path):
    result = run_embedra("-n", 2, tmp_path / "train.py")
    assert result.returncode == 1
    assert "There is no file" in result.stderr
    result = run_embedra(
        "--engine", "tf", "--hostfile", tmp_path, RANKS / "plain.py"
    )
    assert result.returncode == 1
    assert "--hostfile needs --engine mpi" in result.stderr


def test_parameter_servers_serve_until_the_ranks_have_ended(tmp_path):
    program = Path(__file__).parents[1] / "estimator" / "cluster_member.py"
    result = run_embedra(
        *["-n", 2, "--engine", "tf", "--ps", 1, program, tmp_path]
    )
    assert result.returncode == 0, result.stderr[-4000:]
    assert "[ps 0] ps 0 serves at grpc://localhost:" in result.stdout
    # The chief has written what both have trained.
    assert (tmp_path / "metrics.json").exists()
    assert list(tmp_path.glob("model.ckpt-*.index"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--ps", "1", sys.executable], "--ps needs --engine tf"),
        (["serve"], "TF_CONFIG names no server"),
    ],
    ids=["servers_of_mpi", "serve_without_cluster"],
)
def test_servers_that_cannot_be_are_errors(arguments, message):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert message in result.stderr


@needs_mpi
def test_context_and_communicator_know_the_rank():
    code = (
        "import embedra; c = embedra.distribute.communicator(); x = "
        "embedra.context; print(c.rank == x.rank, c.size == x.world_size, "
        "c.local_rank == x.local_rank)"
    )
    result = run_embedra("-n", 2, sys.executable, "-c", code)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == [
        "[0] True True True",
        "[1] True True True",
    ]


@needs_mpi
def test_environment_without_mpi_is_refused_by_the_communicator():
    code = "import embedra; embedra.distribute.communicator('mpi')"
    result = run_embedra("-n", 2, "--engine", "tf", sys.executable, "-c", code)
    assert result.returncode == 1
    assert "one of 2, but MPI knows 1" in result.stderr
