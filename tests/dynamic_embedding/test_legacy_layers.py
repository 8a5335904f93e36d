"""de.keras.legacy.layers in models of tf_keras."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import embedra.dynamic_embedding as de
from dynamic_embedding.keras_models import (
    DIM,
    WIDTH,
    assert_same_records,
    batches,
    start_rows,
)
from numerics import assert_allclose


layers = de.keras.legacy.layers

IDS = np.arange(-6, 14)
START = tf_keras.initializers.RandomUniform(-1.0, 1.0, seed=5)
TWO_DEVICES = {"devices": ["/CPU:0", "/CPU:0"]}
KINDS = {"one": {}, "two_devices": TWO_DEVICES, "max_norm": {"max_norm": 9.0}}
UNSEEN = np.arange(7 * WIDTH).reshape(7, WIDTH)


@tf_keras.saving.register_keras_serializable(package="tests")
@keras.saving.register_keras_serializable(package="tests")
def remainder(ids):
    """The field of an id."""
    return tf.math.floormod(ids, 3)


def _model(layer):
    ids = tf_keras.Input((WIDTH,), dtype="int64")
    kernel = tf_keras.initializers.RandomNormal(seed=3)
    dense = tf_keras.layers.Dense(1, kernel_initializer=kernel)
    return tf_keras.Model(ids, dense(tf_keras.layers.Flatten()(layer(ids))))


def _fit(model, optimizer=None, steps=4, seed=6):
    optimizer = optimizer or tf_keras.optimizers.Adam(0.1)
    model.compile(
        de.DynamicEmbeddingOptimizer(optimizer), "mse", run_eagerly=True
    )
    _train_on(model, steps, seed)
    return model


def _train_on(model, steps=2, seed=9):
    for batch in batches(steps, seed):
        model.train_on_batch(*batch)


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
    model = _model(layer)
    model.compile(de.DynamicEmbeddingOptimizer(optimizer(0.1)), "mse")
    _train_on(model)

    other = de.keras.layers.Embedding(DIM, initializer=START, **KINDS[kind])
    ids = keras.Input((WIDTH,), dtype="int64")
    kernel = keras.initializers.RandomNormal()
    dense = keras.layers.Dense(1, kernel_initializer=kernel)
    twin = keras.Model(ids, dense(keras.layers.Flatten()(other(ids))))
    start = _model(layers.Embedding(DIM)).layers[-1].get_weights()
    twin.layers[-1].set_weights(start)
    twin.compile(
        keras.optimizers.Adam(0.1, epsilon=1e-7), "mse", run_eagerly=True
    )
    _train_on(twin)
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
    model = _fit(_model(layer), steps=1)
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
    model = _model(layer)
    assert len(model.trainable_weights) == 2
    _fit(model)
    np.testing.assert_array_equal(layer.params.lookup(IDS), start_rows(IDS))
    layer.trainable = True
    _fit(model)
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


# Saving.


@pytest.mark.parametrize("kwargs", [{}, TWO_DEVICES])
@pytest.mark.parametrize("name", ["state", "m.weights.h5"])
def test_k02_weights_hold_tables_and_slots(tmp_path, name, kwargs):
    def make():
        layer = layers.Embedding(
            DIM, initializer=START, keep_distribution=True, **kwargs
        )
        return _fit(_model(layer), steps=1), layer

    model, layer = make()
    _train_on(model)
    model.save_weights(tmp_path / name)
    other, restored = make()
    other.load_weights(tmp_path / name)
    assert_same_records(restored, layer)
    assert_allclose(other(UNSEEN), model(UNSEEN))
    if name == "state":
        _train_on(model)
        _train_on(other)
        assert_same_records(restored, layer)


def test_a_checkpoint_holds_tables_and_slots(tmp_path):
    def make():
        layer = layers.Embedding(DIM, initializer=START)
        return _fit(_model(layer), steps=1), layer

    model, layer = make()
    _train_on(model)
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "state"))
    other, restored = make()
    status = tf.train.Checkpoint(model=other).read(path)
    status.assert_existing_objects_matched()
    assert_same_records(restored, layer)


@pytest.mark.parametrize("way", ["keras", "folder"])
def test_k01_saved_models_hold_tables(tmp_path, way):
    layer = layers.Embedding(DIM, initializer=START, name="ids")
    model = _fit(_model(layer))
    path = tmp_path / ("m.keras" if way == "keras" else "m")
    if way == "keras":
        model.save(path)
        loaded = tf_keras.models.load_model(path, compile=False)
    else:
        de.keras.models.de_save_model(model, path)
        served = tf.saved_model.load(str(path))
        signature = served.signatures["serving_default"]
        (answers,) = signature(tf.constant(UNSEEN)).values()
        assert_allclose(answers, model(UNSEEN))
        loaded = de.keras.models.load_model(path)
        assert loaded.optimizer.iterations == 4
    assert_allclose(loaded(UNSEEN), model(UNSEEN))
    assert isinstance(loaded.get_layer("ids"), layers.Embedding)
    assert_same_records(loaded.get_layer("ids"), layer)
    if way == "folder":
        loaded.run_eagerly = True
        _train_on(model)
        _train_on(loaded)
        assert_same_records(loaded.get_layer("ids"), layer)


@pytest.mark.parametrize("way", ["from_config", "clone_model", "json"])
@pytest.mark.parametrize("initializer", [None, "ones", START, 1.5])
def test_k03_copies_have_equal_config_and_a_table_of_their_own(
    way, initializer
):
    layer = layers.FieldWiseEmbedding(
        DIM,
        3,
        remainder,
        initializer=initializer,
        max_norm=2.0,
        restrict_policy=de.TimestampRestrictPolicy,
        name="ids",
    )
    model = _model(layer)
    layer(UNSEEN, training=True)
    if way == "from_config":
        config = json.loads(json.dumps(layer.get_config()))
        copy = layers.FieldWiseEmbedding.from_config(config)
    elif way == "clone_model":
        copy = tf_keras.models.clone_model(model).get_layer("ids")
    else:
        text = model.to_json()
        copy = tf_keras.models.model_from_json(text).get_layer("ids")
    assert copy.get_config() == layer.get_config()
    assert (copy.size(), layer.size()) == (0, UNSEEN.size)


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
    with pytest.raises(NotImplementedError, match="one of 2 processes"):
        layers.HvdAllToAllEmbedding(embedding_size=DIM, mpi_size=2)
    inputs = tf_keras.Input((None, DIM))
    model = tf_keras.Model(inputs, layers.LayerNormalization()(inputs))
    values = np.random.default_rng(1).normal(size=(2, 5, DIM))
    expected = keras.layers.LayerNormalization()(values)
    assert_allclose(model(values), expected, atol=1e-5)
