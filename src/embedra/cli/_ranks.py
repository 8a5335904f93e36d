"""Ranks: the processes of a job, from start to end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from embedra import _env


_FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
# Those after which ranks are to end.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Seconds that the others have after one has failed, and between looks at all.
_GRACE_AFTER_FAILURE = 5.0
_PERIOD = 0.05

# What mpirun puts before a line: number of the job, rank, stream.
_TAG = re.compile(rb"^\[\d+,(\d+)\]<std(?:out|err)>: ?")


class Ranks:
    """Processes that are waited for, and ended, together.

    Args:
        processes: What this process has started.
        find_ranks: Returns the process ids of the ranks on this machine, which
            signals are for.
        edit: Makes what is shown of a line and the number of its process.
    """

    def __init__(
        self,
        processes: Sequence[subprocess.Popen[bytes]],
        find_ranks: Callable[[], list[int]],
        edit: Callable[[bytes, int], bytes],
    ) -> None:
        self._processes = processes
        self._find_ranks = find_ranks
        self._readers = [
            threading.Thread(target=_show, args=(source, sink, edit, number))
            for number, process in enumerate(processes)
            for source, sink in (
                (process.stdout, sys.stdout.buffer),
                (process.stderr, sys.stderr.buffer),
            )
        ]
        for reader in self._readers:
            reader.start()

    def wait(self, grace: float) -> int:
        """Waits until all have ended.

        Args:
            grace: Seconds that they have after a signal that ends them.

        Returns:
            The status of the first that failed, or 0; 128 and the number of
            the signal for one that a signal ended, as shells say it.
        """
        deadline = float("inf")
        status = 0
        with _received_signals() as received:
            while None in [p.poll() for p in self._processes]:
                if received:
                    number = received.pop(0)
                    self._signal_ranks(number)
                    if number in _ENDING:
                        deadline = min(deadline, time.monotonic() + grace)
                status = status or self._first_failure()
                if status and deadline == float("inf"):
                    self._end(signal.SIGTERM)
                    deadline = time.monotonic() + _GRACE_AFTER_FAILURE
                if time.monotonic() > deadline:
                    self._signal_ranks(signal.SIGKILL)
                    self._end(signal.SIGKILL)
                time.sleep(_PERIOD)
        for reader in self._readers:
            reader.join()
        return status or self._first_failure()

    def _first_failure(self) -> int:
        codes = (process.returncode for process in self._processes)
        failed = next((code for code in codes if code), 0)
        return 128 - failed if failed < 0 else failed

    def _signal_ranks(self, number: int) -> None:
        for process_id in self._find_ranks():
            try:
                os.kill(process_id, number)
            except ProcessLookupError:
                continue

    def _end(self, number: int) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(number)


def start_mpi_ranks(
    mpirun: str, count: int, hostfile: Path | None, command: Sequence[str]
) -> Ranks:
    """Starts ranks through mpirun.

    Args:
        mpirun: Its path.
        count: Number of ranks.
        hostfile: Names of machines, or None for this one.
        command: What each rank runs.
    """
    # Ranks may be more than cores, and TensorFlow's threads go where they like.
    options = ["-n", str(count), "--bind-to", "none", "--output", "tag"]
    if hostfile is None:
        options.append("--oversubscribe")
    else:
        options += ["--hostfile", str(hostfile)]
    if os.geteuid() == 0:
        # As whoever calls this, ranks are: mpirun's question is answered.
        options.append("--allow-run-as-root")
    process = _start([mpirun, *options, *command], {})
    return Ranks([process], lambda: _children(process.pid), _edit_tag)


def start_tensorflow_ranks(count: int, command: Sequence[str]) -> Ranks:
    """Starts ranks that know of each other by `TF_CONFIG`.

    Args:
        count: Number of ranks.
        command: What each rank runs.
    """
    addresses = [f"localhost:{port}" for port in _free_ports(count)]
    processes = []
    for rank in range(count):
        task = {"type": "worker", "index": rank}
        config = {"cluster": {"worker": addresses}, "task": task}
        place = {
            "EMBEDRA_RANK": str(rank),
            "EMBEDRA_WORLD_SIZE": str(count),
            "EMBEDRA_LOCAL_RANK": str(rank),
            "EMBEDRA_LOCAL_WORLD_SIZE": str(count),
            "TF_CONFIG": json.dumps(config),
        }
        processes.append(_start(command, place))
    return Ranks(
        processes,
        lambda: [p.pid for p in processes if p.poll() is None],
        _prefix,
    )


def _start(
    command: Sequence[str], variables: dict[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=_env.environment_with(PYTHONUNBUFFERED="1", **variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A terminal's Ctrl-C is for the command, which hands it on.
        start_new_session=True,
    )


@contextmanager
def _received_signals() -> Iterator[list[int]]:
    """Collects signals in place of what they would do."""
    received: list[int] = []

    def receive(number: int, frame: Any) -> None:
        del frame
        received.append(number)

    before = {number: signal.signal(number, receive) for number in _FORWARDED}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(
    source: IO[bytes],
    sink: IO[bytes],
    edit: Callable[[bytes, int], bytes],
    number: int,
) -> None:
    """Copies a stream, line by line, until its end."""
    for line in source:
        sink.write(edit(line, number))
        sink.flush()
    source.close()


def _edit_tag(line: bytes, number: int) -> bytes:
    """Puts the rank, as mpirun tells it, before a line."""
    del number
    return _TAG.sub(rb"[\1] ", line)


def _prefix(line: bytes, number: int) -> bytes:
    return b"[%d] " % number + line


def _children(process_id: int) -> list[int]:
    """Returns the processes that a process has started."""
    children = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            # After the name, in parentheses: the state, then the parent.
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[1]) == process_id:
            children.append(int(status.parent.name))
    return children


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]
