"""What new rows of a variable start from."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import embedra.dynamic_embedding as de


v1 = tf.compat.v1
RANDOM = {
    "keras normal": keras.initializers.RandomNormal(stddev=0.5),
    "keras glorot": keras.initializers.GlorotUniform(),
    "keras he": keras.initializers.HeNormal(),
    "keras class": keras.initializers.RandomUniform,
    "keras name": "uniform",
    "keras config": keras.initializers.serialize(
        keras.initializers.TruncatedNormal(stddev=0.5)
    ),
    "tf_keras": tf_keras.initializers.RandomNormal(stddev=0.5),
    "tf_keras scaling": tf_keras.initializers.VarianceScaling(),
    "tf.initializers": tf.initializers.RandomNormal(stddev=0.5),
    "tf random_normal": tf.random_normal_initializer(stddev=0.5),
    "tf random_uniform": tf.random_uniform_initializer(-1e-3, 1e-3),
    "v1 random_normal": v1.random_normal_initializer(stddev=0.5),
    "v1 truncated": v1.truncated_normal_initializer(stddev=0.5),
    "v1 scaling": v1.variance_scaling_initializer(),
    "partial of tf.random": functools.partial(
        tf.random.uniform, minval=1, maxval=2
    ),
    "partial of a class": functools.partial(
        keras.initializers.RandomNormal, stddev=2.0
    ),
    "partial of an object": functools.partial(
        keras.initializers.RandomNormal(), dtype="float32"
    ),
    "callable": lambda shape: tf.random.normal(shape),
}
CONSTANT = {
    "none": (None, 0.0),
    "number": (0.5, 0.5),
    "row": (np.array([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]),
    "list": ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
    "tensor": (tf.constant([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]),
    "v1 constant": (v1.constant_initializer(0.25), 0.25),
    "v1 zeros": (v1.zeros_initializer(), 0.0),
    "tf ones": (tf.ones_initializer(), 1.0),
    "keras constant": (keras.initializers.Constant(2.0), 2.0),
    "no argument": (lambda: 3.0, 3.0),
}


def start_of(variable, ids):
    """The rows that ids have after a training lookup."""
    return de.embedding_lookup(variable, ids).numpy()


@pytest.mark.parametrize("name", RANDOM)
def test_i01_i02_random_rows_differ_by_id_and_column(name):
    variable = de.Variable(dim=3, name="random", initializer=RANDOM[name])
    rows = start_of(variable, np.arange(100))
    assert len(np.unique(rows)) > 290
    # A row is its id's, not that of a place in a batch.
    again = start_of(variable, [7, 5, 99])
    np.testing.assert_array_equal(again, rows[[7, 5, 99]])


@pytest.mark.parametrize("name", sorted(set(RANDOM) - {"callable"}))
def test_l01_rows_are_the_same_in_any_batch_and_before_training(name):
    first, second = (
        de.Variable(
            dim=3,
            name="same",
            initializer=RANDOM[name],
            devices=devices,
        )
        for devices in (None, ["/CPU:0"] * 3)
    )
    forwards = start_of(first, [1, 2, 3])
    np.testing.assert_array_equal(start_of(first, [3, 2, 1]), forwards[::-1])
    np.testing.assert_array_equal(first.lookup([2, 2])[1], forwards[1])
    assert second.tables[0].seed == second.tables[2].seed


@pytest.mark.parametrize("name", CONSTANT)
def test_constant_rows(name):
    initializer, expected = CONSTANT[name]
    variable = de.Variable(dim=3, name="constant", initializer=initializer)
    rows = start_of(variable, [[1, 2], [3, 1]])
    np.testing.assert_array_equal(rows, np.broadcast_to(expected, (2, 2, 3)))


def test_two_variables_of_one_initializer_start_differently():
    initializer = keras.initializers.RandomNormal()
    rows = [
        start_of(de.Variable(dim=3, name=name, initializer=initializer), [1, 2])
        for name in ("one", "other")
    ]
    assert np.abs(rows[0] - rows[1]).min() > 0


def test_the_distribution_is_the_initializers():
    variable = de.Variable(
        dim=4,
        name="moments",
        initializer=v1.random_normal_initializer(mean=1.0, stddev=0.5, seed=3),
    )
    rows = variable.lookup(np.arange(10_000)).numpy()
    assert abs(rows.mean() - 1.0) < 0.01
    assert abs(rows.std() - 0.5) < 0.01


@pytest.mark.parametrize(
    ("initializer", "message"),
    [
        ([1.0, 2.0], "width of a row, 3"),
        (np.ones((5, 3)), "for given keys"),
        (keras.initializers.Orthogonal(), "whole matrix"),
        ("no such initializer", "no such initializer"),
    ],
)
def test_initializers_that_cannot_start_rows_are_refused(initializer, message):
    with pytest.raises(ValueError, match=message):
        de.Variable(dim=3, name="refused", initializer=initializer)
