"""Ranks: the processes of a job, from start to end."""

from __future__ import annotations

import abc
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from embedra import _env

from ._signals import Signals


# Seconds that the others have after one has failed, and between looks at all.
_GRACE_AFTER_FAILURE = 5.0
_PERIOD = 0.05

# By which processes of a job are known, whoever started them.
_JOB_VARIABLE = "EMBEDRA_JOB"


class Outcome(NamedTuple):
    """How a job ended.

    Attributes:
        status: Of the first that failed, or 0; 128 and the number of the signal
            for one that a signal ended, as shells say it.
        failure: Who failed, and how, as "rank 1 exited with status 7"; empty
            if nobody did.
    """

    status: int
    failure: str


class Ranks(abc.ABC):
    """Processes that are waited for, and ended, together."""

    def __init__(self) -> None:
        self._job = uuid.uuid4().hex
        self._processes: list[subprocess.Popen[bytes]] = []
        self._readers: list[threading.Thread] = []

    @abc.abstractmethod
    def _rank_processes(self) -> list[int]:
        """Returns the ids of this machine's ranks, which signals are for."""

    @abc.abstractmethod
    def _edit(self, line: bytes, number: int) -> bytes:
        """Returns what is shown of a line of a process.

        Args:
            line: The line.
            number: Which process, in the order in which they were started.
        """

    @abc.abstractmethod
    def _failed_rank(self, number: int, how: str) -> str:
        """Returns which rank failed, and how.

        Args:
            number: Of the process that failed.
            how: How that ended.
        """

    def _waited_for(self) -> list[subprocess.Popen[bytes]]:
        """Returns the processes whose end is that of the job."""
        return self._processes

    def _start(self, command: Sequence[str], **variables: str) -> None:
        """Starts a process.

        Args:
            command: What it runs.
            **variables: Its environment, besides that of this process.
        """
        variables[_JOB_VARIABLE] = self._job
        process = subprocess.Popen(
            command,
            env=_env.environment_with(PYTHONUNBUFFERED="1", **variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A terminal's Ctrl-C is for the command, which hands it on.
            start_new_session=True,
        )
        for source, sink in (
            (process.stdout, sys.stdout.buffer),
            (process.stderr, sys.stderr.buffer),
        ):
            reader = threading.Thread(
                target=self._show, args=(source, sink, len(self._processes))
            )
            reader.start()
            self._readers.append(reader)
        self._processes.append(process)

    def wait(self, signals: Signals, grace: float) -> Outcome:
        """Waits until all have ended.

        Args:
            signals: Those that this process gets; handed on.
            grace: Seconds that ranks have after a signal that ends them.
        """
        failed: int | None = None
        deadline = float("inf")
        while None in [process.poll() for process in self._waited_for()]:
            self._hand_on(signals)
            if signals.is_ending:
                deadline = min(deadline, time.monotonic() + grace)
            failed = self._first_failure() if failed is None else failed
            if failed is not None and deadline == float("inf"):
                self._end(signal.SIGTERM)
                deadline = time.monotonic() + _GRACE_AFTER_FAILURE
            if time.monotonic() > deadline:
                self._signal_ranks(signal.SIGKILL)
                self._end(signal.SIGKILL)
            time.sleep(_PERIOD)
        failed = self._first_failure() if failed is None else failed
        self._end(signal.SIGTERM)
        if failed is not None:
            self._end_all_that_is_left()
        for reader in self._readers:
            reader.join()
        return self._outcome(failed)

    def _outcome(self, failed: int | None) -> Outcome:
        if failed is None:
            return Outcome(0, "")
        status = self._processes[failed].returncode
        if status > 0:
            how = f"exited with status {status}"
        else:
            how = f"was ended by signal {-status}"
            status = 128 - status
        return Outcome(status, self._failed_rank(failed, how))

    def _first_failure(self) -> int | None:
        codes = [process.poll() for process in self._processes]
        return next((i for i, code in enumerate(codes) if code), None)

    def _hand_on(self, signals: Signals) -> None:
        """Hands signals on; later, as long as there are no ranks yet."""
        while signals.waiting and self._signal_ranks(signals.waiting[0]):
            signals.waiting.pop(0)

    def _signal_ranks(self, number: int) -> bool:
        found = self._rank_processes()
        for process_id in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, number)
        return bool(found)

    def _end(self, number: int) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(number)

    def _end_all_that_is_left(self) -> None:
        """Ends processes that outlived those that started them.

        So that ranks of a job that is started again find none at work that
        they would meet in files.
        """
        stop = time.monotonic() + _GRACE_AFTER_FAILURE
        while (left := self._left()) and time.monotonic() < stop:
            for process_id in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)
            time.sleep(_PERIOD)
            for process in self._processes:
                process.poll()

    def _left(self) -> list[int]:
        """Returns the processes of this job that run on this machine."""
        mark = f"{_JOB_VARIABLE}={self._job}".encode()
        left = []
        for file in Path("/proc").glob("[0-9]*/environ"):
            # Others' cannot be read; and some have just ended.
            with contextlib.suppress(OSError):
                if mark in file.read_bytes().split(b"\0"):
                    left.append(int(file.parent.name))
        return left

    def _show(self, source: IO[bytes], sink: IO[bytes], number: int) -> None:
        """Copies a stream, line by line, until its end."""
        for line in source:
            sink.write(self._edit(line, number))
            sink.flush()
        source.close()
