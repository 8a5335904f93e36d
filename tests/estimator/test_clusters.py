"""Training by two workers with a parameter server."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from . import cluster_member


PROGRAM = Path(cluster_member.__file__)


def free_address():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return f"localhost:{free.getsockname()[1]}"


def start(cluster, job, folder):
    task = {"type": job, "index": 0}
    tf_config = json.dumps({"cluster": cluster, "task": task})
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder)],
        env={**os.environ, "TF_CONFIG": tf_config},
    )


@pytest.mark.multiprocess
@pytest.mark.slow
def test_es06_workers_train_and_the_chief_evaluates(tmp_path):
    jobs = ("ps", "chief", "worker")
    cluster = {job: [free_address()] for job in jobs}
    processes = {job: start(cluster, job, tmp_path) for job in jobs}
    try:
        assert processes["chief"].wait(timeout=300) == 0
        assert processes["worker"].wait(timeout=60) == 0
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    found = json.loads((tmp_path / "metrics.json").read_text())
    assert found["global_step"] >= cluster_member.STEPS
    # As of one process: each label is learnt, by whichever worker.
    assert found["loss"] < 1e-3
