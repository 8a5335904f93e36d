"""Ops that read rows by key."""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from embedra._typing import Tensor

from ._library import native_ops


class TableLookup(NamedTuple):
    """What `table_lookup` returns: one tensor for each table.

    Attributes:
        rows: Rows, of the tables' dtype, shape `keys.shape + (dim,)`.
        positions: Positions, `int64`, shape `keys.shape`; -1 for absent keys.
        found: Whether a key was there before the call, shape `keys.shape`.
        bounds: Scalars, `int64`: one more than the largest position ever used.
    """

    rows: list[Tensor]
    positions: list[Tensor]
    found: list[Tensor]
    bounds: list[Tensor]


class TablePooledLookup(NamedTuple):
    """What `table_pooled_lookup` returns: one tensor for each table.

    Attributes:
        pooled: Combined rows, `float32`, shape `(bags, dim)`.
        positions: Positions, `int64`, shape `(n,)`; -1 for absent keys.
        bounds: Scalars, `int64`: one more than the largest position ever used.
    """

    pooled: list[Tensor]
    positions: list[Tensor]
    bounds: list[Tensor]


def table_lookup(
    tables: Sequence[Tensor],
    trainables: Sequence[Tensor],
    keys: Sequence[Tensor],
    default_rows: Sequence[Tensor],
    *,
    dims: Sequence[int],
    dtype: str,
    insert: bool,
    insert_in_gradient: bool = False,
) -> TableLookup:
    """Looks up rows; differentiable with respect to `trainables`.

    Args:
        tables: Table handles.
        trainables: For each table the handle of the variable that stands for
            its rows in gradients. Never read.
        keys: Keys, `int64`, any shape.
        default_rows: What absent keys read as, shape `(dim,)`, or `(0,)` for
            the row that they would start with. Unused with `insert`.
        dims: Widths of the rows.
        dtype: Dtype of the rows of all tables.
        insert: Whether absent keys are created and lookups are counted.
        insert_in_gradient: Without `insert`, whether they are if and when a
            gradient is computed.

    Returns:
        Rows, positions, found flags and bounds.
    """
    dtype = tf.as_dtype(dtype)
    outputs = native_ops.embedra_table_lookup(
        tables=list(tables),
        trainables=list(trainables),
        keys=list(keys),
        default_rows=[tf.convert_to_tensor(r, dtype) for r in default_rows],
        dims=list(dims),
        insert=insert,
        insert_in_gradient=insert_in_gradient,
    )
    return TableLookup(*outputs)


def table_pooled_lookup(
    tables: Sequence[Tensor],
    trainables: Sequence[Tensor],
    keys: Sequence[Tensor],
    row_splits: Sequence[Tensor],
    weights: Sequence[Tensor],
    default_rows: Sequence[Tensor],
    *,
    dims: Sequence[int],
    dtype: str,
    insert: bool,
    insert_in_gradient: bool = False,
    combiner: str,
) -> TablePooledLookup:
    """Looks up bags of keys and combines the rows of each.

    Differentiable with respect to `trainables` and `weights`.

    Args:
        tables: Table handles.
        trainables: As in `table_lookup`.
        keys: Keys, `int64`, shape `(n,)`.
        row_splits: Where each bag begins and the last one ends, `int64`, shape
            `(bags + 1,)`.
        weights: Weights, `float32`, shape `(n,)`, or `(0,)` for none.
        default_rows: As in `table_lookup`.
        dims: Widths of the rows.
        dtype: Dtype of the rows of all tables.
        insert: Whether absent keys are created and lookups are counted.
        insert_in_gradient: Without `insert`, whether they are if and when a
            gradient is computed.
        combiner: "sum", "mean" or "sqrtn"; with weights as
            `tf.nn.embedding_lookup_sparse` defines them.

    Returns:
        Combined rows, positions and bounds. Empty bags give zeros.
    """
    dtype = tf.as_dtype(dtype)
    outputs = native_ops.embedra_table_pooled_lookup(
        tables=list(tables),
        trainables=list(trainables),
        keys=list(keys),
        row_splits=list(row_splits),
        weights=list(weights),
        default_rows=[tf.convert_to_tensor(r, dtype) for r in default_rows],
        dims=list(dims),
        insert=insert,
        insert_in_gradient=insert_in_gradient,
        combiner=combiner,
    )
    return TablePooledLookup(*outputs)


def table_pooled_gradient(
    tables: Sequence[Tensor],
    positions: Sequence[Tensor],
    row_splits: Sequence[Tensor],
    weights: Sequence[Tensor],
    grads: Sequence[Tensor],
    *,
    dims: Sequence[int],
    combiner: str,
) -> tuple[list[Tensor], list[Tensor]]:
    """Computes the gradient of `table_pooled_lookup` for the rows.

    Args:
        tables: Table handles.
        positions: As the lookup gave them.
        row_splits: As the lookup was given them.
        weights: As the lookup was given them.
        grads: Gradients of the combined rows, `float32`, shape `(bags, dim)`.
        dims: Widths of the rows.
        combiner: As the lookup was given it.

    Returns:
        Unique positions, `int64`, shape `(u,)`, and the summed gradients of
        their rows, `float32`, shape `(u, dim)`.
    """
    outputs = native_ops.embedra_table_pooled_gradient(
        tables=list(tables),
        positions=list(positions),
        row_splits=list(row_splits),
        weights=list(weights),
        grads=list(grads),
        dims=list(dims),
        combiner=combiner,
    )
    return outputs.unique, outputs.values


def table_missing(table: Tensor, keys: Tensor) -> Tensor:
    """Returns the keys that a table does not hold.

    Args:
        table: Table handle.
        keys: Keys, `int64`, any shape.

    Returns:
        Each absent key once, in order of first appearance, shape `(m,)`.
    """
    return native_ops.embedra_table_missing(table=table, keys=keys)
