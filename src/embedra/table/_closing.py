"""close_table: frees a native table whose Python object is gone."""

import threading

import tensorflow as tf

from embedra import _ops


def close_table(handle: tf.Tensor) -> None:
    """Frees a table's memory; whoever still has the handle gets errors.

    Args:
        handle: Of the table.
    """
    # A collection may come at any time: also while a function is traced, which
    # the scope leaves, or a TF1 graph is built, which only a new thread does.
    with tf.init_scope():
        if tf.executing_eagerly():
            _ops.table_close(handle)
            return
    threading.Thread(target=_ops.table_close, args=(handle,)).start()
