"""A small model in TF1 graphs, and what is in its table."""

import numpy as np
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra import _ops

from .states import make


v1 = tf.compat.v1

IDS = [1, 2, 2, 5]


class Model:
    """Rows of one table and a dense variable, in the graph that is current.

    Args:
        devices: Number of devices of the table.
        name: Name of the table.
        **kwargs: Further arguments of the variable.
    """

    def __init__(self, devices=1, name="user", **kwargs):
        self.user = make(devices, name=name, **kwargs)
        self.rows, self.trainable = de.embedding_lookup(
            self.user, IDS, return_trainable=True
        )
        self.dense = v1.get_variable(
            "dense", shape=(self.user.dim, 1), initializer=v1.ones_initializer()
        )
        step = v1.train.get_or_create_global_step()
        loss = tf.reduce_sum(tf.matmul(self.rows, self.dense) ** 2)
        optimizer = de.DynamicEmbeddingOptimizer(v1.train.AdamOptimizer(0.1))
        self.train = optimizer.minimize(loss, global_step=step)
        self.absent = self.user.lookup([77])
        self._columns = [_columns(table) for table in self.user.tables]

    def records(self, session):
        """Returns row, slots, frequency and last step of each key."""
        return {
            int(key): tuple(np.asarray(column[i]).tolist() for column in others)
            for key_column, *others in session.run(self._columns)
            for i, key in enumerate(key_column)
        }


def _columns(table):
    return _ops.table_export(
        table.resource_handle,
        tf.constant(0, tf.int64),
        tf.constant(10**6, tf.int64),
        dtype=table.dtype,
        dim=table.dim,
    )[:5]


def run(folder, steps, devices=1, hooks=(), **kwargs):
    """Trains in a monitored session, and saves every second step.

    Args:
        folder: Folder of the checkpoints, or None.
        steps: Number of steps.
        devices: Number of devices of the table.
        hooks: Hooks of the session.
        **kwargs: Further arguments of the variable.

    Returns:
        Records before and after, the dense variable after, and the initial row
        of an absent key.
    """
    with tf.Graph().as_default():
        model = Model(devices, **kwargs)
        with v1.train.MonitoredTrainingSession(
            checkpoint_dir=folder and str(folder),
            save_checkpoint_steps=2 if folder else None,
            save_checkpoint_secs=None,
            save_summaries_steps=None,
            log_step_count_steps=None,
            hooks=list(hooks),
        ) as session:
            before = model.records(session)
            for _ in range(steps):
                session.run(model.train)
            return (
                before,
                model.records(session),
                session.run(model.dense).tolist(),
                session.run(model.absent).tolist(),
            )
