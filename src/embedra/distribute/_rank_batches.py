"""Batches of a rank that go on, without rows, when its data have ended."""

from typing import Any, NamedTuple

import tensorflow as tf


_NONE = tf.type_spec_from_value(None)


class RankBatch(NamedTuple):
    """A batch of one rank.

    Attributes:
        present: Whether it is of the data; else they have ended before.
        batch: The batch, or one of no rows.
    """

    present: Any
    batch: Any


def lasting_batches(data: tf.data.Dataset) -> tf.data.Dataset:
    """Has batches without rows follow those of a dataset, without end.

    So a rank whose data have ended can take part in the steps of others.

    Args:
        data: Batches of this rank, of dense, ragged or sparse tensors in any
            structure.

    Returns:
        A dataset of `RankBatch`.

    Raises:
        TypeError: If nothing is known of a batch of no rows.

    Example:
        >>> import tensorflow as tf
        >>> batches = lasting_batches(tf.data.Dataset.range(3).batch(2))
        >>> [(bool(p), b.numpy().tolist()) for p, b in batches.take(3)]
        [(True, [0, 1]), (True, [2]), (False, [])]
    """
    # Datasets unpack plain tuples, also those of one.
    is_tuple = type(data.element_spec) is tuple

    @tf.autograph.experimental.do_not_convert
    def present(*parts: Any) -> RankBatch:
        batch = parts if is_tuple else parts[0]
        return RankBatch(tf.constant(True), _without_optionals(batch))

    own = data.map(present)
    structure = own.element_spec.batch

    @tf.autograph.experimental.do_not_convert
    def absent(_: Any) -> RankBatch:
        return RankBatch(tf.constant(False), empty_batch(structure))

    padding = tf.data.Dataset.from_tensors(0).map(absent).repeat()
    return own.concatenate(padding)


def _without_optionals(batch: Any) -> Any:
    """Has None in a batch for what Keras puts in the place of None."""
    return tf.nest.map_structure(
        lambda leaf: (
            None if isinstance(leaf, tf.experimental.Optional) else leaf
        ),
        batch,
    )


def empty_batch(structure: Any) -> Any:
    """Returns a batch of no rows.

    Args:
        structure: Specs of a batch.

    Returns:
        Tensors, of those specs but for the number of rows.

    Raises:
        TypeError: If one is of a kind of which nothing is known.

    Example:
        >>> import tensorflow as tf
        >>> empty_batch({"age": tf.TensorSpec([8, 3])})["age"].shape
        TensorShape([0, 3])
    """
    return tf.nest.map_structure(_empty, structure)


def _empty(spec: Any) -> Any:
    if isinstance(spec, tf.RaggedTensorSpec) and spec.shape.rank is not None:
        values = tf.zeros(_sizes(spec.shape[spec.ragged_rank :]), spec.dtype)
        ragged = values
        for _ in range(spec.ragged_rank):
            splits = tf.zeros([1], spec.row_splits_dtype)
            ragged = tf.RaggedTensor.from_row_splits(
                ragged, splits, validate=False
            )
        return ragged
    if isinstance(spec, tf.SparseTensorSpec) and spec.shape.rank is not None:
        return tf.SparseTensor(
            tf.zeros([0, spec.shape.rank], tf.int64),
            tf.zeros([0], spec.dtype),
            tf.constant(_sizes(spec.shape), tf.int64),
        )
    if isinstance(spec, tf.TensorSpec) and spec.shape.rank is not None:
        return tf.zeros(_sizes(spec.shape), spec.dtype)
    if is_none_spec(spec):
        return None
    msg = (
        "With several ranks, one whose data have ended takes part with batches "
        f"of no rows, but it is not known what that is for {spec}. Give data "
        "of dense, ragged or sparse tensors, of a known number of dimensions."
    )
    raise TypeError(msg)


def is_none_spec(spec: Any) -> bool:
    """Whether a spec is that of None, for which there is no public name.

    Args:
        spec: A spec.

    Example:
        >>> import tensorflow as tf
        >>> is_none_spec(tf.type_spec_from_value(None))
        True
    """
    return isinstance(spec, type(_NONE))


def _sizes(shape: Any) -> list[int]:
    """Sizes of no rows. One of 0 within a row would not let it be reshaped."""
    sizes = shape.as_list()
    return [0, *(size or 1 for size in sizes[1:])] if sizes else []


def rows_of_batch(batch: Any) -> tf.Tensor:
    """Returns how many rows a batch has: those of its first tensor with any.

    Args:
        batch: Dense, ragged or sparse tensors in any structure.

    Returns:
        Scalar, `int64`; 1 for a batch of scalars.

    Example:
        >>> import tensorflow as tf
        >>> int(rows_of_batch({"rate": tf.constant(0.1), "ids": tf.ones(3)}))
        3
    """
    for leaf in tf.nest.flatten(batch):
        if isinstance(leaf, tf.RaggedTensor):
            return tf.cast(leaf.nrows(), tf.int64)
        if isinstance(leaf, tf.SparseTensor):
            return leaf.dense_shape[0]
        if leaf is not None and leaf.shape.rank:
            return tf.shape(leaf, out_type=tf.int64)[0]
    return tf.constant(1, tf.int64)
