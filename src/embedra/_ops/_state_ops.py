"""Ops for a table's state: whole records, slots, clock, statistics."""

from typing import NamedTuple

import tensorflow as tf

from embedra._typing import Operation, Tensor

from ._library import native_ops


class TableExport(NamedTuple):
    """A chunk of whole records.

    Attributes:
        keys: Keys, `int64`, shape `(n,)`.
        rows: Rows of the table's dtype, shape `(n, dim)`.
        slots: All slots side by side, `float32`, shape `(n, total width)`.
        frequencies: Training lookups of each key, `int64`, shape `(n,)`.
        last_steps: The clock at the last of them, `int64`, shape `(n,)`.
        next_cursor: Where the next chunk begins, scalar `int64`.
    """

    keys: Tensor
    rows: Tensor
    slots: Tensor
    frequencies: Tensor
    last_steps: Tensor
    next_cursor: Tensor


def table_export(
    table: Tensor, cursor: Tensor, max_records: Tensor, *, dtype: str, dim: int
) -> TableExport:
    """Reads whole records, up to `max_records` from `cursor` on.

    The scan is over when `next_cursor` equals `cursor`. Records that live
    through all of it appear exactly once, whatever others write meanwhile.

    Args:
        table: Table handle.
        cursor: Scalar, `int64`: 0, or the `next_cursor` of the last call.
        max_records: Scalar, `int64`.
        dtype: Dtype of the rows.
        dim: Width of the rows.

    Returns:
        The records, and where to go on.
    """
    return TableExport(
        *native_ops.embedra_table_export(
            table=table,
            cursor=cursor,
            max_records=max_records,
            T=tf.as_dtype(dtype),
            dim=dim,
        )
    )


def table_import(
    table: Tensor,
    keys: Tensor,
    rows: Tensor,
    slots: Tensor,
    frequencies: Tensor,
    last_steps: Tensor,
) -> Operation:
    """Adds or overwrites whole records.

    Args:
        table: Table handle.
        keys: Keys, `int64`, shape `(n,)`.
        rows: Rows of the table's dtype, shape `(n, dim)`.
        slots: `float32`, shape `(n, total width)`, or no elements for initial
            slots.
        frequencies: `int64`, shape `(n,)`, or `(0,)` for zeros.
        last_steps: `int64`, shape `(n,)`, or `(0,)` for zeros.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return native_ops.embedra_table_import(
        table=table,
        keys=keys,
        rows=rows,
        slots=slots,
        frequencies=frequencies,
        last_steps=last_steps,
    )


def table_slots(table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns what is kept beside each row, in the order of the columns.

    Args:
        table: Table handle.

    Returns:
        Names, `string`, widths, `int64`, and initial values, `float32`, all
        of shape `(k,)`.
    """
    outputs = native_ops.embedra_table_slots(table=table)
    return outputs.names, outputs.widths, outputs.initials


def table_set_slots(
    table: Tensor, names: Tensor, widths: Tensor, initials: Tensor
) -> Tensor:
    """Sets what is kept beside each row.

    Slots that stay the same keep their contents; new ones start at their
    initial value.

    Args:
        table: Table handle.
        names: `string`, shape `(k,)`.
        widths: `int64`, shape `(k,)`: the row's width, or 1.
        initials: `float32`, shape `(k,)`.

    Returns:
        Names of the slots that were dropped, `string`, shape `(d,)`.
    """
    return native_ops.embedra_table_set_slots(
        table=table,
        names=tf.convert_to_tensor(names, tf.string),
        widths=tf.convert_to_tensor(widths, tf.int64),
        initials=tf.convert_to_tensor(initials, tf.float32),
    )


def table_statistics(table: Tensor) -> tuple[Tensor, Tensor]:
    """Returns what a table holds and has seen.

    Args:
        table: Table handle.

    Returns:
        Counters, `int64`, shape `(10,)`: size, capacity, bytes, inserts,
        removes, hits, misses, updates, stale gradients, evictions. And the
        occupied share of the index, scalar `float64`.
    """
    outputs = native_ops.embedra_table_statistics(table=table)
    return outputs.counters, outputs.load_factor


def table_step(table: Tensor) -> Tensor:
    """Returns the number of optimizer steps that a table has seen.

    Args:
        table: Table handle.

    Returns:
        Scalar, `int64`.
    """
    return native_ops.embedra_table_step(table=table)


def table_set_step(table: Tensor, step: Tensor) -> Operation:
    """Sets the number of optimizer steps that a table has seen.

    Args:
        table: Table handle.
        step: Scalar, `int64`.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return native_ops.embedra_table_set_step(table=table, step=step)


def table_keys(table: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the keys of the records at `positions`.

    Args:
        table: Table handle.
        positions: Positions, `int64`, any shape.

    Returns:
        Keys, `int64`, and whether the record is still there, `bool`, both of
        the shape of `positions`. Keys of records that are gone are 0.
    """
    outputs = native_ops.embedra_table_keys(table=table, positions=positions)
    return outputs.keys, outputs.alive


def table_set_initializer(
    table: Tensor,
    name: Tensor,
    kind: Tensor,
    parameters: Tensor,
    seed: Tensor,
) -> Operation:
    """Sets what the rows of keys that come later are drawn from.

    Args:
        table: Table handle.
        name: Stands for the table's name in the draw, scalar `string`.
        kind: "constant", "uniform", "normal" or "truncated_normal".
        parameters: As in `table`, `float32`, shape `(p,)`.
        seed: Scalar, `int64`.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return native_ops.embedra_table_set_initializer(
        table=table,
        stream_name=name,
        kind=kind,
        parameters=parameters,
        seed=seed,
    )


def table_initializer(table: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns what new rows are drawn from.

    Args:
        table: Table handle.

    Returns:
        Name, kind, parameters and seed, as `table_set_initializer` takes them.
    """
    outputs = native_ops.embedra_table_initializer(table=table)
    return outputs.stream_name, outputs.kind, outputs.parameters, outputs.seed
