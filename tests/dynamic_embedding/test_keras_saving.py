"""Models over de.keras.layers survive every way of saving."""

import functools
import json
import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from dynamic_embedding.keras_models import (
    DIM,
    WIDTH,
    assert_same_records,
    batches,
    dense,
    fit,
    network,
    records,
)


layers = de.keras.layers

TWO_DEVICES = {"devices": ["/CPU:0", "/CPU:0"]}
START = keras.initializers.RandomUniform(-1.0, 1.0, seed=5)
LIST_OF_FAILURES = pytest.mark.filterwarnings(
    "ignore:Skipping nested container:UserWarning"
)


@keras.saving.register_keras_serializable(package="tests")
def remainder(ids):
    """The field of an id."""
    return tf.math.floormod(ids, 3)


@keras.saving.register_keras_serializable(package="tests")
@tf.function
def remainder_in_function(ids):
    """The same as TFRA's documentation has it."""
    return tf.math.floormod(ids, 3)


@keras.saving.register_keras_serializable(package="tests")
def by_remainder(keys, shard_num):
    """A partitioner."""
    return tf.cast(tf.math.floormod(keys, shard_num), tf.int32)


def _model(**kwargs):
    """A model over all three layers; names are given, as TFRA asks for."""
    ids = keras.Input((WIDTH,), dtype="int64")
    kwargs = {"initializer": START, "keep_distribution": True, **kwargs}
    rows = layers.Embedding(DIM, name="rows", **kwargs)(ids)
    pooled = layers.SquashedEmbedding(2, combiner="mean", name="mean")(ids)
    fields = layers.FieldWiseEmbedding(2, 3, remainder, name="fields")(ids)
    flat = [keras.layers.Flatten()(part) for part in (rows, fields)]
    return keras.Model(
        ids, dense()(keras.layers.Concatenate()([*flat, pooled]))
    )


NAMES = ("rows", "mean", "fields")
UNSEEN = np.arange(7 * WIDTH).reshape(7, WIDTH)


def _assert_same(one, other):
    for name in NAMES:
        assert_same_records(one.get_layer(name), other.get_layer(name))
    np.testing.assert_array_equal(one(UNSEEN), other(UNSEEN))


def _compile(model):
    """Compiles a model so that its optimizer can be restored."""
    fit(model, keras.optimizers.Adam(0.1), 0)
    model.optimizer.build(model.trainable_variables)


def _train_on(model, seed=9):
    for batch in batches(2, seed):
        model.train_on_batch(*batch)


@pytest.mark.parametrize("kwargs", [{}, TWO_DEVICES])
def test_k01_a_keras_file_continues_bit_for_bit(tmp_path, kwargs):
    model = _model(**kwargs)
    fit(model, keras.optimizers.Adam(0.1))
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert len(loaded.get_layer("rows").params.tables) == 1 + bool(kwargs)
    _assert_same(loaded, model)
    loaded.run_eagerly = True
    _train_on(model)
    _train_on(loaded)
    _assert_same(loaded, model)


@pytest.mark.multiprocess
def test_k01_a_keras_file_continues_in_a_new_process(tmp_path):
    model = network(layers.Embedding(DIM, initializer=START))
    fit(model, keras.optimizers.Adam(0.1))
    model.save(tmp_path / "m.keras")
    _train_on(model)
    script = """
        import sys, keras, numpy as np
        import embedra.dynamic_embedding as de
        assert "tf_keras" not in sys.modules
        folder = sys.argv[1]
        model = keras.models.load_model(folder + "/m.keras")
        data = np.load(folder + "/data.npz")
        for ids, labels in zip(data["ids"], data["labels"]):
            model.train_on_batch(ids, labels)
        layer = model.layers[1]
        np.savez(folder + "/out.npz", size=layer.params.size(),
                 answers=model(data["ids"][0]))
    """
    ids, labels = zip(*batches(2, 9), strict=True)
    np.savez(tmp_path / "data.npz", ids=ids, labels=labels)
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    subprocess.run(command, check=True, timeout=300)
    out = np.load(tmp_path / "out.npz")
    assert out["size"] == model.layers[1].size()
    np.testing.assert_allclose(out["answers"], model(ids[0]), atol=1e-6)


@pytest.mark.parametrize("state", ["built", "compiled", "trained"])
def test_k02_weights_are_restored_with_slots(tmp_path, state):
    path = tmp_path / "m.weights.h5"
    model = _model()
    fit(model, keras.optimizers.Adam(0.1))
    model.save_weights(path)
    other = _model(initializer="zeros")
    if state == "compiled":
        _compile(other)
    if state == "trained":
        fit(other, keras.optimizers.Adam(0.1), 1)
    other.load_weights(path)
    _assert_same(other, model)


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.embedding = layers.SquashedEmbedding(
            DIM, name="ids", initializer=START
        )
        self.dense = dense()

    def call(self, ids):
        return self.dense(self.embedding(ids))


