"""Ops that read and write rows and slots by position."""

from collections.abc import Sequence

from embedra._typing import Operation, Tensor

from ._library import native_ops


def table_read_records(
    table: Tensor,
    positions: Tensor,
    slot_names: Sequence[str] = (),
    *,
    dim: int,
    slot_widths: Sequence[int] | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Reads rows and slots.

    Args:
        table: Table handle.
        positions: Unique positions, `int64`, shape `(n,)`.
        slot_names: Slots to read.
        dim: Width of the rows.
        slot_widths: Widths of these slots. By default each is `dim`.

    Returns:
        Rows, `float32`, shape `(n, dim)`, and for each slot `float32`, shape
        `(n, width)`. Records that are gone read as zeros.
    """
    outputs = native_ops.embedra_table_read_records(
        table=table,
        positions=positions,
        K=len(slot_names),
        dim=dim,
        slot_names=list(slot_names),
        slot_widths=_widths(slot_names, slot_widths, dim),
    )
    return outputs.rows, outputs.slots


def table_write_records(
    table: Tensor,
    positions: Tensor,
    rows: Tensor,
    slots: Sequence[Tensor] = (),
    slot_names: Sequence[str] = (),
    *,
    dim: int,
    slot_widths: Sequence[int] | None = None,
) -> Operation:
    """Writes rows and slots; records that are gone are skipped.

    Args:
        table: Table handle.
        positions: Unique positions, `int64`, shape `(n,)`.
        rows: Rows, `float32`, shape `(n, dim)`.
        slots: For each slot `float32`, shape `(n, width)`.
        slot_names: Slots to write.
        dim: Width of the rows.
        slot_widths: Widths of these slots. By default each is `dim`.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return native_ops.embedra_table_write_records(
        table=table,
        positions=positions,
        rows=rows,
        slots=list(slots),
        slot_names=list(slot_names),
        slot_widths=_widths(slot_names, slot_widths, dim),
    )


def _widths(
    names: Sequence[str], widths: Sequence[int] | None, dim: int
) -> list[int]:
    return [dim] * len(names) if widths is None else list(widths)
