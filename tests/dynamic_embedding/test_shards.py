"""A variable over several devices is one over one device."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra.optimizers import RowwiseAdagrad
from numerics import assert_allclose


OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.1),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "adagrad": lambda: keras.optimizers.Adagrad(0.1),
    "rowwise adagrad": lambda: RowwiseAdagrad(0.1),
    "adam": lambda: keras.optimizers.Adam(0.1),
    "adamw": lambda: keras.optimizers.AdamW(0.1, weight_decay=0.1),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.1),
    "ftrl": lambda: keras.optimizers.Ftrl(0.1),
    "nadam": lambda: keras.optimizers.Nadam(0.1),
    "lion": lambda: keras.optimizers.Lion(0.1),
    "clipnorm": lambda: keras.optimizers.SGD(0.1, clipnorm=0.1),
    "global clipnorm": lambda: keras.optimizers.Adam(0.1, global_clipnorm=0.1),
    "accumulated": lambda: keras.optimizers.Adam(
        0.1, gradient_accumulation_steps=2
    ),
}
BATCHES = [[5, -1, 5, 2**40], [[-7, 3], [5, -1]], [0], [], [9, 3, 5, 5]]


def variable(devices):
    uniform = keras.initializers.RandomUniform(seed=3)
    return de.Variable(dim=3, name="user", devices=devices, initializer=uniform)


def trained(devices, optimizer, wrap):
    user = variable(devices)
    optimizer = de.DynamicEmbeddingOptimizer(optimizer)

    @wrap
    def step(ids):
        with tf.GradientTape() as tape:
            rows, trainable = de.embedding_lookup(
                user, ids, return_trainable=True
            )
            loss = tf.reduce_sum(tf.sin(3.0 * rows))
        gradients = tape.gradient(loss, [trainable])
        optimizer.apply_gradients(zip(gradients, [trainable], strict=True))

    for batch in BATCHES:
        step(tf.constant(batch, tf.int64))
    return user


def by_key(variable):
    keys, rows = variable.export()
    order = np.argsort(keys)
    return keys.numpy()[order], rows.numpy()[order]


def eager(function):
    return function


IN_FUNCTIONS = ["sgd", "adam", "nadam", "clipnorm", "accumulated"]


@pytest.mark.parametrize(
    ("name", "wrap"),
    [(name, eager) for name in OPTIMIZERS]
    + [(name, tf.function(reduce_retracing=True)) for name in IN_FUNCTIONS],
)
def test_three_devices_train_as_one(name, wrap):
    make = OPTIMIZERS[name]
    keys, rows = by_key(trained(None, make(), wrap))
    keys_of_3, rows_of_3 = by_key(trained(["/CPU:0"] * 3, make(), wrap))
    np.testing.assert_array_equal(keys_of_3, keys)
    assert_allclose(rows_of_3, rows)
    moved = np.any(rows != variable(None).lookup(keys).numpy(), axis=1)
    # The last batch of five waits for another, if two are accumulated.
    assert moved.tolist() == [name != "accumulated" or k != 9 for k in keys]


@pytest.mark.parametrize("name", ["sgd", "adam", "nadam"])
def test_plain_optimizers_train_three_devices_as_one(name):
    ids = tf.constant([5, -1, 5], tf.int64)
    results = []
    for devices in (None, ["/CPU:0"] * 3):
        user, optimizer = variable(devices), OPTIMIZERS[name]()
        for _ in range(2):
            with tf.GradientTape() as tape:
                rows, trainable = de.embedding_lookup(
                    user, ids, return_trainable=True
                )
                loss = tf.reduce_sum(rows**2)
            gradient = tape.gradient(loss, trainable)
            optimizer.apply_gradients([(gradient, trainable)])
        results.append(user.lookup(ids).numpy())
    assert_allclose(results[1], results[0])
    assert not np.allclose(results[0], variable(None).lookup(ids))


def test_gradients_are_rows_at_positions_that_split_by_table():
    user = variable(["/CPU:0"] * 3)
    ids = tf.range(20, dtype=tf.int64)
    factors = tf.random.normal((20, 3))
    with tf.GradientTape() as tape:
        rows, trainable = de.embedding_lookup(user, ids, return_trainable=True)
        loss = tf.reduce_sum(rows * factors)
    gradient = tape.gradient(loss, trainable)
    np.testing.assert_array_equal(gradient.values, factors)
    assert len(np.unique(gradient.indices)) == 20
    assert int(gradient.dense_shape[0]) > int(tf.reduce_max(gradient.indices))
    parts = user.shards.split_gradient(gradient)
    assert [table for table, _ in parts] == user.tables
    assert [len(part.indices) for _, part in parts] == [
        int(user.size(i)) for i in range(3)
    ]


def test_a_loss_scale_reads_gradients_of_several_devices():
    user = variable(["/CPU:0"] * 3)
    ids = tf.constant([5, -1, 5], tf.int64)
    start = user.lookup(ids).numpy()
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1.0))
    with tf.GradientTape() as tape:
        rows, trainable = de.embedding_lookup(user, ids, return_trainable=True)
        loss = optimizer.scale_loss(tf.reduce_sum(rows))
    gradient = tape.gradient(loss, trainable)
    optimizer.apply_gradients([(gradient, trainable)])
    assert_allclose(user.lookup(ids), start - [[2.0], [1.0], [2.0]], atol=1e-5)


def test_default_partition_spreads_ids_of_any_pattern():
    for ids in (
        np.arange(3000),
        -np.arange(3000),
        np.arange(3000) * 1024,
        np.arange(3000) << 40,
    ):
        shards = de.default_partition_fn(tf.constant(ids), 3).numpy()
        assert shards.dtype == np.int32
        assert set(shards) == {0, 1, 2}
        assert np.bincount(shards).min() > 850


def test_default_partition_is_the_documented_hash():
    """Values of splitmix64 by its definition, in Python's own integers."""
    mask = 2**64 - 1
    for key in (0, 1, -1, 2**62 + 12345, -(2**63)):
        bits = key & mask
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & mask
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & mask
        bits ^= bits >> 31
        signed = bits - 2**64 if bits >= 2**63 else bits
        found = int(de.default_partition_fn(tf.constant([key], tf.int64), 7)[0])
        assert found == signed % 7