@pytest.mark.parametrize("built", [False, True])
def test_k02_a_checkpoint_restores_into_an_unbuilt_model(tmp_path, built):
    model = Subclassed()
    fit(model, keras.optimizers.Adam(0.1))
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    path = checkpoint.write(str(tmp_path / "state"))
    other = Subclassed()
    fit(other, keras.optimizers.Adam(0.1), 0)
    if built:
        other(UNSEEN)
    checkpoint = tf.train.Checkpoint(model=other, optimizer=other.optimizer)
    status = checkpoint.read(path)
    np.testing.assert_array_equal(other(UNSEEN), model(UNSEEN))
    _train_on(model)
    _train_on(other)
    status.assert_existing_objects_matched()
    assert_same_records(other.embedding, model.embedding)


@LIST_OF_FAILURES
@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"embedding_size": DIM + 1}, "dim=3 in the file, 4 in the table"),
        ({"name": "other"}, "'ids' where the model has layer 'other'"),
        ({"value_dtype": tf.bfloat16}, "dtype='float32' in the file"),
    ],
)
def test_k02_what_does_not_fit_is_refused(tmp_path, kwargs, message):
    path = tmp_path / "m.weights.h5"
    arguments = {"embedding_size": DIM, "name": "ids"}
    model = keras.Sequential([layers.SquashedEmbedding(**arguments)])
    model(UNSEEN)
    model.save_weights(path)
    other = keras.Sequential([layers.SquashedEmbedding(**arguments | kwargs)])
    other(UNSEEN)
    with pytest.raises(ValueError, match=message):
        other.load_weights(path)


@pytest.mark.parametrize(("saved", "loaded"), [(1, 3), (3, 1), (2, 3), (2, 2)])
def test_tables_are_restored_to_any_number_of_devices(tmp_path, saved, loaded):
    def make(count, **kwargs):
        layer = layers.Embedding(
            DIM, initializer=START, devices=["/CPU:0"] * count, **kwargs
        )
        return network(layer), layer

    model, layer = make(saved)
    other, restored = make(loaded, partitioner=by_remainder)
    fit(model, keras.optimizers.Adam(0.1))
    model.save_weights(tmp_path / "m.weights.h5")
    _compile(other)
    other.load_weights(tmp_path / "m.weights.h5")
    assert_same_records(restored, layer)
    _train_on(model)
    _train_on(other)
    assert_same_records(restored, layer)


@pytest.mark.parametrize("kwargs", [{}, TWO_DEVICES])
def test_a_checkpoint_has_tables_and_slots(tmp_path, kwargs):
    model = _model(**kwargs)
    fit(model, keras.optimizers.Adam(0.1))
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    path = checkpoint.save(str(tmp_path / "state"))
    other = _model(**kwargs, initializer="zeros")
    fit(other, keras.optimizers.Adam(0.1), 1)
    checkpoint = tf.train.Checkpoint(model=other, optimizer=other.optimizer)
    checkpoint.restore(path).assert_existing_objects_matched()
    _assert_same(other, model)
    _train_on(model)
    _train_on(other)
    _assert_same(other, model)


def test_without_checkpoint_tables_are_not_saved(tmp_path):
    def make():
        layer = layers.Embedding(DIM, initializer=START, checkpoint=False)
        return network(layer), layer

    model, layer = make()
    fit(model, "adam")
    model.save_weights(tmp_path / "m.weights.h5")
    saved = tf.train.Checkpoint(model=model).write(str(tmp_path / "state"))
    other, empty = make()
    other.load_weights(tmp_path / "m.weights.h5")
    tf.train.Checkpoint(model=other).read(saved).expect_partial()
    assert layer.size() > 0
    assert empty.size() == 0


@pytest.mark.parametrize("kwargs", [{}, TWO_DEVICES])
def test_an_exported_model_serves_what_the_model_does(tmp_path, kwargs):
    model = _model(**kwargs)
    fit(model, "adam")
    model.export(tmp_path / "served", verbose=False)
    expected = model(UNSEEN)
    served = tf.saved_model.load(str(tmp_path / "served"))
    np.testing.assert_allclose(served.serve(UNSEEN), expected, atol=1e-6)
    assert model.get_layer("rows").size() == 20


# Configs.

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
class Kind:
    """A kind of table of a user."""

    def __init__(self, rows=7):
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


def test_records_of_a_restored_layer_are_not_shared(tmp_path):
    model = _model()
    fit(model, "adam", 1)
    model.save(tmp_path / "m.keras")
    before = records(model.get_layer("rows"))
    loaded = keras.models.load_model(tmp_path / "m.keras")
    _train_on(loaded)
    for mine, theirs in zip(
        records(model.get_layer("rows")), before, strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
