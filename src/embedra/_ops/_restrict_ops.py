"""Ops by which a table is kept small."""

from embedra._typing import Operation, Tensor

from ._library import native_ops


def table_restrict(
    table: Tensor, max_records: Tensor, *, order: str = "recency"
) -> Tensor:
    """Keeps the records that are highest in an order, and drops the others.

    Args:
        table: Table handle.
        max_records: How many to keep at most, scalar `int64`.
        order: "recency" drops those with the smallest last step first,
            "frequency" those with the fewest training lookups. Ties go by the
            other, then by key.

    Returns:
        The keys dropped, `int64`, shape `(n,)`, each once.
    """
    return native_ops.embedra_table_restrict(
        table=table, max_records=max_records, order=order
    )


def table_count_uses(table: Tensor, keys: Tensor) -> Operation:
    """Counts a use of each key that the table holds.

    Moves the table's clock on by one, which becomes the keys' last step.
    Training lookups count by themselves.

    Args:
        table: Table handle.
        keys: Keys, `int64`, any shape.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return native_ops.embedra_table_count_uses(table=table, keys=keys)


def table_uses(table: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Reads how often, and at which step last, keys were used.

    Args:
        table: Table handle.
        keys: Keys, `int64`, any shape.

    Returns:
        Frequencies and last steps, `int64`, 0 for absent keys, and which keys
        are there, `bool`, all of the shape of `keys`.
    """
    outputs = native_ops.embedra_table_uses(table=table, keys=keys)
    return outputs.frequencies, outputs.last_steps, outputs.found
