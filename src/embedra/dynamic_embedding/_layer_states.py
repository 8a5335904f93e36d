"""Tables of Keras layers, which `tf.compat.v1.train.Saver` does not know of."""

from typing import Any

import tensorflow as tf

from embedra.optimizers import TableVariable

from ._shards import ShardedTables, default_partition_fn
from ._sharing import unique_name
from ._state import VariableState


_KEYS: Any = tf.compat.v1.GraphKeys


def save_tables_of_layers(graph: Any) -> None:
    """Has the savers of a TF1 graph that are built from now on save them.

    Args:
        graph: The graph. Variables of it that stand for rows of a table lead to
            the tables; those of `de.Variable`s it has already.
    """
    saved = {
        id(table)
        for state in graph.get_collection(_KEYS.SAVEABLE_OBJECTS)
        for table in getattr(state, "tables", ())
    }
    for variable in graph.get_collection(_KEYS.GLOBAL_VARIABLES):
        rows = getattr(variable, "table_variable", None)
        if not isinstance(rows, TableVariable) or id(rows.table) in saved:
            continue
        saved.add(id(rows.table))
        tables = ShardedTables([rows.table], default_partition_fn)
        state = VariableState(unique_name(rows.table.name), tables)
        graph.add_to_collection(_KEYS.SAVEABLE_OBJECTS, state)
