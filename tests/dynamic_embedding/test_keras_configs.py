"""Configs of de.keras.layers hold all of their arguments."""

import functools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from dynamic_embedding.keras_models import (
    DIM,
    TWO_DEVICES,
    by_remainder,
    network,
    remainder,
)


layers = de.keras.layers


@keras.saving.register_keras_serializable(package="tests")
@tf.function
def remainder_in_function(ids):
    """The same as TFRA's documentation has it."""
    return tf.math.floormod(ids, 3)


INITIALIZERS = {
    "none": None,
    "string": "random_normal",
    "object": keras.initializers.RandomUniform(1.0, 2.0, seed=5),
    "partial": functools.partial(tf.random.uniform, minval=1.0, maxval=2.0),
    "partial_of_class": functools.partial(
        keras.initializers.RandomUniform, minval=1.0, maxval=2.0
    ),
    "number": 1.5,
    "row": [1.0, 2.0, 3.0],
}


class KeepAll(de.RestrictPolicy):
    """A restrict policy of a user."""


@keras.saving.register_keras_serializable(package="tests")
class Kind(de.KVCreator):
    """A kind of table of a user."""

    def __init__(self, rows=7):
        super().__init__()
        self.rows = rows

    def table_options(self):
        return {"initial_capacity": self.rows}

    def get_config(self):
        return {"rows": self.rows}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


@pytest.mark.parametrize("name", INITIALIZERS)
@pytest.mark.parametrize("way", ["from_config", "clone_model", "json"])
def test_k03_copies_have_equal_config_and_a_table_of_their_own(way, name):
    layer = layers.Embedding(
        DIM,
        key_dtype=tf.int32,
        initializer=INITIALIZERS[name],
        combiner="mean",
        bp_v2=True,
        init_capacity=100,
        max_norm=3.5,
        restrict_policy=KeepAll,
        partitioner=by_remainder,
        kv_creator=Kind(9),
        keep_distribution=True,
        mask_zero=True,
        name="ids",
        **TWO_DEVICES,
    )
    ids = keras.Input((2,), dtype="int64")
    model = keras.Model(ids, layer(ids))
    layer(np.array([1, 2]), training=True)
    config = json.loads(json.dumps(layer.get_config()))
    if way == "from_config":
        copy = layers.Embedding.from_config(config)
    elif way == "clone_model":
        copy = keras.models.clone_model(model).get_layer("ids")
    else:
        copy = keras.models.model_from_json(model.to_json()).get_layer("ids")
    assert copy.get_config() == layer.get_config()
    assert copy.size() == 0
    assert len(copy.params.tables) == 2
    assert copy.params.partition_fn is by_remainder
    assert isinstance(copy.params.restrict_policy, KeepAll)
    assert copy.params.kv_creator.rows == 9
    assert copy.max_norm == 3.5
    rows = copy(np.array([[1, 7]]), training=True).numpy()
    assert (layer.size(), copy.size()) == (2, 2)
    if name in ("object", "partial", "partial_of_class"):
        assert len(np.unique(rows)) == 6
        raw = copy.params.lookup([1, 7]).numpy()
        assert np.all((raw >= 1.0) & (raw < 2.0))


def test_k03_devices_are_kept_if_asked_for():
    config = layers.Embedding(DIM, **TWO_DEVICES).get_config()
    assert config["devices"] is None
    assert len(layers.Embedding.from_config(config).params.tables) == 1


def test_k03_policies_and_kinds_of_tables_of_the_library_are_kept():
    saver = de.FileSystemSaver(save_path="/data")
    config = de.HkvHashTableConfig(
        max_capacity=1000, evict_strategy=de.HkvEvictStrategy.LFU
    )
    layer = layers.Embedding(
        DIM,
        restrict_policy=de.FrequencyRestrictPolicy,
        kv_creator=de.HkvHashTableCreator(config, saver),
    )
    text = json.dumps(layer.get_config())
    params = layers.Embedding.from_config(json.loads(text)).params
    assert isinstance(params.restrict_policy, de.FrequencyRestrictPolicy)
    assert params.kv_creator.config == config
    assert params.kv_creator.saver == saver
    assert params.tables[0].bound == layer.params.tables[0].bound


@pytest.mark.parametrize("function", [remainder, remainder_in_function])
def test_k03_a_field_wise_layer_keeps_its_function(function):
    layer = layers.FieldWiseEmbedding(DIM, 3, function, initializer="ones")
    text = network(layer).to_json()
    copy = keras.models.model_from_json(text).layers[1]
    assert copy.get_config() == layer.get_config()
    assert copy.slot_map_fn is function
    ids = np.array([[1, 4, 2]])
    np.testing.assert_array_equal(copy(ids), layer(ids))


@pytest.mark.parametrize(
    "layer",
    [
        lambda: layers.SquashedEmbedding(DIM, combiner="max"),
        lambda: layers.HvdAllToAllEmbedding(embedding_size=DIM, batch_size=8),
        lambda: layers.LayerNormalization(axis=-1),
    ],
)
def test_k03_other_layers(layer):
    layer = layer()
    config = json.loads(json.dumps(layer.get_config()))
    copy = type(layer).from_config(config)
    assert copy.get_config() == layer.get_config()
    serialized = keras.saving.serialize_keras_object(layer)
    again = keras.saving.deserialize_keras_object(serialized)
    assert type(again) is type(layer)
