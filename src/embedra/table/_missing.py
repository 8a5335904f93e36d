"""create_missing: rows of absent keys, from an initializer in Python."""

from typing import Any

import tensorflow as tf

from embedra import _ops

from ._initializers import new_rows


def create_missing(table: Any, keys: tf.Tensor) -> tf.Tensor:
    """Creates absent keys of a table whose initializer is a Python function.

    Args:
        table: The table.
        keys: Keys, `int64`, any shape.

    Returns:
        The keys; in a TF1 graph they come after the creation.
    """
    missing = _ops.table_missing(table.resource_handle, tf.reshape(keys, (-1,)))
    rows = new_rows(
        table.initializer, missing, table.dim, tf.as_dtype(table.dtype)
    )
    if table.bound.max_capacity:
        # The whole batch, so that no key of it is dropped for another. The
        # rows of those that are there are not looked at.
        flat = tf.reshape(keys, (-1,))
        unused = tf.zeros((tf.size(flat), table.dim), rows.dtype)
        missing = tf.concat([missing, flat], axis=0)
        rows = tf.concat([rows, unused], axis=0)
    created = _ops.table_assign(
        [table.resource_handle],
        [missing],
        [rows],
        dims=[table.dim],
        only_missing=True,
    )
    if created is None:
        return keys
    with tf.control_dependencies([created]):
        return tf.identity(keys)
