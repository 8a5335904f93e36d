"""Small models over layers, and the data that they are trained with."""

import keras
import numpy as np
import tensorflow as tf


DIM = 3
WIDTH = 4

# All ids of `batches`.
IDS = np.arange(-6, 14)
START = keras.initializers.RandomUniform(-1.0, 1.0, seed=5)

# What is built of one table, of several, and of rows that are clipped.
TWO_DEVICES = {"devices": ["/CPU:0", "/CPU:0"]}
KINDS = {"one": {}, "two_devices": TWO_DEVICES, "max_norm": {"max_norm": 9.0}}


@keras.saving.register_keras_serializable(package="tests")
def remainder(ids):
    """The field of an id."""
    return tf.math.floormod(ids, 3)


@keras.saving.register_keras_serializable(package="tests")
def by_remainder(keys, shard_num):
    """A partitioner."""
    return tf.cast(tf.math.floormod(keys, shard_num), tf.int32)


def started(layer):
    """A layer with rows for all ids of `batches`."""
    if hasattr(layer, "params"):
        layer.params.upsert(IDS, start_rows(IDS))
    else:
        layer.table.assign(IDS, start_rows(IDS))
    return layer


def rows_of(layer):
    """The rows of all ids of `batches`."""
    table = layer.params if hasattr(layer, "params") else layer.table
    return table.lookup(IDS).numpy()


def start_rows(ids):
    """Rows that layers under comparison start with."""
    ids = np.asarray(ids)
    return np.sin(np.outer(ids, np.arange(1, DIM + 1))).astype(np.float32)


def batches(steps=4, seed=6, size=8):
    """Ids, of which some repeat in a batch, and labels."""
    generator = np.random.default_rng(seed)
    for _ in range(steps):
        ids = generator.integers(-6, 14, (size, WIDTH))
        yield ids, generator.normal(size=(size, 1)).astype(np.float32)


def dense():
    """A dense layer that always starts alike."""
    return keras.layers.Dense(
        1, kernel_initializer=keras.initializers.RandomNormal(seed=3)
    )


def network(layer):
    """A functional model over a layer of ids."""
    ids = keras.Input((WIDTH,), dtype="int64")
    return keras.Model(ids, dense()(keras.layers.Flatten()(layer(ids))))


def fit(model, optimizer, steps=4, **kwargs):
    """Trains for some steps; eagerly, which for few steps is the faster way.

    Returns:
        The losses.
    """
    if optimizer is not None:
        model.compile(optimizer, "mse", **{"run_eagerly": True, **kwargs})
    return [model.train_on_batch(*batch) for batch in batches(steps)]


def records(layer):
    """Everything that the tables of a layer hold, by key."""
    columns = [
        np.concatenate(column)
        for column in zip(
            *(
                chunk
                for table in layer.table_group.tables
                for chunk in table.export_chunks()
            ),
            strict=True,
        )
    ]
    order = np.argsort(columns[0])
    return [column[order] for column in columns]


def assert_same_records(one, other):
    """Fails unless two layers hold the same, slots and counters too."""
    for mine, theirs in zip(records(one), records(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)
