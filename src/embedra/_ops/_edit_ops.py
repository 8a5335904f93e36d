"""Ops that change a table by key, or as a whole."""

from collections.abc import Sequence

from embedra._typing import Operation, Tensor

from ._library import native_ops


def table_assign(
    tables: Sequence[Tensor],
    keys: Sequence[Tensor],
    rows: Sequence[Tensor],
    *,
    dims: Sequence[int],
    only_missing: bool = False,
) -> Operation:
    """Sets the rows of keys; absent keys are created.

    Slots of present keys are kept. Of a repeated key the last row wins, or the
    first with `only_missing`.

    Args:
        tables: Table handles.
        keys: Keys, `int64`, any shape.
        rows: Rows of the tables' dtype, shape `keys.shape + (dim,)`.
        dims: Widths of the rows.
        only_missing: Whether the rows of present keys are left as they are.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return native_ops.embedra_table_assign(
        tables=list(tables),
        keys=list(keys),
        rows=list(rows),
        dims=list(dims),
        only_missing=only_missing,
    )


def table_accumulate(
    tables: Sequence[Tensor],
    keys: Sequence[Tensor],
    deltas: Sequence[Tensor],
    *,
    dims: Sequence[int],
) -> Operation:
    """Adds to the rows of keys; absent keys start from their initial row.

    Args:
        tables: Table handles.
        keys: Keys, `int64`, any shape.
        deltas: What is added, `float32`, shape `keys.shape + (dim,)`.
        dims: Widths of the rows.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return native_ops.embedra_table_accumulate(
        tables=list(tables),
        keys=list(keys),
        deltas=list(deltas),
        dims=list(dims),
    )


def table_remove(
    tables: Sequence[Tensor], keys: Sequence[Tensor]
) -> list[Tensor]:
    """Removes keys.

    Args:
        tables: Table handles.
        keys: Keys, `int64`, any shape.

    Returns:
        How many were present, `int64` scalars.
    """
    return native_ops.embedra_table_remove(  # type: ignore[no-any-return]
        tables=list(tables), keys=list(keys)
    )


def table_size(tables: Sequence[Tensor]) -> list[Tensor]:
    """Returns the number of keys in each table.

    Args:
        tables: Table handles.

    Returns:
        `int64` scalars.
    """
    return native_ops.embedra_table_size(  # type: ignore[no-any-return]
        tables=list(tables)
    )


def table_clear(tables: Sequence[Tensor]) -> Operation:
    """Removes every key; seed, step and slots stay.

    Args:
        tables: Table handles.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return native_ops.embedra_table_clear(tables=list(tables))


def table_reserve(table: Tensor, capacity: Tensor) -> Operation:
    """Makes room for `capacity` keys in all.

    Args:
        table: Table handle.
        capacity: Scalar, `int64`.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return native_ops.embedra_table_reserve(table=table, capacity=capacity)
