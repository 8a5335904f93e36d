"""Lookups in branches of `tf.cond`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra
import embedra.dynamic_embedding as de


IDS = tf.constant([[1, 2]], tf.int64)


def make_layer(combiner):
    return embedra.layers.Embedding(
        3, combiner=combiner, embeddings_initializer="ones"
    )


def zeros(combiner):
    return tf.zeros([1, 3] if combiner else [1, 2, 3])


@pytest.mark.parametrize("training", [None, True])
@pytest.mark.parametrize("combiner", [None, "sum"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_lookup_in_one_branch_trains_when_it_is_taken(
    combiner, optimizer, training
):
    layer = make_layer(combiner)
    optimizer = keras.optimizers.get(optimizer)
    optimizer.learning_rate = 0.5

    @tf.function
    def step(is_taken):
        with tf.GradientTape() as tape:
            rows = tf.cond(
                is_taken,
                lambda: layer(IDS, training=training),
                lambda: zeros(combiner),
            )
            loss = tf.reduce_sum(rows)
        gradients = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply(gradients, layer.trainable_variables)

    step(tf.constant(False))
    assert layer.size() == 0
    step(tf.constant(True))
    assert layer.size() == 2
    moved = layer.table.lookup([1, 2]).numpy()
    assert (moved < 0.9).all()
    step(tf.constant(False))
    np.testing.assert_array_equal(layer.table.lookup([1, 2]).numpy(), moved)


@pytest.mark.parametrize("training", [None, True])
@pytest.mark.parametrize("combiner", [None, "mean"])
def test_lookups_in_both_branches(combiner, training):
    layer = make_layer(combiner)

    @tf.function
    def gradient(is_first):
        with tf.GradientTape() as tape:
            rows = tf.cond(
                is_first,
                lambda: layer(IDS, training=training),
                lambda: 2.0 * layer(IDS, training=training),
            )
            loss = tf.reduce_sum(rows)
        (slices,) = tape.gradient(loss, layer.trainable_variables)
        return slices.values

    one = 1.0 if combiner is None else 0.5
    np.testing.assert_allclose(gradient(tf.constant(True)), one)
    np.testing.assert_allclose(gradient(tf.constant(False)), 2.0 * one)


@pytest.mark.parametrize("devices", [None, ["/CPU:0"] * 3], ids=["1", "3"])
def test_a_lookup_of_a_variable_in_one_branch(devices):
    variable = de.Variable(
        dim=3, name="branch", initializer=1.0, devices=devices
    )
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(1.0))
    ids = IDS[0]

    @tf.function
    def step(is_taken):
        with tf.GradientTape() as tape:
            rows = tf.cond(
                is_taken,
                lambda: de.embedding_lookup(variable, ids),
                lambda: tf.zeros([2, 3]),
            )
            loss = tf.reduce_sum(rows)
        trainable = variable.trainable_of(None)
        gradient = tape.gradient(loss, trainable)
        optimizer.apply_gradients([(gradient, trainable)])

    step(tf.constant(False))
    assert int(variable.size()) == 0
    step(tf.constant(True))
    np.testing.assert_array_equal(variable.lookup([1, 2]), np.zeros((2, 3)))
    assert int(variable.size()) == 2