def test_a_partitioner_decides_where_rows_are():
    def last_digit(keys, shard_num):
        assert shard_num == 3
        return tf.cast(keys % 10, tf.int32)

    user = de.Variable(
        dim=1, name="user", devices=["/CPU:0"] * 3, partitioner=last_digit
    )
    de.embedding_lookup(user, [10, 20, 30, 11, 12, 22])
    assert [int(user.size(i)) for i in range(3)] == [3, 1, 2]
    keys = [t.export_chunks() for t in user.tables]
    assert sorted(next(keys[2]).keys) == [12, 22]


def test_rows_start_the_same_on_any_number_of_devices():
    ids = np.random.default_rng(0).integers(-(2**62), 2**62, 100)
    rows = [
        de.embedding_lookup(variable(devices), ids).numpy()
        for devices in (None, ["/CPU:0"] * 2, ["/CPU:0"] * 5)
    ]
    np.testing.assert_array_equal(rows[1], rows[0])
    np.testing.assert_array_equal(rows[2], rows[0])
    assert len(np.unique(rows[0])) == 300


def test_python_initializers_work_over_devices():
    user = de.Variable(
        dim=2,
        name="user",
        devices=["/CPU:0"] * 3,
        initializer=lambda shape, keys: tf.cast(  # noqa: ARG005
            tf.stack([keys, 2 * keys], -1), tf.float32
        ),
    )
    rows = de.embedding_lookup(user, [[3, 4], [5, 3]])
    assert_allclose(rows, [[[3, 6], [4, 8]], [[5, 10], [3, 6]]])
