"""Variables whose tables are on TensorFlow servers, in other processes."""

import json
import pathlib
import socket
import subprocess
import sys

import pytest


HERE = pathlib.Path(__file__).parent
TIMEOUT = 120


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("localhost", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    addresses = [f"localhost:{port}" for port in free_ports(3)]
    cluster = {"ps": addresses[:2], "chief": addresses[2:]}
    logs = tmp_path_factory.mktemp("servers")
    servers = []
    try:
        for task in range(2):
            with (logs / f"{task}.log").open("w") as log:
                servers.append(
                    subprocess.Popen(
                        [
                            sys.executable,
                            str(HERE / "parameter_server.py"),
                            json.dumps(cluster),
                            str(task),
                        ],
                        stdout=subprocess.PIPE,
                        stderr=log,
                        text=True,
                    )
                )
        for server in servers:
            assert server.stdout.readline() == "ready\n"
        yield cluster
    finally:
        for server in servers:
            server.kill()
            server.stdout.close()
            server.wait()


@pytest.mark.multiprocess
@pytest.mark.parametrize("mode", ["eager", "graph", "monitored"])
def test_tables_on_servers(cluster, mode):
    done = subprocess.run(
        [
            sys.executable,
            str(HERE / "parameter_server_client.py"),
            json.dumps(cluster),
            mode,
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.endswith("passed\n")
