"""Gradients of the lookup ops.

The gradient with respect to the rows of a table is that of the variable which
stands for it, `tf.IndexedSlices` over positions. Importing this module
registers the gradients.
"""

from typing import Any

import tensorflow as tf

from embedra._typing import Tensor

from ._lookup_ops import (
    table_lookup,
    table_pooled_gradient,
    table_pooled_lookup,
)


@tf.RegisterGradient("EmbedraTableLookup")
def _lookup_gradient(op: Any, *grads: Tensor) -> list[Any]:
    """Returns slices for the trainables, nothing for the other inputs."""
    dims = op.get_attr("dims")
    n = len(dims)
    _, positions, _, bounds = _split(op.outputs, n)
    if op.get_attr("insert_in_gradient"):
        again = table_lookup(
            *_split(op.inputs, n),
            dims=dims,
            dtype=op.get_attr("T"),
            insert=True,
        )
        positions, bounds = again.positions, again.bounds
    slices = [
        tf.IndexedSlices(
            values=tf.cast(_as_matrix(grad, dim), tf.float32),
            # An op of the gradient's own: functions do not take the lookup's
            # output for an index of theirs.
            indices=tf.reshape(position, [-1]),
            dense_shape=shape_of_slices(bound, dim),
        )
        for grad, position, bound, dim in zip(
            grads[:n], positions, bounds, dims, strict=True
        )
    ]
    return [*_nothing(n), *slices, *_nothing(2 * n)]


@tf.RegisterGradient("EmbedraTablePooledLookup")
def _pooled_lookup_gradient(op: Any, *grads: Tensor) -> list[Any]:
    """Returns slices for the trainables and gradients of the weights."""
    dims = op.get_attr("dims")
    n = len(dims)
    tables, _, _, row_splits, weights, _ = _split(op.inputs, n)
    pooled, positions, bounds = _split(op.outputs, n)
    if op.get_attr("insert_in_gradient"):
        again = table_pooled_lookup(
            *_split(op.inputs, n),
            dims=dims,
            dtype=op.get_attr("T"),
            insert=True,
            combiner=_text(op.get_attr("combiner")),
        )
        positions, bounds = again.positions, again.bounds
    indices, values = table_pooled_gradient(
        tables,
        positions,
        row_splits,
        weights,
        grads[:n],
        dims=dims,
        combiner=_text(op.get_attr("combiner")),
    )
    slices = [
        tf.IndexedSlices(value, index, shape_of_slices(bound, dim))
        for value, index, bound, dim in zip(
            values, indices, bounds, dims, strict=True
        )
    ]
    # Weights are data more often than not. Tapes say which gradients nobody
    # asked for; `tf.gradients` does not, and then all are computed.
    unneeded = getattr(op, "skip_input_indices", None) or ()
    weight_gradients = [
        None
        if 4 * n + i in unneeded or weights[i].shape == (0,)
        else _weight_gradient(op, i, n, pooled[i], grads[i])
        for i in range(n)
    ]
    return [
        *_nothing(n),
        *slices,
        *_nothing(2 * n),
        *weight_gradients,
        *_nothing(n),
    ]


def _weight_gradient(
    op: Any, i: int, n: int, pooled: Tensor, grad: Tensor
) -> Tensor:
    """Returns the gradient for the weights of table `i`.

    With bag b of key k, row r_k, weight w_k, output p_b and its gradient g_b:

        sum:    r_k g_b
        mean:   (r_k - p_b) g_b / W_b            W_b: sum of the weights
        sqrtn:  r_k g_b / S_b - w_k p_b g_b / S_b^2
                                     S_b^2: sum of the squares of the weights
    """
    tables, trainables, keys, row_splits, weights, defaults = (
        group[i] for group in _split(op.inputs, n)
    )
    dim = op.get_attr("dims")[i]
    rows = table_lookup(
        [tables],
        [trainables],
        [keys],
        [defaults],
        dims=[dim],
        dtype=op.get_attr("T"),
        insert=False,
    ).rows[0]
    bags = tf.ragged.row_splits_to_segment_ids(row_splits)
    row_dot_grad = tf.reduce_sum(
        tf.cast(rows, tf.float32) * tf.gather(grad, bags), axis=-1
    )
    combiner = _text(op.get_attr("combiner"))
    if combiner == "sum":
        gradient = row_dot_grad
    else:
        num_bags = tf.shape(grad)[0]
        pooled_dot_grad = tf.gather(tf.reduce_sum(pooled * grad, -1), bags)
        if combiner == "mean":
            total = tf.math.unsorted_segment_sum(weights, bags, num_bags)
            gradient = tf.math.divide_no_nan(
                row_dot_grad - pooled_dot_grad, tf.gather(total, bags)
            )
        else:
            squares = tf.gather(
                tf.math.unsorted_segment_sum(weights**2, bags, num_bags), bags
            )
            gradient = tf.math.divide_no_nan(
                row_dot_grad, tf.sqrt(squares)
            ) - tf.math.divide_no_nan(weights * pooled_dot_grad, squares)
    return gradient


def _split(tensors: Any, n: int) -> list[list[Tensor]]:
    """Splits the flat inputs or outputs of a list op into its lists of `n`."""
    tensors = list(tensors)
    return [tensors[i : i + n] for i in range(0, len(tensors), n)]


def _as_matrix(rows: Tensor, dim: int) -> Tensor:
    """Flattens rows of any rank, with no op if they are a matrix already."""
    return rows if rows.shape.rank == 2 else tf.reshape(rows, [-1, dim])


def _nothing(count: int) -> list[None]:
    return [None] * count


def shape_of_slices(bound: Tensor, dim: int) -> Tensor:
    """Returns the shape that gradients of lookups say they have.

    Optimizers that know nothing of tables make slices dense by it, and are to
    fail then: one row would go together with the variable, which has none.

    It is int32, as that of the zeros which TensorFlow puts in where a branch of
    `tf.cond` does no lookup: other dtypes do not go together.

    Args:
        bound: Scalar, `int64`: as the lookup gave it.
        dim: Width of a row.

    Returns:
        `int32`, shape `(2,)`.
    """
    rows = tf.cast(tf.clip_by_value(bound, 2, tf.int32.max), tf.int32)
    return tf.stack([rows, tf.constant(dim, tf.int32)])


def _text(attribute: str | bytes) -> str:
    """Attributes of graph ops are bytes, those of eager ones may be either."""
    return attribute.decode() if isinstance(attribute, bytes) else attribute
