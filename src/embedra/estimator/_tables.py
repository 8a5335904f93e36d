"""How many keys the tables of a graph hold."""

from typing import Any

import tensorflow as tf

from embedra.train import saved_states


def add_size_summaries(train_op: Any) -> None:
    """Has the summaries of the current graph tell how many keys tables hold.

    Args:
        train_op: After which they are counted.
    """
    for state in saved_states():
        with tf.control_dependencies([train_op]):
            size = tf.add_n([table.size() for table in state.tables])
        tf.compat.v1.summary.scalar(f"table_size/{state.key}", size)
