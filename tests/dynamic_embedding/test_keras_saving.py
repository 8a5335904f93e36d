"""Models over de.keras.layers survive every way of saving."""

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
    START,
    TWO_DEVICES,
    WIDTH,
    assert_same_records,
    batches,
    by_remainder,
    dense,
    fit,
    network,
    records,
    remainder,
)


layers = de.keras.layers

LIST_OF_FAILURES = pytest.mark.filterwarnings(
    "ignore:Skipping nested container:UserWarning"
)


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
    assert_same_records(other.embedding, model.embedding)
    if built:  # Keras does not restore stock layers that are built later.
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
