"""Operations on a list of tables, each as one op for all of them.

An op for many tables has a smaller graph, and shares its work better over many
cores, than one for each.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from embedra import _ops

from ._arguments import checked_rows
from ._owned import own_records
from ._scalars import number
from ._stand_in import current_stand_in
from ._table import Table


def lookup_tables(
    tables: Sequence[Table],
    keys: Sequence[Any],
    insert: bool = False,
    default: Any = None,
) -> list[tf.Tensor]:
    """Reads rows of several tables.

    Args:
        tables: Tables.
        keys: Keys for each, of any shape.
        insert: As for `Table.lookup`.
        default: As for `Table.lookup`.

    Returns:
        Rows of each table, shape `keys.shape + (dim,)`.

    Raises:
        ValueError: If there are not as many keys as tables.

    Example:
        >>> user = Table(2, name="user", initializer=1.0)
        >>> item = Table(3, name="item", initializer=2.0)
        >>> rows = lookup_tables([user, item], [[7], [[8, 9]]])
        >>> [tuple(r.shape) for r in rows]
        [(1, 2), (1, 2, 3)]
    """
    keys = _keys_of(tables, keys)
    stand_in = current_stand_in()
    if stand_in is not None:
        return [
            stand_in.read([table], part, default)[0]
            for table, part in zip(tables, keys, strict=True)
        ]
    rows: list[Any] = [None] * len(tables)
    for dtype, where in _by_dtype(tables).items():
        if insert:
            for i in where:
                keys[i] = tables[i].create_missing(keys[i])
        handles = [tables[i].resource_handle for i in where]
        found = _ops.table_lookup(
            handles,
            # No variable takes part: the handles only fill the place.
            handles,
            [keys[i] for i in where],
            [tables[i].default_row(default) for i in where],
            dims=[tables[i].dim for i in where],
            dtype=dtype,
            insert=insert,
        )
        for i, part in zip(where, found.rows, strict=True):
            rows[i] = part
    return rows


def assign_tables(
    tables: Sequence[Table], keys: Sequence[Any], rows: Sequence[Any]
) -> Any:
    """Stores rows in several tables; see `Table.assign`.

    Args:
        tables: Tables.
        keys: Keys for each, of any shape.
        rows: Rows for each, shape `keys.shape + (dim,)`.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.

    Raises:
        ValueError: If shapes or numbers do not fit; no table is changed.
    """
    keys = _keys_of(tables, keys)
    _check_length(tables, rows, "rows")
    flat = [
        checked_rows(table, k, tf.cast(r, table.dtype), "rows")
        for table, k, r in zip(tables, keys, rows, strict=True)
    ]
    keys, flat = _own_records(tables, keys, flat)
    assigned = [
        _ops.table_assign(
            [tables[i].resource_handle for i in where],
            [keys[i] for i in where],
            [flat[i] for i in where],
            dims=[tables[i].dim for i in where],
            only_missing=False,
        )
        for where in _by_dtype(tables).values()
    ]
    return _to_run(assigned)


def accumulate_tables(
    tables: Sequence[Table], keys: Sequence[Any], deltas: Sequence[Any]
) -> Any:
    """Adds to rows of several tables; see `Table.accumulate`.

    Args:
        tables: Tables.
        keys: Keys for each, of any shape.
        deltas: What is added, for each, shape `keys.shape + (dim,)`.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.

    Raises:
        ValueError: If shapes or numbers do not fit; no table is changed.
    """
    keys = _keys_of(tables, keys)
    _check_length(tables, deltas, "deltas")
    flat = [
        checked_rows(table, k, tf.cast(d, tf.float32), "deltas")
        for table, k, d in zip(tables, keys, deltas, strict=True)
    ]
    keys, flat = _own_records(tables, keys, flat)
    keys = [
        table.create_missing(k) for table, k in zip(tables, keys, strict=True)
    ]
    accumulated = _ops.table_accumulate(
        [table.resource_handle for table in tables],
        keys,
        flat,
        dims=[table.dim for table in tables],
    )
    return _to_run([accumulated])


def remove_from_tables(
    tables: Sequence[Table], keys: Sequence[Any]
) -> list[Any]:
    """Removes keys from several tables; see `Table.remove`.

    Args:
        tables: Tables.
        keys: Keys for each, of any shape.

    Returns:
        How many were there, for each table.

    Raises:
        ValueError: If there are not as many keys as tables.
    """
    flat = [tf.reshape(k, (-1,)) for k in _keys_of(tables, keys)]
    removed = _ops.table_remove([t.resource_handle for t in tables], flat)
    return [number(count) for count in removed]


def table_sizes(tables: Sequence[Table]) -> list[Any]:
    """Counts the keys of several tables.

    Args:
        tables: Tables.

    Returns:
        A number for each: an int, or a scalar in a `tf.function`.
    """
    if not tables:
        return []
    sizes = _ops.table_size([table.resource_handle for table in tables])
    return [number(size) for size in sizes]


def clear_tables(tables: Sequence[Table]) -> Any:
    """Removes all keys of several tables.

    Args:
        tables: Tables.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    handles = [table.resource_handle for table in tables]
    return _to_run([_ops.table_clear(handles)] if tables else [])


def _own_records(
    tables: Sequence[Table], keys: Sequence[tf.Tensor], rows: list[tf.Tensor]
) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    own = [
        own_records(table, tf.reshape(k, (-1,)), r)
        for table, k, r in zip(tables, keys, rows, strict=True)
    ]
    return [k for k, _ in own], [r for _, r in own]


def _to_run(operations: list[Any]) -> Any:
    """Returns what a session is to run; elsewhere ops run by themselves."""
    if tf.executing_eagerly() or tf.inside_function():
        return None
    return tf.group(*operations)


def _keys_of(tables: Sequence[Table], keys: Sequence[Any]) -> list[tf.Tensor]:
    _check_length(tables, keys, "keys")
    return [
        table.keys_of(part) for table, part in zip(tables, keys, strict=True)
    ]


def _check_length(
    tables: Sequence[Table], values: Sequence[Any], what: str
) -> None:
    if not tables or len(values) != len(tables):
        msg = (
            f"`{what}` must have one element for each of {len(tables)} tables, "
            f"of which there must be at least one. Received: {len(values)}."
        )
        raise ValueError(msg)


def _by_dtype(tables: Sequence[Table]) -> dict[str, list[int]]:
    """Returns which tables have rows of a dtype: an op takes one dtype."""
    where = defaultdict(list)
    for i, table in enumerate(tables):
        where[table.dtype].append(i)
    return dict(where)
