"""State of variables, in a form that can be compared."""

import numpy as np
import tensorflow as tf

import embedra.dynamic_embedding as de


CPU = "/CPU:0"


def make(devices=1, name="user", dim=2, **kwargs):
    """Makes a variable with random initial rows."""
    kwargs.setdefault("initializer", "uniform")
    return de.Variable(dim=dim, name=name, devices=[CPU] * devices, **kwargs)


def train(variable, optimizer, steps, ids=(1, 2, 2, 5, 6, 9)):
    """Makes steps that differ by their number of lookups of a key."""
    for _ in range(steps):
        with tf.GradientTape() as tape:
            rows, trainable = de.embedding_lookup(
                variable, list(ids), return_trainable=True
            )
            loss = tf.reduce_sum(tf.cast(rows, tf.float32) ** 2)
        gradients = tape.gradient(loss, [trainable])
        optimizer.apply_gradients(zip(gradients, [trainable], strict=True))


def records_of(variable):
    """Returns row, slots, frequency and last step of each key."""
    return {
        int(key): tuple(np.asarray(column[i]).tolist() for column in others)
        for table in variable.tables
        for key_column, *others in table.export_chunks()
        for i, key in enumerate(key_column)
    }
