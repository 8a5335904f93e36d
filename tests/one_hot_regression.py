"""A regression over an embedding: a dense matrix, or a de.Variable.

The dense one is looked up by one-hot products, which sum the gradients of
repeated ids before an optimizer sees them, as tables do.
"""

import numpy as np
import tensorflow as tf

import embedra.dynamic_embedding as de


VOCABULARY = 7
DIM = 3
WIDTH = 4
# Every id is in every batch, some of them several times.
IDS = np.array([[0, 1, 2, 3], [4, 5, 6, 6], [6, 1, 1, 1]], np.int64)
LABELS = np.array([1.0, -2.0, 3.0], np.float32)


def start_rows():
    """Rows that both start with."""
    generator = np.random.default_rng(5)
    return generator.normal(size=(VOCABULARY, DIM)).astype(np.float32)


def start_kernel():
    """The dense weights that both start with."""
    generator = np.random.default_rng(6)
    return generator.normal(size=(WIDTH * DIM, 1)).astype(np.float32)


def loss_of(embedded, kernel):
    """The loss of looked-up rows."""
    scores = tf.reshape(embedded, (-1, WIDTH * DIM)) @ kernel
    return tf.reduce_mean((scores[:, 0] - LABELS) ** 2)


class Regression:
    """A model, executed eagerly or in a function.

    Args:
        dense: Whether the rows are a dense matrix.
        **options: Of the `de.Variable`.
    """

    def __init__(self, *, dense, **options):
        self.kernel = tf.Variable(start_kernel(), name="kernel")
        self.dense = dense
        if dense:
            self.matrix = tf.Variable(start_rows(), name="matrix")
        else:
            self.table = de.Variable(dim=DIM, **options)
            self.table.upsert(np.arange(VOCABULARY), start_rows())

    def loss(self):
        """The loss, and the variables in it."""
        if self.dense:
            embedded = tf.tensordot(tf.one_hot(IDS, VOCABULARY), self.matrix, 1)
            return loss_of(embedded, self.kernel), [self.matrix, self.kernel]
        embedded, trainable = de.embedding_lookup(
            self.table, IDS, return_trainable=True
        )
        return loss_of(embedded, self.kernel), [trainable, self.kernel]

    def rows(self):
        """All rows."""
        if self.dense:
            return self.matrix.numpy()
        return self.table.lookup(np.arange(VOCABULARY)).numpy()

    def step(self, optimizer):
        """Makes a step by a tape."""
        with tf.GradientTape() as tape:
            loss, variables = self.loss()
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(list(zip(gradients, variables, strict=True)))
