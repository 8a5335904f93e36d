"""Gradients: tapes, `tf.function`, shared layers, repeats, frozen layers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.layers import Embedding

from .reference import (
    DenseTwin,
    assert_close,
    assert_same_records,
    embedding_with,
    every_key_in_every_batch,
    fit,
    fit_twin,
    network,
    network_and_twin,
    random_rows,
    records_of,
    repeatable,
    rows_of,
)


def _eager(lookup):
    return lookup


def _function(lookup):
    return tf.function(lookup)


def _nested_function(lookup):
    inner = tf.function(lookup)
    return tf.function(lambda ids: inner(ids) * 1.0)


@pytest.mark.parametrize("wrap", [_eager, _function, _nested_function])
def test_f01_a_tape_outside_gives_the_gradient(wrap):
    ids = tf.constant([3, 1, 3], tf.int64)
    layer = embedding_with([1, 2, 3], random_rows(3, 2))
    start = rows_of(layer, [1, 2, 3])
    factors = np.float32([[1, 10], [2, 20], [4, 40]])
    lookup = wrap(lambda ids: layer(ids, training=True))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(lookup(ids) * factors)
    (gradient,) = tape.gradient(loss, layer.trainable_variables)
    assert isinstance(gradient, tf.IndexedSlices)
    np.testing.assert_array_equal(gradient.values, factors)

    optimizer = keras.optimizers.SGD(0.5)
    optimizer.apply([gradient], layer.trainable_variables)
    summed = np.float32([[2, 20], [0, 0], [5, 50]])
    assert_close(rows_of(layer, [1, 2, 3]), start - 0.5 * summed)


def test_f01_a_tape_inside_a_function_gives_the_same_update():
    layer = embedding_with([1, 2], random_rows(2, 2))
    start = rows_of(layer, [1, 2])
    optimizer = keras.optimizers.SGD(0.5)
    optimizer.build(layer.trainable_variables)

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(ids, training=True) * [1.0, 10.0])
        gradients = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply(gradients, layer.trainable_variables)
        return loss

    for _ in range(3):
        step(tf.constant([2, 2], tf.int64))
    assert_close(rows_of(layer, [1]), start[:1])
    assert_close(rows_of(layer, [2]), start[1:] - 3 * np.float32([1, 10]))


@pytest.mark.parametrize("wrap", [_eager, _function])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "nadam"])
def test_f02_a_custom_loop_trains_the_table_as_fit_does(optimizer, wrap):
    ids = np.random.default_rng(1).integers(0, 20, size=(40, 3))
    labels = random_rows(40, 1)
    fitted, custom = repeatable(4), repeatable(4)
    fitted_model, model = network(fitted, 3), network(custom, 3)
    loss = fit(fitted_model, optimizer, ids, labels, batch_size=8)
    assert np.isfinite(loss)
    optimizer = keras.optimizers.get(optimizer)
    assert any(
        v is w
        for v in custom.trainable_variables
        for w in model.trainable_variables
    )

    def step(ids, labels):
        with tf.GradientTape() as tape:
            error = model(ids, training=True) - labels
            loss = tf.reduce_mean(error**2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(
            zip(gradients, model.trainable_variables, strict=True)
        )

    step = wrap(step)
    for i in range(0, 40, 8):
        step(tf.constant(ids[i : i + 8]), tf.constant(labels[i : i + 8]))
    keys = np.unique(ids)
    assert set(records_of(custom.table)) == set(keys.tolist())
    assert_close(rows_of(custom, keys), rows_of(fitted, keys), tolerance=1e-6)
    fresh = repeatable(4)
    assert np.all(rows_of(custom, keys) != rows_of(fresh, keys))


def _two_feature_network(embedding):
    """One layer for two features of different width and batch order."""
    one = keras.Input((1,), dtype="int64", name="one")
    five = keras.Input((5,), dtype="int64", name="five")
    joined = keras.layers.Concatenate(axis=1)([embedding(one), embedding(five)])
    flat = keras.layers.Flatten()(joined)
    kernel = keras.initializers.RandomNormal(seed=7)
    score = keras.layers.Dense(1, kernel_initializer=kernel)(flat)
    return keras.Model({"one": one, "five": five}, score)


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_f03_a_shared_layer_joins_its_gradients_under_fit(optimizer):
    keys = np.arange(6) * 11 - 20
    ids, labels, batch_size = every_key_in_every_batch(keys, 6, steps=4)
    inputs = {"one": ids[:, :1], "five": ids[:, 1:]}
    layer = embedding_with(keys, random_rows(6, 3))
    twin = DenseTwin(keys, rows_of(layer, keys))
    start = rows_of(layer, keys)
    model, twin_model = map(_two_feature_network, (layer, twin))
    fit(model, optimizer, inputs, labels, batch_size=batch_size)
    fit_twin(twin_model, optimizer, inputs, labels, batch_size)
    assert np.all(rows_of(layer, keys) != start)
    assert_close(rows_of(layer, keys), twin.matrix)


def test_f03_a_shared_layer_joins_its_gradients_in_a_custom_loop():
    keys = np.arange(1, 5)
    layer = embedding_with(keys, random_rows(4, 2))
    twin = DenseTwin(keys, rows_of(layer, keys))
    narrow = np.array([[1], [2], [3], [4]])
    tall = np.array([[4], [3], [2], [1], [1], [1], [2], [3]])
    for embedding in (layer, twin):
        optimizer = keras.optimizers.Adam(0.1)
        for scale in (1.0, -2.0, 3.0):
            with tf.GradientTape() as tape:
                a = tf.reduce_sum(embedding(narrow, training=True) ** 2)
                b = tf.reduce_sum(tf.sin(embedding(tall, training=True)))
                loss = scale * a + b
            variables = embedding.trainable_variables
            assert len(variables) == 1
            optimizer.apply(tape.gradient(loss, variables), variables)
    assert_close(rows_of(layer, keys), twin.matrix)


@pytest.mark.parametrize(
    "optimizer",
    [
        keras.optimizers.SGD(0.5),
        keras.optimizers.Adagrad(0.5),
        keras.optimizers.Adam(0.5),
        keras.optimizers.Ftrl(0.5),
    ],
    ids=lambda optimizer: optimizer.name,
)
def test_f04_repeated_ids_are_summed_and_stepped_once(optimizer):
    config = keras.optimizers.serialize(optimizer)
    model, layer, twin_model, twin = network_and_twin([7, 9], 3, 4)
    ids, labels = np.array([[7, 7, 7, 9]]), np.array([[5.0]])
    start = rows_of(layer, [7, 9])
    fit(model, keras.optimizers.deserialize(config), ids, labels, batch_size=1)
    fit_twin(twin_model, keras.optimizers.deserialize(config), ids, labels, 1)
    assert np.all(rows_of(layer, [7, 9]) != start)
    assert_close(rows_of(layer, [7, 9]), twin.matrix)


def test_f05_a_frozen_layer_does_not_change_and_learns_when_thawed():
    ids = np.random.default_rng(2).integers(0, 10, size=(24, 2))
    labels = random_rows(24, 1)
    layer = Embedding(3)
    model = network(layer, 2)
    fit(model, "adam", ids, labels, batch_size=8)
    before, score = records_of(layer.table), model.get_layer("score")

    layer.trainable = False
    assert layer.trainable_variables == []
    kernel = score.get_weights()[0]
    fit(model, "adam", ids + 5, labels, batch_size=8)
    assert_same_records(records_of(layer.table), before)
    assert not np.array_equal(score.get_weights()[0], kernel)

    layer.trainable = True
    fit(model, "adam", ids + 5, labels, batch_size=8)
    after = records_of(layer.table)
    assert set(after) > set(before)
    assert not np.array_equal(after[5][0], before[5][0])
