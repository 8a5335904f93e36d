"""Chunks of tables in checkpoints: what tensors are called, and are read by."""

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from ._records import Records
from ._state import COLUMNS, TableHeader


def named(path: str, chunk: int, columns: Any) -> dict[str, Any]:
    """Names what there is of each column.

    Args:
        path: The table's path.
        chunk: Number of the chunk.
        columns: Something for each column of `Records`.
    """
    return {
        f"{path}/{name}_{chunk:06d}": column
        for name, column in zip(COLUMNS, columns, strict=True)
    }


def read(prefix: Any, dtypes: dict[str, Any]) -> list[tf.Tensor]:
    """Reads tensors of a checkpoint.

    Args:
        prefix: Prefix of the checkpoint.
        dtypes: For each name its dtype.

    Returns:
        The tensors, in order.
    """
    return list(
        tf.raw_ops.RestoreV2(
            prefix=prefix,
            tensor_names=list(dtypes),
            shape_and_slices=[""] * len(dtypes),
            dtypes=[tf.as_dtype(dtype) for dtype in dtypes.values()],
        )
    )


def chunks_in(path: str, prefix: Any) -> int:
    """Returns how many chunks a checkpoint has of a table.

    Args:
        path: The table's path.
        prefix: Prefix of the checkpoint.
    """
    return int(read(prefix, {f"{path}/chunks": tf.int64})[0])


def read_chunks(
    dtype: str, path: str, prefix: Any, chunks: int
) -> Iterator[Records]:
    """Reads the records of a table that a checkpoint holds.

    Args:
        dtype: Dtype of the rows.
        path: The table's path.
        prefix: Prefix of the checkpoint.
        chunks: How many there are.

    Yields:
        Records as tensors.
    """
    dtypes = (tf.int64, dtype, tf.float32, tf.int64, tf.int64)
    for chunk in range(chunks):
        yield Records(*read(prefix, named(path, chunk, dtypes)))


def no_records(header: TableHeader) -> list[tf.Tensor]:
    """Returns the columns of a chunk without records.

    Args:
        header: Of the table.
    """
    width = sum(slot.width for slot in header.slots)
    none = tf.zeros(0, tf.int64)
    rows = tf.zeros((0, header.dim), header.dtype)
    return [none, rows, tf.zeros((0, width)), none, none]
