"""Models of tf_keras over de.keras.legacy.layers survive saving."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import embedra.dynamic_embedding as de
from dynamic_embedding.keras_models import (
    DIM,
    TWO_DEVICES,
    WIDTH,
    assert_same_records,
    remainder,
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


@pytest.mark.parametrize("kwargs", [{}, TWO_DEVICES])
@pytest.mark.parametrize("name", ["state", "m.weights.h5"])
def test_k02_weights_hold_tables_and_slots(tmp_path, name, kwargs):
    def make():
        layer = layers.Embedding(
            DIM, initializer=START, keep_distribution=True, **kwargs
        )
        return legacy_fit(legacy_model(layer), steps=1), layer

    model, layer = make()
    train_on(model)
    model.save_weights(tmp_path / name)
    other, restored = make()
    other.load_weights(tmp_path / name)
    assert_same_records(restored, layer)
    assert_allclose(other(UNSEEN), model(UNSEEN))
    if name == "state":
        train_on(model)
        train_on(other)
        assert_same_records(restored, layer)


def test_a_checkpoint_holds_tables_and_slots(tmp_path):
    def make():
        layer = layers.Embedding(DIM, initializer=START)
        return legacy_fit(legacy_model(layer), steps=1), layer

    model, layer = make()
    train_on(model)
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "state"))
    other, restored = make()
    status = tf.train.Checkpoint(model=other).read(path)
    status.assert_existing_objects_matched()
    assert_same_records(restored, layer)


@pytest.mark.parametrize("way", ["keras", "folder"])
def test_k01_saved_models_hold_tables(tmp_path, way):
    layer = layers.Embedding(DIM, initializer=START, name="ids")
    model = legacy_fit(legacy_model(layer))
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
        train_on(model)
        train_on(loaded)
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
    model = legacy_model(layer)
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


def test_callbacks_keep_tables(tmp_path):
    layer = layers.Embedding(DIM, initializer=START, name="ids")
    model = legacy_fit(legacy_model(layer))
    callbacks = de.keras.legacy.callbacks
    model.fit(
        UNSEEN,
        np.ones((7, 1)),
        verbose=0,
        callbacks=[
            callbacks.DEHvdBroadcastGlobalVariablesCallback(0),
            callbacks.DEHvdModelCheckpoint(str(tmp_path / "m.keras")),
            callbacks.ModelCheckpoint(
                str(tmp_path / "weights"), save_weights_only=True
            ),
        ],
    )
    loaded = tf_keras.models.load_model(tmp_path / "m.keras")
    assert_same_records(loaded.get_layer("ids"), layer)
    other = layers.Embedding(DIM, name="ids")
    status = legacy_model(other).load_weights(tmp_path / "weights")
    status.expect_partial()
    assert_same_records(other, layer)


_LOAD = """
import sys
import embedra.dynamic_embedding as de
import embedra.optimizers
import tf_keras
de.keras.legacy.layers
model = tf_keras.models.load_model(sys.argv[1])
assert model.optimizer.handles_tables, model.optimizer
"""


def test_a_new_process_loads_a_wrapped_optimizer_before_it_makes_one(tmp_path):
    model = legacy_model(layers.Embedding(DIM, initializer=START))
    optimizer = tf_keras.optimizers.Adam(0.1)
    model.compile(de.DynamicEmbeddingOptimizer(optimizer), "mse")
    train_on(model)
    model.save(tmp_path / "model.keras")
    command = [sys.executable, "-c", _LOAD, str(tmp_path / "model.keras")]
    subprocess.run(command, check=True, timeout=300)
