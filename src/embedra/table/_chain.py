"""Chains: a table's state from a checkpoint and the deltas that follow it.

Of each key the newest word counts: its record in the last file that holds one,
or none, if a later file says that it is gone. So the state is read as one, each
record once, and a table is never in a state between.
"""

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ._owned import own_records
from ._records import Records
from ._saved_chunks import chunks_in, read, read_chunks
from ._snapshot import (
    Keys,
    Snapshot,
    SnapshotBuilder,
    find,
    last_of_each,
)
from ._state import DELTA_FORMAT, TableHeader, is_delta
from ._table import Table


class _Restore(NamedTuple):
    prefixes: Sequence[str]
    found: dict[str, Snapshot]


class _LastChanges(NamedTuple):
    """In which file of a chain each key was changed or removed last."""

    keys: Keys
    numbers: Any


_CURRENT: ContextVar[_Restore | None] = ContextVar("chain", default=None)


@contextlib.contextmanager
def restoring_chain(prefixes: Sequence[str]) -> Iterator[dict[str, Snapshot]]:
    """Has the newest checkpoint of a chain restored with those before it.

    Args:
        prefixes: The chain, the newest last: a checkpoint of whole tables and
            deltas, each of what changed since the one before.

    Yields:
        What the tables are in the files, by path; filled as they are read.
    """
    restore = _Restore(prefixes, {})
    token = _CURRENT.set(restore)
    try:
        yield restore.found
    finally:
        _CURRENT.reset(token)


def read_header(path: str, prefix: tf.Tensor) -> TableHeader:
    """Reads a table's header.

    Args:
        path: The table's path.
        prefix: Prefix of the checkpoint.

    Returns:
        The header.

    Raises:
        ValueError: If the checkpoint is a delta, and not the newest of the
            chain that is restored.
    """
    text = _header_text(path, prefix)
    if not is_delta(text):
        return TableHeader.from_json(text)
    header = TableHeader.from_json(text, DELTA_FORMAT)
    if _chain(prefix) is None:
        msg = (
            f"Checkpoint {prefix.numpy().decode()} holds of table "
            f"{header.name!r} only what changed since the save before. Restore "
            "it with `embedra.checkpoint.IncrementalCheckpoints(...)"
            ".restore()`, when the model is built: that reads the files before "
            "it, too. The table is left as it was."
        )
        raise ValueError(msg)
    return header


def read_records(table: Table, path: str, prefix: tf.Tensor) -> Iterator[Any]:
    """Reads all records that a table has in a checkpoint.

    Args:
        table: A table of the saved dtype.
        path: Its path.
        prefix: Prefix of the checkpoint; the newest of a chain while one is
            restored.

    Yields:
        Records; of a chain those of this rank.
    """
    chain = _chain(prefix)
    if chain is None:
        count = chunks_in(path, prefix)
        yield from read_chunks(table.dtype, path, prefix, count)
        return
    header = TableHeader.from_json(*_any_format(_header_text(path, prefix)))
    found = SnapshotBuilder(header.slots)
    for newest in _newest(table, path, _files(path, chain.prefixes)):
        # What other ranks have is not gone when it is not found here.
        own = own_records(table, *map(tf.convert_to_tensor, newest))
        records = Records(*(column.numpy() for column in own))
        found.add(records)
        yield records
    chain.found[path] = found.build()


def _chain(prefix: tf.Tensor) -> _Restore | None:
    current = _CURRENT.get()
    if current is None or current.prefixes[-1] != prefix.numpy().decode():
        return None
    return current


def _header_text(path: str, prefix: Any) -> bytes:
    text: bytes = read(prefix, {f"{path}/header": tf.string})[0].numpy()
    return text


def _any_format(text: bytes) -> tuple[Any, ...]:
    return (text, DELTA_FORMAT) if is_delta(text) else (text,)


def _files(path: str, prefixes: Sequence[str]) -> list[str]:
    """Returns the end of a chain that begins where a table is whole."""
    files: list[str] = []
    for prefix in reversed(prefixes):
        files.insert(0, prefix)
        if not is_delta(_header_text(path, prefix)):
            break
    return files


def _newest(table: Table, path: str, files: list[str]) -> Iterator[Records]:
    last = _last_changes(path, files)
    for number, file in enumerate(files):
        count = chunks_in(path, file)
        for tensors in read_chunks(table.dtype, path, file, count):
            columns: list[Any] = [np.asarray(column) for column in tensors]
            records = Records(*columns)
            places, later = find(last.keys, records.keys)
            later[later] = last.numbers[places[later]] > number
            if not later.all():
                yield Records(*(column[~later] for column in columns))


def _last_changes(path: str, files: list[str]) -> _LastChanges:
    keys = [np.zeros(0, np.int64)]
    numbers = [np.zeros(0, np.int32)]
    for number, file in enumerate(files[1:], start=1):
        names = [
            *(f"{path}/keys_{c:06d}" for c in range(chunks_in(path, file))),
            f"{path}/removed_keys",
        ]
        for tensor in read(file, dict.fromkeys(names, tf.int64)):
            keys.append(tensor.numpy())
            numbers.append(np.full(len(keys[-1]), number, np.int32))
    found, places = last_of_each(np.concatenate(keys))
    return _LastChanges(found, np.concatenate(numbers)[places])
