"""RowSource: the keys and rows of tables that hold one map between them.

Where ranks hold the map together, all of them make the same calls: rank 0 asks,
as it writes, and the others answer.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from embedra import _ops
from embedra.distribute import Communicator, gather_values, known_to_all
from embedra.table import Table, TableGroup

from ._slots import Integers
from ._storage import Array


# Keys that are read, or sent, at a time.
_CHUNK_KEYS = 2**20
_LABEL = "rows to export"


class RowSource:
    """Reads tables.

    Args:
        tables: The tables.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = tables
        self._communicator = TableGroup(tables).communicator

    @property
    def answers(self) -> bool:
        """Whether this rank does not write, but answers rank 0."""
        return self._communicator is not None and self._communicator.rank != 0

    def keys(self) -> tf.Tensor:
        """Returns all keys; nothing on ranks that answer."""
        chunks = [chunk for one in self._tables for chunk in _key_chunks(one)]
        keys = np.concatenate([np.zeros(0, np.int64), *chunks])
        if self._communicator is not None:
            keys = _to_first(keys, self._communicator)
        return tf.constant(keys)

    def agree(self, count: int) -> int:
        """Returns how often rank 0 is going to ask for rows.

        Args:
            count: How often, on rank 0.
        """
        told = gather_values(self._communicator, count, label=_LABEL)
        return int(told[0])

    def rows(self, keys: Integers) -> tuple[Array, Array]:
        """Returns the rows of keys, and which keys are there.

        Args:
            keys: Keys, shape `(n,)`; none on ranks that answer.
        """
        if self._communicator is None:
            return _rows_of(self._tables, tf.constant(keys))
        return _rows_of_ranks(self._tables, keys, self._communicator)


def _rows_of_ranks(
    tables: Sequence[Table], keys: Integers, communicator: Communicator
) -> tuple[Array, Array]:
    """Looks up keys where they are; see `embedra.distribute.sharded_rows`."""
    unique, splits, index = _ops.route_keys(
        tf.constant(keys), num_parts=communicator.size
    )
    with known_to_all():
        asked, counts = communicator.all_to_all_v(unique, splits, label=_LABEL)
        rows, there = _rows_of(tables, asked)
        rows, _ = communicator.all_to_all_v(rows, counts, splits, label=_LABEL)
        there, _ = communicator.all_to_all_v(
            there, counts, splits, label=_LABEL
        )
    order = index.numpy()
    return rows.numpy()[order], there.numpy()[order]


def _to_first(keys: Integers, communicator: Communicator) -> Integers:
    """Sends keys to rank 0; returns those of all ranks there."""
    rounds = -(-len(keys) // _CHUNK_KEYS)
    received = [np.zeros(0, np.int64)]
    for start in range(
        0,
        max(gather_values(communicator, rounds, label=_LABEL)) * _CHUNK_KEYS,
        _CHUNK_KEYS,
    ):
        chunk = keys[start : start + _CHUNK_KEYS]
        splits = [len(chunk)] + [0] * (communicator.size - 1)
        with known_to_all():
            found, _ = communicator.all_to_all_v(chunk, splits, label=_LABEL)
        received.append(found.numpy())
    return np.concatenate(received)


def _key_chunks(table: Table) -> Iterator[Integers]:
    nothing = _lookup(table, tf.zeros(0, tf.int64))
    bound = int(nothing.bounds[0])
    for start in range(0, bound, _CHUNK_KEYS):
        positions = tf.range(start, min(start + _CHUNK_KEYS, bound))
        keys, alive = _ops.table_keys(
            table.resource_handle, tf.cast(positions, tf.int64)
        )
        yield keys.numpy()[alive.numpy()]


def _rows_of(tables: Sequence[Table], keys: tf.Tensor) -> tuple[Any, Any]:
    first, *others = tables
    found = _lookup(first, keys)
    rows, there = found.rows[0].numpy(), found.found[0].numpy()
    for one in others:
        found = _lookup(one, keys)
        here = found.found[0].numpy()
        rows[here] = found.rows[0].numpy()[here]
        there |= here
    return rows, there


def _lookup(table: Table, keys: tf.Tensor) -> _ops.TableLookup:
    return _ops.table_lookup(
        [table.resource_handle],
        # No variable takes part: the handle only fills the place.
        [table.resource_handle],
        [keys],
        [table.default_row(0)],
        dims=[table.dim],
        dtype=table.dtype,
        insert=False,
    )
