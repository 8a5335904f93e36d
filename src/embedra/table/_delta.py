"""Deltas: checkpoints with only those records that changed since another one.

While `saving_changes` is in effect, what saves tables to checkpoints writes
changes, and takes note of what the tables are then. In a delta a table has
chunks as ever, of the records that changed; the keys that are gone; and a
header of another format, by which whoever reads it as a whole table is refused.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ._records import Records
from ._resource import CHUNK_SIZE
from ._snapshot import Keys, Snapshot, SnapshotBuilder
from ._state import DELTA_FORMAT, TableHeader


class _Save(NamedTuple):
    since: Mapping[str, Snapshot]
    now: dict[str, Snapshot]


_CURRENT: ContextVar[_Save | None] = ContextVar("delta", default=None)


@contextlib.contextmanager
def saving_changes(
    since: Mapping[str, Snapshot],
) -> Iterator[dict[str, Snapshot]]:
    """Has checkpoints hold only what changed.

    Args:
        since: What tables were, by path. Those that are missing here are
            written as a whole.

    Yields:
        What the tables are when they are written, by path; filled as they are.
    """
    save = _Save(since, {})
    token = _CURRENT.set(save)
    try:
        yield save.now
    finally:
        _CURRENT.reset(token)


class TablePart:
    """What of a table goes to a checkpoint: all of it, or what changed.

    Args:
        path: The table's path.
        header: Its header.
    """

    def __init__(self, path: str, header: TableHeader) -> None:
        self._path = path
        self._header = header
        self._save = _CURRENT.get()
        self._since = self._save and self._save.since.get(path)

    def chunks(
        self, exported: Iterable[list[tf.Tensor]]
    ) -> Iterator[list[Any]]:
        """Picks the records to write, and takes note of all.

        Args:
            exported: Chunks of all records.

        Yields:
            Chunks to write, no more than there are of all records.
        """
        if self._save is None:
            yield from exported
            return
        now = SnapshotBuilder(self._header.slots)
        changed = self._changed(exported, now)
        yield from changed if self._since is None else _merged(changed)
        self._save.now[self._path] = now.build()

    @property
    def header(self) -> str:
        """The header, as JSON; it tells whether this is all of the table."""
        if self._since is None:
            return self._header.to_json()
        return self._header.to_json(DELTA_FORMAT)

    @property
    def gone(self) -> Keys | None:
        """Keys that are gone, once the chunks are read; None if it is whole."""
        if self._save is None or self._since is None:
            return None
        return self._since.gone(self._save.now[self._path])

    def description(self) -> dict[str, Any]:
        """Returns what is written beside the chunks, after them, by name."""
        gone = self.gone
        written = {f"{self._path}/header": tf.constant(self.header)}
        if gone is not None:
            written[f"{self._path}/removed_keys"] = tf.constant(gone)
        return written

    def _changed(
        self, exported: Iterable[list[tf.Tensor]], now: SnapshotBuilder
    ) -> Iterator[list[Any]]:
        since = self._since
        # Bytes of other slots say nothing of these.
        if since is not None and since.slots != self._header.slots:
            since = since._replace(keys=since.keys[:0])
        for tensors in exported:
            columns = [column.numpy() for column in tensors]
            digests = now.add(Records(*columns))
            if since is None:
                yield columns
                continue
            changed = ~since.unchanged(columns[0], digests)
            if changed.any():
                yield [column[changed] for column in columns]


def _merged(chunks: Iterable[list[Any]]) -> Iterator[list[Any]]:
    """Makes of many small chunks fewer, none larger than a chunk may be."""
    waiting: list[list[Any]] = []
    count = 0
    for columns in chunks:
        if waiting and count + len(columns[0]) > CHUNK_SIZE:
            yield _concatenated(waiting)
            waiting, count = [], 0
        waiting.append(columns)
        count += len(columns[0])
    if waiting:
        yield _concatenated(waiting)


def _concatenated(chunks: list[list[Any]]) -> list[Any]:
    return [np.concatenate(parts) for parts in zip(*chunks, strict=True)]
