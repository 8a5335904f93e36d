"""A monitored session whose tables are on a TensorFlow server."""

import json
import pathlib
import socket
import subprocess
import sys

import pytest


SCRIPT = pathlib.Path(__file__).parent / "parameter_server_session.py"


def free_address():
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return f"localhost:{found.getsockname()[1]}"


@pytest.mark.multiprocess
def test_session_finds_its_place_in_the_cluster(tmp_path):
    workers, servers = [free_address()], [free_address()]

    def command(task_type):
        place = (workers, servers, task_type, str(tmp_path / "model"))
        return [sys.executable, str(SCRIPT), json.dumps(place)]

    log = tmp_path / "server.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command("ps"), stdout=subprocess.PIPE, stderr=errors, text=True
        ) as server,
    ):
        try:
            assert server.stdout.readline() == "ready\n", log.read_text()
            trained = subprocess.run(
                command("worker"),
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
        finally:
            server.kill()
    assert trained.stdout.split() == ["chief", "3", "2"], trained.stderr
    assert list((tmp_path / "model").glob("model.ckpt-3*"))
