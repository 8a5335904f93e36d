"""A small click model in a TF1 graph."""

import numpy as np
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra import train


v1 = tf.compat.v1

IDS = np.arange(12).reshape(6, 2)
LABELS = np.array([0, 1, 1, 0, 1, 0])


def logits_of(users, ids):
    """One number for each example, of rows and a dense variable."""
    rows = de.embedding_lookup(users, ids)
    weights = v1.get_variable(
        "weights", (2, 1), initializer=v1.ones_initializer()
    )
    return tf.reshape(tf.matmul(rows, weights), [-1])


class Model:
    """Trains on one batch at a time, in the graph that is current.

    Args:
        optimizer: What trains; Adam by default.
        data: Data set of pairs of ids and labels.
    """

    def __init__(self, optimizer=None, data=None):
        if data is None:
            data = tf.data.Dataset.from_tensor_slices((IDS[:, 0], LABELS))
            data = data.batch(3).repeat()
        ids, labels = v1.data.make_one_shot_iterator(data).get_next()
        self.users = de.get_variable("users", dim=2, initializer=0.1)
        self.global_step = v1.train.get_or_create_global_step()
        logits = logits_of(self.users, ids)
        self.loss = tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(
                tf.cast(labels, tf.float32), logits
            )
        )
        optimizer = optimizer or train.AdamOptimizer(0.1)
        self.train = optimizer.minimize(self.loss, global_step=self.global_step)
        self.size = self.users.size()
