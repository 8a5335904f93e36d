"""MpiRanks: ranks that mpirun starts."""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Sequence
from pathlib import Path

from ._ranks import Ranks


# What mpirun puts before a line of a rank: number of the job, rank, stream.
_TAG = re.compile(rb"^\[\d+,(\d+)\]<std(?:out|err)>: ?")
# What mpirun says of the first rank that failed; the last is of MPI_Abort.
_SAYINGS = (
    re.compile(r"process rank (\d+) with PID \d+ on node \S+ exited on\s+(.+)"),
    re.compile(r"Process name: +\[\S+,(\d+)\]\s+Exit code: +(\d+)"),
    re.compile(r"due to process rank (\d+) .*\s+\"?abort"),
)
_ENDS = ("was ended by {}", "exited with status {}", "aborted the job")
_KEPT_LINES = 40


class MpiRanks(Ranks):
    """Ranks that mpirun starts.

    Args:
        mpirun: Its path.
        count: Number of ranks.
        hostfile: Names of machines, or None for this one.
        command: What each rank runs.
    """

    def __init__(
        self,
        mpirun: str,
        count: int,
        hostfile: Path | None,
        command: Sequence[str],
    ) -> None:
        super().__init__()
        self._said: collections.deque[bytes] = collections.deque(
            maxlen=_KEPT_LINES
        )
        # Ranks may be more than cores, and TensorFlow's threads go where they
        # like.
        options = ["-n", str(count), "--bind-to", "none", "--output", "tag"]
        if hostfile is None:
            options.append("--oversubscribe")
        else:
            options += ["--hostfile", str(hostfile)]
        if os.geteuid() == 0:
            # As whoever calls this, ranks are: mpirun's question is answered.
            options.append("--allow-run-as-root")
        self._start([mpirun, *options, *command])

    def _rank_processes(self) -> list[int]:
        return _children(self._processes[0].pid)

    def _edit(self, line: bytes, number: int) -> bytes:
        """Puts the rank, as mpirun tells it, before a line."""
        del number
        edited, tagged = _TAG.subn(rb"[\1] ", line)
        if not tagged:
            self._said.append(line)
        return edited

    def _failed_rank(self, number: int, how: str) -> str:
        del number
        text = b"".join(self._said).decode(errors="replace")
        for pattern, end in zip(_SAYINGS, _ENDS, strict=True):
            if found := pattern.search(text):
                rank, *rest = found.groups()
                return f"rank {rank} {end.format(*rest).rstrip('.')}"
        return f"mpirun {how}"


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
