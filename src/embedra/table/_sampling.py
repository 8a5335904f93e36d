"""Samples: some of a table's records, to measure it by."""

import numpy as np
import tensorflow as tf

from embedra import _ops

from ._records import Records
from ._table import Table


# Places that a sample is taken from. Records lie in the order in which they
# were made: from one place they would all be as old.
_PLACES = 16


def sample_records(table: Table, count: int) -> Records:
    """Reads some of the records (not inside a `tf.function`).

    They come in blocks from places that are spread evenly over the table, and
    are the same ones until the table changes.

    Args:
        table: The table.
        count: How many at most; a table of no more is read as a whole.

    Returns:
        The records, each once.

    Raises:
        ValueError: If `count` is not positive.

    Example:
        >>> table = Table(2, name="user")
        >>> rows = table.lookup(range(1000), insert=True)
        >>> len(sample_records(table, 64).keys)
        64
    """
    if count < 1:
        msg = f"`count` must be positive. Received: {count}."
        raise ValueError(msg)
    size = int(table.size())
    places = 1 if size <= count else min(_PLACES, count)
    blocks = []
    cursor = 0
    for place in range(places):
        # Past what the last block read, which skips places left free.
        cursor = max(cursor, place * size // places)
        block = (place + 1) * count // places - place * count // places
        *columns, following = _ops.table_export(
            table.resource_handle,
            tf.constant(cursor, tf.int64),
            tf.constant(block, tf.int64),
            dtype=table.dtype,
            dim=table.dim,
        )
        cursor = int(following)
        blocks.append([column.numpy() for column in columns])
    return Records(*map(np.concatenate, zip(*blocks, strict=True)))
