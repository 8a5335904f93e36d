"""Restoring: a table's state replaced as a whole, or not at all."""

import dataclasses
import logging
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from embedra import _ops

from ._group import TableGroup
from ._records import Records
from ._state import TableHeader, group_header, group_pending, header_of
from ._table import Table


_log = logging.getLogger("embedra")


def set_layout(table: Table, header: TableHeader) -> None:
    """Empties a table and sets slots, clock and initial rows.

    Args:
        table: A table that the state fits.
        header: Header of the state.
    """
    table.clear()
    table.set_slots(header.slots)
    _ops.table_set_initializer(
        table.resource_handle,
        header.stream_name,
        header.initializer,
        list(header.parameters),
        header.seed,
    )
    _ops.table_set_step(table.resource_handle, header.step)


def _begin_restore(table: Table, header: TableHeader) -> None:
    """Empties a table and sets everything but its records.

    Args:
        table: A table that the state fits.
        header: Header of the state.
    """
    set_layout(table, header)
    table.initializer = dataclasses.replace(
        table.initializer, kind=header.initializer, parameters=header.parameters
    )
    table.seed = header.seed
    table.stream_name = header.stream_name
    table.scalars.restore(header.scalars)


def replace_state(
    group: TableGroup,
    header: TableHeader,
    read_chunks: Callable[[], Iterator[Records]],
    pending: tuple[Any, Any],
) -> None:
    """Replaces all that tables hold, or on failure nothing.

    Args:
        group: Tables that the state fits.
        header: Header of the state.
        read_chunks: Reads the records from the start. It is called twice if the
            tables hold any: what is there is given up only for a state that
            can be read to its end.
        pending: Keys and gradients, as `pending_gradients` gives them.

    Raises:
        ValueError: If a column has a wrong dtype or shape.
    """
    before = [header_of(table) for table in group.tables]
    evictions = _evictions(group)
    _check_pending(group.first, *pending)
    if group.size():
        for records in read_chunks():
            _check_records(header, records)
    for table in group.tables:
        _begin_restore(table, header)
    try:
        for records in read_chunks():
            _check_records(header, records)
            kept = Records(*group.own(records.keys, records))
            for table, part in group.split(kept):
                table.import_records(part)
        waiting = group.own(pending[0], pending)
        parts = group.parts(tf.convert_to_tensor(waiting[0]), waiting)
        for table, (keys, gradients) in zip(group.tables, parts, strict=True):
            _restore_pending_gradients(table, keys, gradients)
    except BaseException:
        for table, layout in zip(group.tables, before, strict=True):
            _begin_restore(table, layout)
        raise
    dropped = _evictions(group) - evictions
    if dropped:
        _log.warning(
            "Table %r: the saved state holds %d records more than the table's "
            "max_capacity; those were dropped by %s.",
            header.name,
            dropped,
            group.first.bound.eviction,
        )


def copy_state(source: TableGroup, target: TableGroup) -> None:
    """Replaces all that tables hold by what others hold in this process.

    Args:
        source: Where the state is.
        target: Tables that it fits, held by the same ranks.
    """

    def read_chunks() -> Iterator[Records]:
        return (c for table in source.tables for c in table.export_chunks())

    replace_state(
        target, group_header(source), read_chunks, group_pending(source)
    )


def _evictions(group: TableGroup) -> int:
    """Counts what the bounds of tables have dropped so far."""
    return sum(
        table.statistics().evictions
        for table in group.tables
        if table.bound.max_capacity
    )


def _check_records(header: TableHeader, records: Records) -> None:
    """Raises unless a chunk's columns are those of the header's table."""
    count = len(records.keys)
    slot_width = sum(slot.width for slot in header.slots)
    expected = {
        "keys": (tf.int64, (count,)),
        "rows": (tf.as_dtype(header.dtype), (count, header.dim)),
        "slots": (tf.float32, (count, slot_width)),
        "frequencies": (tf.int64, (count,)),
        "last_steps": (tf.int64, (count,)),
    }
    for name, (dtype, shape) in expected.items():
        column = getattr(records, name)
        _check_column(header.name, name, column, dtype, shape)


def _check_pending(table: Table, keys: Any, gradients: Any) -> None:
    shape = (len(keys), table.dim)
    _check_column(table.name, "pending_keys", keys, tf.int64, shape[:1])
    _check_column(table.name, "pending_gradients", gradients, tf.float32, shape)


def _check_column(
    table: str, name: str, column: Any, dtype: tf.DType, shape: tuple[int, ...]
) -> None:
    found = tf.as_dtype(column.dtype), tuple(column.shape)
    if found != (dtype, shape):
        msg = (
            f"The saved state of table {table!r} is damaged: column {name!r} "
            f"must be {dtype.name} of shape {shape}. Found: {found[0].name} of "
            f"shape {found[1]}. The table is left as it was."
        )
        raise ValueError(msg)


def _restore_pending_gradients(table: Table, keys: Any, gradients: Any) -> None:
    """Accumulates saved gradients, in place of those that are pending.

    Args:
        table: The table, with its records restored.
        keys: As `pending_gradients` gives them.
        gradients: As `pending_gradients` gives them.
    """
    _ops.table_take_gradients(table.resource_handle, dim=table.dim)
    found = _ops.table_lookup(
        [table.resource_handle],
        [table.resource_handle],
        [keys],
        [table.default_row(None)],
        dims=[table.dim],
        dtype=table.dtype,
        insert=False,
    )
    _ops.table_accumulate_gradients(
        table.resource_handle, found.positions[0], gradients
    )
