"""`embedra run --restarts`: jobs that go on after a rank has failed."""

import re
import signal
import subprocess
import sys
import time

import pytest

from distribute.launching import (
    RANKS,
    TIMEOUT,
    environment,
    needs_mpi,
    run_embedra,
)


pytestmark = pytest.mark.distributed
ENGINES = [pytest.param("mpi", marks=needs_mpi), "tf"]


@needs_mpi
@pytest.mark.slow
def test_killed_ranks_are_started_again_and_go_on(tmp_path, pytestconfig):
    kills = max(2, pytestconfig.getoption("kills") // 2)
    result = run_embedra(
        *["-n", 2, "--restarts", kills, RANKS / "restarting.py"],
        *[tmp_path, kills],
        timeout=TIMEOUT + 60 * kills,
    )
    assert result.returncode == 0, result.stderr[-6000:]
    assert result.stdout.count("passed") == 2
    assert len(list(tmp_path.glob("attempt *"))) == kills + 1
    victims = [
        (tmp_path / f"attempt {attempt}").read_text()
        for attempt in range(kills)
    ]
    told = re.findall(
        r"embedra: rank (\d) was ended by signal 9 \(Killed\), so that the job "
        r"was ended \(attempt (\d+) of (\d+)\)\. It is started again\.",
        result.stderr,
    )
    assert told == [
        (victim, str(attempt + 1), str(kills + 1))
        for attempt, victim in enumerate(victims)
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_last_failure_is_told_and_is_the_status(engine, tmp_path):
    result = run_embedra(
        *["-n", 2, "--engine", engine, "--restarts", 2],
        *[RANKS / "plain.py", "fails", tmp_path],
    )
    assert result.returncode == 7
    lines = [
        f"embedra: rank 1 exited with status 7, so that the job was ended "
        f"(attempt {attempt} of 3)."
        for attempt in (1, 2, 3)
    ]
    again = " It is started again."
    told = [
        line
        for line in result.stderr.splitlines()
        if line.startswith("embedra:")
    ]
    assert told == [lines[0] + again, lines[1] + again, lines[2]]


@pytest.mark.parametrize("engine", ENGINES)
def test_jobs_that_a_signal_ends_are_not_started_again(engine, tmp_path):
    process = subprocess.Popen(
        [
            *[sys.executable, "-m", "embedra", "run", "-n", "2"],
            *["--engine", engine, "--restarts", "3"],
            *[str(RANKS / "plain.py"), "waits", str(tmp_path)],
        ],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(list(tmp_path.glob("ready *"))) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 5
    assert "started again" not in errors
