"""The tables that checkpoints of a graph hold."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from embedra.table import Table, TableGroup


_V1: Any = tf.compat.v1


class SavedState(NamedTuple):
    """Tables that checkpoints save as one.

    Attributes:
        key: Name in checkpoints.
        tables: The tables.
    """

    key: str
    tables: Sequence[Table]


def saved_states() -> list[SavedState]:
    """Returns what checkpoints of the graph that is current hold of tables."""
    saved = _V1.get_collection(_V1.GraphKeys.SAVEABLE_OBJECTS)
    return [
        SavedState(one.key, one.group.tables)
        for one in saved
        if isinstance(getattr(one, "group", None), TableGroup)
    ]
