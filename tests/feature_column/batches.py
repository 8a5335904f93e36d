"""Columns, batches, and what a TF1 session makes of them."""

import numpy as np
import tensorflow as tf

import embedra
from embedra import feature_column as fc


v1 = tf.compat.v1

FEATURES = {
    "user": np.array([7, 8, 7], np.int64),
    "word": [["a", "b"], ["a", ""], ["", ""]],
    "age": np.array([33.0, 44.0, 55.0], np.float32),
}


def features():
    """Dense ids, sparse words and a number, in the graph that is current."""
    return {
        "user": tf.constant(FEATURES["user"]),
        "word": tf.sparse.from_dense(FEATURES["word"]),
        "age": tf.constant(FEATURES["age"]),
    }


def user_column(dimension=2, initializer=0.5, **kwargs):
    """A column of integers."""
    ids = fc.categorical_column_with_embedding("user", tf.int64)
    return fc.embedding_column(
        ids, dimension, initializer=initializer, **kwargs
    )


def word_column(dimension=2, initializer=0.5, **kwargs):
    """A column of strings."""
    ids = fc.categorical_column_with_embedding("word")
    return fc.embedding_column(
        ids, dimension, initializer=initializer, **kwargs
    )


def evaluate(make):
    """Runs what a function makes in a new TF1 graph.

    Args:
        make: Gives tensors.
    """
    with tf.Graph().as_default():
        tensors = make()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(v1.local_variables_initializer())
            session.run(v1.tables_initializer())
            return session.run(tensors)


def train(make, steps, folder=None, optimizer=None):
    """Pulls a tensor to 1 in a monitored session.

    Args:
        make: Gives the tensor, and others to return.
        steps: Number of steps.
        folder: Folder of the checkpoints, or None.
        optimizer: Gives an optimizer; plain gradient descent by default.

    Returns:
        What the tensors were before, and after.
    """
    with tf.Graph().as_default():
        made = make()
        step = v1.train.get_or_create_global_step()
        inner = (
            optimizer() if optimizer else v1.train.GradientDescentOptimizer(0.1)
        )
        operation = embedra.DynamicEmbeddingOptimizer(inner).minimize(
            tf.reduce_sum((made[0] - 1.0) ** 2), global_step=step
        )
        with v1.train.MonitoredTrainingSession(
            checkpoint_dir=folder and str(folder),
            save_summaries_steps=None,
            log_step_count_steps=None,
        ) as session:
            before = session.run(made)
            for _ in range(steps):
                session.run(operation)
            return before, session.run(made)
