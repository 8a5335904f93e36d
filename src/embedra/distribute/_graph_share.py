"""The part of all examples that this rank's batch has, in a TF1 graph."""

from typing import Any

import tensorflow as tf

from ._communicator import Communicator


_COLLECTION = "embedra/batch_share"


def set_graph_share(share: Any) -> None:
    """Has gradients in the current TF1 graph weighed by a part of all examples.

    `sharded_rows`, `reduce_gradients` and optimizers go by it where they are
    not told of another. To be set before the model is built.

    Args:
        share: This rank's part, see `batch_share`; scalar, `float32`. It is 0
            for a batch without rows, whose gradients count as 0 also where they
            are no numbers.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default():
        ...     set_graph_share(tf.constant(0.25))
        ...     graph_share().op.type
        'Const'
    """
    tf.compat.v1.get_collection_ref(_COLLECTION)[:] = [share]


def graph_share() -> Any:
    """Returns what `set_graph_share` has set; None elsewhere.

    Example:
        >>> graph_share() is None
        True
    """
    if tf.executing_eagerly():
        return None
    # A function's graph begins with a copy of the outer graph's collections.
    found = tf.compat.v1.get_collection(_COLLECTION)
    return found[0] if found else None


def default_share(communicator: Communicator) -> Any:
    """Returns the part of all examples where nobody tells of it.

    Args:
        communicator: Of the ranks.

    Example:
        >>> from embedra.distribute import communicator
        >>> default_share(communicator())
        1.0
    """
    share = graph_share()
    return 1.0 / communicator.size if share is None else share
