"""Headers of tables as tensors, for TF1 graphs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from embedra import _ops, table as table_lib


# What is known of a table but its records, in the order of `header_tensors`.
FIELDS = (
    "slot_names",
    "slot_widths",
    "slot_initials",
    "stream_name",
    "initializer",
    "parameters",
    "seed",
    "step",
)


class SavedShape(NamedTuple):
    """What tensors of a v1 checkpoint say of a table, beside `FIELDS`.

    Attributes:
        name: Name of the table.
        dim: Width of a row.
        dtype: Dtype of the rows.
        key_dtype: What ids are meant to be.
    """

    name: str
    dim: int
    dtype: str
    key_dtype: str


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


def to_header(
    table: table_lib.Table | SavedShape, arrays: Sequence[Any]
) -> table_lib.TableHeader:
    """Returns the header that tensors say, once they have run.

    Args:
        table: The table, or what is known of it.
        arrays: What `header_tensors` gave.
    """
    names, widths, initials, stream_name, kind, parameters, seed, step = arrays
    return table_lib.TableHeader(
        name=table.name,
        stream_name=_text(stream_name),
        dim=table.dim,
        dtype=table.dtype,
        key_dtype=table.key_dtype,
        seed=int(seed),
        initializer=_text(kind),
        parameters=tuple(float(number) for number in parameters),
        slots=tuple(
            table_lib.Slot(_text(name), int(width), float(initial))
            for name, width, initial in zip(
                names, widths, initials, strict=True
            )
        ),
        step=int(step),
        scalars={},
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


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else _text(value.item())
