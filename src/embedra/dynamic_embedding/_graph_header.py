"""Headers of tables as tensors, for TF1 graphs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from embedra import _ops, table as table_lib
from embedra.checkpoint import (
    FIELDS as FIELDS,
    SavedShape as SavedShape,
    to_header as to_header,
)


def header_tensors(table: table_lib.Table) -> list[tf.Tensor]:
    """Reads what describes a table, when the graph runs.

    Args:
        table: The table.

    Returns:
        A tensor for each of `FIELDS`.
    """
    handle = table.resource_handle
    return [
        *_ops.table_slots(handle),
        *_ops.table_initializer(handle),
        _ops.table_step(handle),
    ]


def set_layout(
    table: table_lib.Table, header: Sequence[tf.Tensor]
) -> tf.Operation:
    """Empties a table and sets everything but its records.

    Args:
        table: The table.
        header: As `header_tensors` gives it.

    Returns:
        The operation to run.
    """
    handle = table.resource_handle
    with tf.control_dependencies([table.clear()]):
        return tf.group(
            _ops.table_set_slots(handle, *header[:3]),
            _ops.table_set_initializer(handle, *header[3:7]),
            _ops.table_set_step(handle, header[7]),
        )


def from_header(header: table_lib.TableHeader) -> tuple[Any, ...]:
    """Returns the arrays that `header_tensors` gives for a header.

    Args:
        header: The header.
    """
    return (
        np.array([slot.name.encode() for slot in header.slots], np.object_),
        np.array([slot.width for slot in header.slots], np.int64),
        np.array([slot.initial for slot in header.slots], np.float32),
        np.array(header.stream_name.encode(), np.object_),
        np.array(header.initializer.encode(), np.object_),
        np.array(header.parameters, np.float32),
        np.int64(header.seed),
        np.int64(header.step),
    )


def header_constants(header: table_lib.TableHeader) -> list[tf.Tensor]:
    """Returns a header that is known as `header_tensors` gives it.

    Args:
        header: The header.
    """
    dtypes = [None] * len(FIELDS)
    dtypes[0] = tf.string
    return [
        tf.constant(array, dtype)
        for array, dtype in zip(from_header(header), dtypes, strict=True)
    ]
