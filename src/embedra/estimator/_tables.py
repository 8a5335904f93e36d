"""The tables in a graph."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from embedra.table import Table, TableGroup


class SavedState(NamedTuple):
    """Tables that checkpoints save as one.

    Attributes:
        key: Name in checkpoints.
        tables: The tables.
    """

    key: str
    tables: Sequence[Table]


def saved_states() -> list[SavedState]:
    """Returns what the checkpoints of the current graph hold of tables."""
    saved = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.SAVEABLE_OBJECTS)
    return [
        SavedState(one.key, one.group.tables)
        for one in saved
        if isinstance(getattr(one, "group", None), TableGroup)
    ]


def add_size_summaries(train_op: Any) -> None:
    """Has the summaries of the current graph tell how many keys tables hold.

    Args:
        train_op: After which they are counted.
    """
    for state in saved_states():
        with tf.control_dependencies([train_op]):
            size = tf.add_n([table.size() for table in state.tables])
        tf.compat.v1.summary.scalar(f"table_size/{state.key}", size)
