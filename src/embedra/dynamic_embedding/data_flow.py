"""Functions that part and join batches, as programs written for TFRA call them.

They are TensorFlow's own.
"""

from typing import Any

import tensorflow as tf


__all__ = ["dynamic_partition", "dynamic_stitch"]


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[tf.Tensor]:
    """Parts a tensor, as `tf.dynamic_partition`.

    Args:
        data: The tensor.
        partitions: Part of each of its elements, `int32`.
        num_partitions: Number of parts.
        name: Name of the op.

    Returns:
        The parts.

    Example:
        >>> from embedra.dynamic_embedding import data_flow
        >>> parts = data_flow.dynamic_partition([5, 6, 7], [0, 1, 0], 2)
        >>> [part.numpy().tolist() for part in parts]
        [[5, 7], [6]]
    """
    return list(
        tf.dynamic_partition(data, partitions, num_partitions, name=name)
    )


def dynamic_stitch(
    indices: Any, data: Any, use_fast: bool = True, name: str | None = None
) -> tf.Tensor:
    """Joins tensors, as `tf.dynamic_stitch`.

    Args:
        indices: For each tensor where its elements go, `int32`.
        data: The tensors.
        use_fast: Accepted: there is one way, which is fast.
        name: Name of the op.

    Returns:
        The joined tensor.

    Example:
        >>> from embedra.dynamic_embedding import data_flow
        >>> joined = data_flow.dynamic_stitch([[0, 2], [1]], [[5, 7], [6]])
        >>> joined.numpy().tolist()
        [5, 6, 7]
    """
    del use_fast
    return tf.dynamic_stitch(indices, data, name=name)
