"""Checkpoints, under the names that TFRA gives them."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from ._layer_states import save_tables_of_layers


__all__ = ["DECheckpoint", "DEHvdSaver"]


class DECheckpoint(tf.train.Checkpoint):
    """A `tf.train.Checkpoint`, which knows of `de.Variable` as it is.

    Its files are the same, and `tf.train.CheckpointManager` takes it.

    Example:
        >>> import tempfile, embedra.dynamic_embedding as de
        >>> user = de.Variable(dim=2, name="user")
        >>> user.upsert([7], [[1.0, 2.0]])
        >>> checkpoint = de.train.DECheckpoint(user=user)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = checkpoint.save(folder + "/model")
        ...     user.clear()
        ...     _ = checkpoint.restore(path)
        >>> user.lookup([7]).numpy().tolist()
        [[1.0, 2.0]]
    """


class DEHvdSaver(tf.compat.v1.train.Saver):
    """A `tf.compat.v1.train.Saver` that passes over what only stands for rows.

    By default it saves all variables and tables of the graph, as that one does,
    which knows of `de.Variable`s, but not of the tables of Keras layers.
    In a list of variables `de.Variable` may appear, and the trainables of
    lookups are left out: they hold nothing.

    Args:
        var_list: As for `tf.compat.v1.train.Saver`.
        *args: As for `tf.compat.v1.train.Saver`.
        **kwargs: As for `tf.compat.v1.train.Saver`.
    """

    def __init__(self, var_list: Any = None, *args: Any, **kwargs: Any) -> None:
        self._saves_all = var_list is None
        if isinstance(var_list, Mapping):
            var_list = {
                name: variable
                for name, variable in var_list.items()
                if not hasattr(variable, "table_variable")
            }
        elif var_list is not None:
            var_list = [
                variable
                for variable in var_list
                if not hasattr(variable, "table_variable")
            ]
        super().__init__(var_list, *args, **kwargs)

    def build(self) -> None:
        """Makes the operations that save and restore; see `Saver.build`."""
        if self._saves_all and not tf.executing_eagerly():
            save_tables_of_layers(tf.compat.v1.get_default_graph())
        super().build()
