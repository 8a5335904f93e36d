"""Bags: ids of any structure as flat groups, for pooled lookups."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from ._splits import bags_of, checked_order, splits_of


class Bags(NamedTuple):
    """Ids in groups, of which each becomes one row.

    Attributes:
        ids: All ids, shape `(n,)`.
        row_splits: Bag b holds ids `row_splits[b]` to `row_splits[b + 1]`,
            `int64`, shape `(bags + 1,)`.
        weights: One per id, `float32`, shape `(n,)`, or `(0,)` for none.
        restore: Gives rows, shape `(bags, dim)`, the structure of the ids,
            less the dimension that was pooled.
    """

    ids: tf.Tensor
    row_splits: tf.Tensor
    weights: tf.Tensor
    restore: Callable[[tf.Tensor], Any]


def to_bags(
    ids: Any, weights: Any, owner: str, *, in_order: bool = False
) -> Bags:
    """Groups ids by all dimensions but the last.

    Ids of one dimension are bags of one id each.

    Args:
        ids: A dense tensor, a ragged tensor, or a sparse tensor whose indices
            are in row-major order.
        weights: Of the same structure, or None.
        owner: Name of the layer, for messages.
        in_order: Whether sparse ids are known to be in that order.

    Returns:
        The bags.

    Raises:
        ValueError: If the structures differ.
    """
    _check_kind(ids, weights, owner)
    if isinstance(ids, tf.RaggedTensor):
        return _ragged_bags(ids, weights, owner)
    if isinstance(ids, tf.SparseTensor):
        return _sparse_bags(ids, weights, owner, in_order=in_order)
    return _dense_bags(ids, weights, owner)


def without_padding(bags: Bags) -> Bags:
    """Leaves out the ids that mean "none": 0, or the empty string.

    Args:
        bags: Bags with padding.

    Returns:
        The same bags with fewer ids.
    """
    return kept_of(bags, padding_mask(bags.ids))


def kept_of(bags: Bags, kept: tf.Tensor) -> Bags:
    """Leaves out ids.

    Args:
        bags: Bags.
        kept: Which ids stay, `bool`, shape `(n,)`.

    Returns:
        The same bags with fewer ids.
    """
    before = tf.concat([[0], tf.cumsum(tf.cast(kept, tf.int64))], axis=0)
    has_weights = bags.weights.shape[0] != 0
    weights = (
        tf.boolean_mask(bags.weights, kept) if has_weights else bags.weights
    )
    return Bags(
        tf.boolean_mask(bags.ids, kept),
        tf.gather(before, bags.row_splits),
        weights,
        bags.restore,
    )


def padding_mask(ids: tf.Tensor) -> tf.Tensor:
    """Returns which ids are not padding, `bool`."""
    return tf.not_equal(ids, "" if ids.dtype == tf.string else 0)


def _dense_bags(ids: tf.Tensor, weights: Any, owner: str) -> Bags:
    shape = tf.shape(ids, out_type=tf.int64)
    if ids.shape.rank is None:
        msg = f"{owner} needs ids of known rank with a combiner."
        raise ValueError(msg)
    pooled = ids.shape.rank > 1
    outer_shape = shape[:-1] if pooled else shape
    outer_static = ids.shape[:-1] if pooled else ids.shape
    width = shape[-1] if pooled else tf.constant(1, tf.int64)
    splits = tf.range(tf.reduce_prod(outer_shape) + 1) * width
    flat_weights = _no_weights()
    if weights is not None:
        weights = tf.cast(weights, tf.float32)
        _check_shapes(ids.shape, weights.shape, owner)
        flat_weights = tf.reshape(
            _same(weights, tf.shape(weights, out_type=tf.int64), shape, owner),
            (-1,),
        )

    def restore(rows: tf.Tensor) -> tf.Tensor:
        rows_shape = tf.concat([outer_shape, tf.shape(rows, tf.int64)[-1:]], 0)
        restored = tf.reshape(rows, rows_shape)
        restored.set_shape(outer_static.concatenate(rows.shape[-1:]))
        return restored

    return Bags(tf.reshape(ids, (-1,)), splits, flat_weights, restore)


def _ragged_bags(ids: tf.RaggedTensor, weights: Any, owner: str) -> Bags:
    flat_weights = None
    if weights is not None:
        if weights.ragged_rank != ids.ragged_rank:
            _raise_unequal(ids.shape, weights.shape, owner)
        flat_weights = tf.cast(weights.flat_values, tf.float32)
        for mine, theirs in zip(
            ids.nested_row_splits, weights.nested_row_splits, strict=True
        ):
            flat_weights = _same(
                flat_weights,
                tf.cast(theirs, tf.int64),
                tf.cast(mine, tf.int64),
                owner,
            )
    if ids.flat_values.shape.rank > 1:
        inner = _dense_bags(ids.flat_values, flat_weights, owner)
        return inner._replace(
            restore=lambda rows: ids.with_flat_values(inner.restore(rows))
        )
    *outer_splits, splits = ids.nested_row_splits

    def restore(rows: tf.Tensor) -> Any:
        if not outer_splits:
            return tf.ensure_shape(rows, (ids.shape[0], None))
        return tf.RaggedTensor.from_nested_row_splits(
            rows, outer_splits, validate=False
        )

    if flat_weights is None:
        flat_weights = _no_weights()
    return Bags(
        ids.flat_values, tf.cast(splits, tf.int64), flat_weights, restore
    )


def _sparse_bags(
    ids: tf.SparseTensor, weights: Any, owner: str, *, in_order: bool
) -> Bags:
    ids = with_rank(ids)
    outer_shape, bag_of, bags = bags_of(ids)
    flat_weights = _no_weights()
    if weights is not None:
        flat_weights = _same(
            tf.cast(weights.values, tf.float32),
            weights.indices,
            ids.indices,
            owner,
        )

    def restore(rows: tf.Tensor) -> tf.Tensor:
        static = ids.shape[: max(ids.shape.rank - 1, 1)]
        if outer_shape is not None:
            shape = tf.concat([outer_shape, tf.shape(rows, tf.int64)[-1:]], 0)
            rows = tf.reshape(rows, shape)
        rows.set_shape(static.concatenate(rows.shape[-1:]))
        return rows

    if not in_order:
        bag_of = checked_order(bag_of, owner)
    splits = splits_of(bag_of, bags)
    return Bags(ids.values, splits, flat_weights, restore)


def with_rank(value: Any) -> Any:
    """Takes sparse tensors of unknown rank for matrices, as TensorFlow does.

    `tf.compat.v1.sparse_placeholder` without a shape gives such ones.

    Args:
        value: A sparse tensor; other values are returned as they are.

    Returns:
        The same, of known rank; one that is no matrix fails when it is read.
    """
    if not isinstance(value, tf.SparseTensor) or value.shape.rank is not None:
        return value
    shape = tf.ensure_shape(value.dense_shape, (2,))
    return tf.SparseTensor(value.indices, value.values, shape)


def _no_weights() -> tf.Tensor:
    return tf.constant([], tf.float32)


def _check_kind(ids: Any, weights: Any, owner: str) -> None:
    if weights is None:
        return
    for kind in (tf.RaggedTensor, tf.SparseTensor):
        if isinstance(ids, kind) != isinstance(weights, kind):
            msg = (
                f"`weights` of {owner} must have the structure of the ids, "
                f"{type(ids).__name__}. Received: {type(weights).__name__}."
            )
            raise ValueError(msg)


def _check_shapes(ids: tf.TensorShape, weights: Any, owner: str) -> None:
    if not ids.is_compatible_with(weights):
        _raise_unequal(ids, weights, owner)


def _raise_unequal(ids: Any, weights: Any, owner: str) -> None:
    msg = (
        f"`weights` of {owner} must have the shape of the ids, {ids}. "
        f"Received: {weights}."
    )
    raise ValueError(msg)


def _same(
    values: tf.Tensor, theirs: tf.Tensor, mine: tf.Tensor, owner: str
) -> tf.Tensor:
    """Returns `values`, once two descriptions of structure are seen equal."""
    message = f"`weights` of {owner} must have the structure of the ids."
    if tf.executing_eagerly():
        if theirs.shape != mine.shape or not bool(
            tf.reduce_all(theirs == mine)
        ):
            msg = (
                f"{message} Received: {theirs.numpy()} for ids of "
                f"{mine.numpy()}."
            )
            raise ValueError(msg)
        return values
    with tf.control_dependencies(
        [tf.debugging.assert_equal(theirs, mine, message)]
    ):
        return tf.identity(values)
