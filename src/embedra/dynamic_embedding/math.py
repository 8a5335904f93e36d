"""Functions of sparse tensors, as programs written for TFRA call them.

They are TensorFlow's own, which run wherever TensorFlow does.
"""

from typing import Any

import tensorflow as tf


__all__ = ["sparse_fill_empty_rows", "sparse_reshape", "sparse_segment_sum"]


def sparse_segment_sum(
    data: Any,
    indices: Any,
    segment_ids: Any,
    name: str | None = None,
    num_segments: Any = None,
) -> tf.Tensor:
    """Sums rows of a tensor by segments, as `tf.sparse.segment_sum`.

    Args:
        data: Tensor whose rows are summed.
        indices: Row of each summand.
        segment_ids: Segment of each summand, in ascending order.
        name: Name of the op.
        num_segments: Number of segments, by default as many as needed.

    Returns:
        A row for each segment.

    Example:
        >>> from embedra.dynamic_embedding import math
        >>> data = tf.constant([[1, 2], [3, 4]])
        >>> math.sparse_segment_sum(data, [0, 1], [0, 0]).numpy().tolist()
        [[4, 6]]
    """
    return tf.sparse.segment_sum(
        data, indices, segment_ids, num_segments=num_segments, name=name
    )


def sparse_fill_empty_rows(
    sp_input: tf.SparseTensor, default_value: Any, name: str | None = None
) -> tuple[tf.SparseTensor, tf.Tensor]:
    """Gives empty rows a value, as `tf.sparse.fill_empty_rows`.

    Args:
        sp_input: Sparse tensor of rank 2.
        default_value: The value.
        name: Name of the op.

    Returns:
        The tensor without empty rows, and which rows were empty.

    Example:
        >>> from embedra.dynamic_embedding import math
        >>> ids = tf.SparseTensor([[1, 0]], [7], [2, 1])
        >>> filled, was_empty = math.sparse_fill_empty_rows(ids, 0)
        >>> filled.values.numpy().tolist(), was_empty.numpy().tolist()
        ([0, 7], [True, False])
    """
    filled, was_empty = tf.sparse.fill_empty_rows(
        sp_input, default_value, name=name
    )
    return filled, was_empty


def sparse_reshape(
    sp_input: tf.SparseTensor, shape: Any, name: str | None = None
) -> tf.SparseTensor:
    """Changes the shape of a sparse tensor, as `tf.sparse.reshape`.

    Args:
        sp_input: The tensor.
        shape: Its new shape, in which one dimension may be -1.
        name: Name of the op.

    Returns:
        The same values in the new shape.

    Example:
        >>> from embedra.dynamic_embedding import math
        >>> ids = tf.SparseTensor([[1, 0]], [7], [2, 2])
        >>> math.sparse_reshape(ids, [4]).indices.numpy().tolist()
        [[2]]
    """
    return tf.sparse.reshape(sp_input, shape, name=name)
