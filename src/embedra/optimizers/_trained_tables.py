"""Which tables the variables and gradients of a step stand for."""

from typing import Any, NamedTuple

import tensorflow as tf

from embedra import table as table_lib

from ._variable import TableVariable


class TableGradient(NamedTuple):
    """The gradient of one table in a step.

    Attributes:
        variable: Stands for the table; it makes the update.
        table: The table.
        slices: Rows of gradients and positions of records in the table.
    """

    variable: TableVariable
    table: table_lib.Table
    slices: tf.IndexedSlices


def table_variable_of(variable: Any) -> TableVariable | None:
    """Returns the variable that stands for a table, if this is one.

    Args:
        variable: A `TableVariable`, the `tf.Variable` inside one, or what a
            lookup in a `tf.function` gave for one.

    Returns:
        The `TableVariable`, or None for dense variables.
    """
    if isinstance(variable, TableVariable):
        return variable
    found = getattr(variable, "table_variable", None)
    return found if isinstance(found, TableVariable) else None


def split_tables(
    grads_and_variables: Any,
) -> tuple[list[TableGradient], list[tuple[Any, Any]]]:
    """Takes the gradients of tables out of those of a step.

    All gradients of a table are joined, whichever variables they come by, so
    that each row moves once. A variable that is listed twice is taken once:
    tapes give the whole gradient for each.

    Args:
        grads_and_variables: Pairs of gradients and variables.

    Returns:
        The gradients of tables, one for each table, and the other pairs.
    """
    joined: dict[int, TableGradient] = {}
    dense = []
    seen = set()
    for gradient, variable in grads_and_variables:
        found = table_variable_of(variable)
        if found is None:
            dense.append((gradient, variable))
            continue
        if gradient is None or id(found) in seen:
            continue
        seen.add(id(found))
        for table, slices in found.by_table(gradient):
            earlier = joined.get(id(table))
            if earlier is not None:
                found, slices = earlier.variable, _join(earlier.slices, slices)
            joined[id(table)] = TableGradient(found, table, slices)
    return list(joined.values()), dense


def _join(a: tf.IndexedSlices, b: tf.IndexedSlices) -> tf.IndexedSlices:
    return tf.IndexedSlices(
        tf.concat([a.values, tf.cast(b.values, a.values.dtype)], axis=0),
        tf.concat([a.indices, tf.cast(b.indices, a.indices.dtype)], axis=0),
        a.dense_shape,
    )
