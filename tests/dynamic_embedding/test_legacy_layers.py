"""de.keras.legacy.layers in models of tf_keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import embedra.dynamic_embedding as de
from dynamic_embedding.keras_models import (
    DIM,
    IDS,
    KINDS,
    WIDTH,
    batches,
    remainder,
    start_rows,
)
from dynamic_embedding.legacy_models import (
    START,
    legacy_fit,
    legacy_model,
    train_on,
)
from numerics import assert_allclose


layers = de.keras.legacy.layers

UNSEEN = np.arange(7 * WIDTH).reshape(7, WIDTH)

# The same as the layers of Keras 3.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "make",
    [
        lambda m, **k: m.Embedding(DIM, **k),
        lambda m, **k: m.SquashedEmbedding(DIM, combiner="mean", **k),
        lambda m, **k: m.FieldWiseEmbedding(DIM, 3, remainder, **k),
    ],
)
def test_outputs_are_those_of_the_layers_of_keras_3(make, kind):
    ours = make(layers, **KINDS[kind])
    theirs = make(de.keras.layers, **KINDS[kind])
    ragged = tf.ragged.constant([[1, 2], [], [3]], dtype=tf.int64)
    for layer in (ours, theirs):
        layer.params.upsert(IDS, start_rows(IDS))
    assert_allclose(ours(UNSEEN % 14), theirs(UNSEEN % 14))
    for mine, other in zip(
        tf.nest.flatten(ours(ragged), expand_composites=True),
        tf.nest.flatten(theirs(ragged), expand_composites=True),
        strict=True,
    ):
        assert_allclose(mine, other)
    symbolic = ours(tf_keras.Input((WIDTH,), dtype="int64"))
    expected = theirs(keras.Input((WIDTH,), dtype="int64"))
    assert tuple(symbolic.shape) == tuple(expected.shape)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_custom_loop_with_an_optimizer_of_keras_3(name, kind):
    rows = []
    for module, flatten, inputs in (
        (layers, tf_keras.layers.Flatten(), tf_keras.Input),
        (de.keras.layers, keras.layers.Flatten(), keras.Input),
    ):
        layer = module.Embedding(DIM, initializer=START, **KINDS[kind])
        ids = inputs((WIDTH,), dtype="int64")
        optimizer = de.DynamicEmbeddingOptimizer(
            getattr(keras.optimizers, name)(0.1)
        )
        cls = tf_keras.Model if module is layers else keras.Model
        model = cls(ids, flatten(layer(ids)))
        for batch, labels in batches():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(batch) - labels) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(
                zip(gradients, model.trainable_variables, strict=True)
            )
        rows.append(layer.params.lookup(IDS))
    assert_allclose(rows[0], rows[1])


# What trains, and what inserts.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "optimizer", [tf_keras.optimizers.Adam, tf_keras.optimizers.legacy.Adam]
)
def test_fit_is_the_same_as_of_keras_3(optimizer, kind):
    layer = layers.Embedding(DIM, initializer=START, **KINDS[kind])
    model = legacy_model(layer)
    model.compile(de.DynamicEmbeddingOptimizer(optimizer(0.1)), "mse")
    train_on(model)

    other = de.keras.layers.Embedding(DIM, initializer=START, **KINDS[kind])
    ids = keras.Input((WIDTH,), dtype="int64")
    kernel = keras.initializers.RandomNormal()
    dense = keras.layers.Dense(1, kernel_initializer=kernel)
    twin = keras.Model(ids, dense(keras.layers.Flatten()(other(ids))))
    start = legacy_model(layers.Embedding(DIM)).layers[-1].get_weights()
    twin.layers[-1].set_weights(start)
    twin.compile(
        keras.optimizers.Adam(0.1, epsilon=1e-7), "mse", run_eagerly=True
    )
    train_on(twin)
    assert layer.size() == other.size() > 0
    assert_allclose(
        layer.params.lookup(IDS), other.params.lookup(IDS), atol=1e-4
    )


@pytest.mark.parametrize("kind", KINDS)
def test_who_inserts(kind):
    layer = layers.SquashedEmbedding(DIM, **KINDS[kind])
    ids = np.array([[1, 2]])
    for training in (None, False):
        layer(ids, training=training)
        assert layer.size() == 0
    layer(ids, training=True)
    assert layer.size() == 2
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids + 100))
    assert layer.size() == 2
    gradient = tape.gradient(loss, layer.trainable_variables)[0]
    assert layer.size() == 4
    assert_allclose(tf.reduce_sum(gradient.values), 2.0 * DIM)


def test_k09_nothing_but_training_changes_a_table():
    layer = layers.Embedding(DIM, initializer=START)
    model = legacy_fit(legacy_model(layer), steps=1)
    size = layer.size()
    model.evaluate(UNSEEN + 1000, np.zeros((7, 1)), verbose=0)
    model.predict(UNSEEN + 1000, verbose=0)
    model(UNSEEN + 1000)
    assert layer.size() == size
    model.train_on_batch(UNSEEN + 1000, np.zeros((7, 1)))
    assert layer.size() == size + UNSEEN.size


def test_f05_frozen_rows_stay_and_learn_after_thawing():
    layer = layers.Embedding(DIM, trainable=False)
    layer.params.upsert(IDS, start_rows(IDS))
    model = legacy_model(layer)
    assert len(model.trainable_weights) == 2
    legacy_fit(model)
    np.testing.assert_array_equal(layer.params.lookup(IDS), start_rows(IDS))
    layer.trainable = True
    legacy_fit(model)
    assert np.abs(layer.params.lookup(IDS) - start_rows(IDS)).max() > 1e-4


class Subclassed(tf_keras.Model):
    def __init__(self):
        super().__init__()
        self.embedding = layers.SquashedEmbedding(
            DIM, name="ids", initializer=START
        )
        self.dense = tf_keras.layers.Dense(1)

    def call(self, ids):
        return self.dense(self.embedding(ids))


def _sequential():
    return tf_keras.Sequential(
        [
            layers.SquashedEmbedding(DIM, name="ids", initializer=START),
            tf_keras.layers.Dense(1),
        ]
    )


@pytest.mark.parametrize("make", [Subclassed, _sequential])
def test_k04_forms_of_models(make):
    model = make()
    model.compile(
        de.DynamicEmbeddingOptimizer(tf_keras.optimizers.Adam(0.1)), "mse"
    )
    ids = np.arange(32).reshape(8, WIDTH)
    labels = np.ones((8, 1))
    losses = model.fit(ids, labels, epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert model.layers[0].size() == 32


def test_mixed_precision_and_masks():
    layer = layers.Embedding(DIM, dtype="mixed_bfloat16", mask_zero=True)
    outputs = layer(np.array([[3, 0]]))
    assert outputs.dtype == tf.bfloat16
    assert outputs._keras_mask.numpy().tolist() == [[True, False]]
    assert layer.params.value_dtype == tf.float32


# What is refused.


def test_bad_ids():
    layer = layers.Embedding(DIM, name="user")
    with pytest.raises(TypeError, match="'user' needs integer or string ids"):
        layer(np.array([1.0]))
    with pytest.raises(TypeError, match="'user' needs integer or string ids"):
        layer(tf_keras.Input((2,)))
    with pytest.raises(ValueError, match="'user' gives a row for each id"):
        layer(tf.sparse.from_dense([[1]]))


def test_all_to_all_and_layer_normalization():
    layer = layers.HvdAllToAllEmbedding(embedding_size=DIM, initializer="ones")
    assert_allclose(layer([[1, 2]]), np.ones((1, 2, DIM)))
    with pytest.raises(ValueError, match="mpi_size=2"):
        layers.HvdAllToAllEmbedding(embedding_size=DIM, mpi_size=2)
    inputs = tf_keras.Input((None, DIM))
    model = tf_keras.Model(inputs, layers.LayerNormalization()(inputs))
    values = np.random.default_rng(1).normal(size=(2, 5, DIM))
    expected = keras.layers.LayerNormalization()(values)
    assert_allclose(model(values), expected, atol=1e-5)
