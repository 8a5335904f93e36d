"""Exports of tables in a number of chunks that is known before they begin."""

import math
from collections.abc import Iterator

import tensorflow as tf

from embedra import _ops

from ._resource import CHUNK_SIZE
from ._table import Table


# More records than a table can hold.
_EVERYTHING = 2**32


def chunk_count(table: Table, chunk_size: int = CHUNK_SIZE) -> int:
    """Returns in how many chunks a table is now, also when tracing.

    Args:
        table: The table.
        chunk_size: Records in a chunk.
    """
    with tf.init_scope():
        return math.ceil(int(table.size()) / chunk_size)


def export_planned(
    table: Table, chunks: int, chunk_size: int = CHUNK_SIZE
) -> Iterator[list[tf.Tensor]]:
    """Reads all records of a table in as many chunks as were planned.

    If others write meanwhile, the last chunk is larger, or some are empty.

    Args:
        table: The table.
        chunks: What `chunk_count` returned.
        chunk_size: Records in a chunk.

    Yields:
        The columns of `Records`.
    """
    cursor = tf.constant(0, tf.int64)
    for chunk in range(chunks):
        last = chunk == chunks - 1
        *columns, cursor = _ops.table_export(
            table.resource_handle,
            cursor,
            _EVERYTHING if last else chunk_size,
            dtype=table.dtype,
            dim=table.dim,
        )
        yield columns
