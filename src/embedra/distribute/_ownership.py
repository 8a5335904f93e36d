"""owned: which keys of a table that is split are this rank's."""

from typing import Any

import tensorflow as tf

from embedra import _ops
from embedra._typing import Tensor

from ._communicator import Communicator


def owned(keys: Any, communicator: Communicator | None) -> Tensor:
    """Tells which keys are this rank's in a table that is split by key.

    A hash of a key tells its rank, whatever the table. Lookups send keys there,
    and a rank keeps those of a checkpoint that are its own.

    Args:
        keys: `int64`, any shape.
        communicator: Of the ranks that hold the table, or None for a table that
            is whole.

    Returns:
        `bool`, of the shape of the keys.

    Example:
        >>> from embedra.distribute import communicator
        >>> owned([3, -1], communicator()).numpy().tolist()
        [True, True]
    """
    keys = tf.convert_to_tensor(keys, tf.int64)
    if communicator is None or communicator.size == 1:
        return tf.ones_like(keys, tf.bool)
    # Distinct keys come rank by rank.
    _, splits, index = _ops.route_keys(
        tf.reshape(keys, (-1,)), num_parts=communicator.size
    )
    end = tf.cumsum(splits)[communicator.rank]
    start = end - splits[communicator.rank]
    index = tf.cast(tf.reshape(index, tf.shape(keys)), tf.int64)
    return (index >= start) & (index < end)
