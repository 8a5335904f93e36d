"""TensorFlowRanks: ranks that know of each other by `TF_CONFIG`."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from ._ranks import Ranks


class TensorFlowRanks(Ranks):
    """Ranks, and parameter servers, that know of each other by `TF_CONFIG`.

    Without parameter servers all ranks are workers. With them rank 0 is the
    chief; they serve until the ranks have ended.

    Args:
        count: Number of ranks.
        servers: Number of parameter servers.
        command: What each rank runs.
    """

    def __init__(
        self, count: int, servers: int, command: Sequence[str]
    ) -> None:
        super().__init__()
        self._count = count
        addresses = [
            f"localhost:{port}" for port in _free_ports(count + servers)
        ]
        cluster = {"worker": addresses[:count]}
        tasks = [("worker", rank) for rank in range(count)]
        if servers:
            cluster = {
                "chief": addresses[:1],
                "worker": addresses[1:count],
                "ps": addresses[count:],
            }
            tasks = [("chief", 0), *tasks[:-1]]
        for rank, (task, index) in enumerate(tasks):
            self._start(
                command,
                EMBEDRA_RANK=str(rank),
                EMBEDRA_WORLD_SIZE=str(count),
                EMBEDRA_LOCAL_RANK=str(rank),
                EMBEDRA_LOCAL_WORLD_SIZE=str(count),
                TF_CONFIG=_config(cluster, task, index),
            )
        for index in range(servers):
            self._start(
                [sys.executable, "-m", "embedra", "serve"],
                TF_CONFIG=_config(cluster, "ps", index),
            )

    def _waited_for(self) -> list[subprocess.Popen[bytes]]:
        return self._processes[: self._count]

    def _rank_processes(self) -> list[int]:
        return [p.pid for p in self._waited_for() if p.poll() is None]

    def _edit(self, line: bytes, number: int) -> bytes:
        return f"[{self._mark(number, '', 'ps ')}] ".encode() + line

    def _failed_rank(self, number: int, how: str) -> str:
        return f"{self._mark(number, 'rank ', 'parameter server ')} {how}"

    def _mark(self, number: int, rank: str, server: str) -> str:
        """Returns the name of a process."""
        if number < self._count:
            return f"{rank}{number}"
        return f"{server}{number - self._count}"


def _config(cluster: dict[str, list[str]], task: str, index: int) -> str:
    present = {job: hosts for job, hosts in cluster.items() if hosts}
    return json.dumps(
        {"cluster": present, "task": {"type": task, "index": index}}
    )


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]
