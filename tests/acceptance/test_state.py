"""Saved state: every door, in new processes, into models in any condition."""

import json
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra import DynamicEmbeddingOptimizer
from embedra.layers import Embedding

from . import small_network
from .reference import (
    assert_same_records,
    fit,
    network,
    random_rows,
    records_of,
    repeatable,
)
from .small_network import DOORS, SAVED_AT, STEPS


@pytest.fixture(scope="module")
def continued(tmp_path_factory):
    """What a new process made of a model saved half-way, by door.

    Returns:
        The arrays at the time of saving, those of the unbroken run, those of
        the new process by door, and the directory.
    """
    directory = tmp_path_factory.mktemp("half_way")
    model = small_network.build()
    small_network.train(model, 0, SAVED_AT)
    small_network.save(model, directory)
    model.export(directory / "export", verbose=False)
    saved = small_network.state(model)
    saved["predictions"] = small_network.predict(model)
    small_network.train(model, SAVED_AT, STEPS)
    unbroken = small_network.state(model)
    unbroken["predictions"] = small_network.predict(model)
    script = pathlib.Path(small_network.__file__)
    subprocess.run([sys.executable, script, directory], check=True)
    doors = {}
    for path in directory.glob("*.npz"):
        with np.load(path) as arrays:
            doors[path.stem] = dict(arrays)
    return saved, unbroken, doors, directory


def _assert_same_arrays(results, prefix, expected):
    """Bit equality; counts names, so that nothing can go missing."""
    actual = {
        name.removeprefix(prefix): array
        for name, array in results.items()
        if name.startswith(prefix)
    }
    assert actual.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(actual[name], array, err_msg=name)


@pytest.mark.multiprocess
@pytest.mark.parametrize("door", DOORS)
def test_k01_a_new_process_restores_rows_slots_and_counters(continued, door):
    saved, unbroken, doors, _ = continued
    assert saved["id_table/rows"].shape[0] > 20
    assert saved["id_table/slots"].shape[1] == 8
    assert np.any(saved["id_table/slots"] != 0)
    assert unbroken["id_table/rows"].shape > saved["id_table/rows"].shape
    _assert_same_arrays(doors[door], "loaded/", saved)


@pytest.mark.multiprocess
@pytest.mark.parametrize("door", DOORS)
def test_k01_training_continues_bit_for_bit_in_a_new_process(continued, door):
    _, unbroken, doors, _ = continued
    _assert_same_arrays(doors[door], "final/", unbroken)


@pytest.mark.multiprocess
@pytest.mark.parametrize("door", DOORS)
def test_o06_iterations_and_schedule_continue_in_a_new_process(continued, door):
    _, _, doors, _ = continued
    assert doors[door]["loaded/iterations"] == SAVED_AT
    assert doors[door]["final/iterations"] == STEPS
    rate = 0.05 * 0.5 ** (STEPS / 3)
    np.testing.assert_allclose(doors[door]["final/learning_rate"], rate, 1e-5)


@pytest.mark.multiprocess
def test_an_export_predicts_the_same_in_a_new_process(continued):
    saved, _, doors, _ = continued
    predictions = doors["export"]["predictions"]
    np.testing.assert_allclose(predictions, saved["predictions"], rtol=1e-6)


class Subclassed(keras.Model):
    """A model that has no weights but its table, and none until a call."""

    def __init__(self, dim=3, name="ids"):
        super().__init__()
        self.embedding = Embedding(dim, name=name)

    def call(self, ids, training=None):
        rows = self.embedding(ids, training=training)
        return keras.ops.sum(rows, axis=(1, 2))[:, None]


def _batch():
    ids = np.random.default_rng(5).integers(-9, 9, size=(16, 2))
    return ids, random_rows(16, 1)


def _trained_subclass(**kwargs):
    model = Subclassed(**kwargs)
    fit(model, "adam", *_batch(), batch_size=8)
    return model


# Keras itself cannot restore an optimizer that is not built yet, and says so.
@pytest.mark.filterwarnings("ignore:Skipping variable loading for optimizer")
@pytest.mark.parametrize("condition", ["new", "called", "compiled", "fit"])
def test_k02_weights_load_into_a_model_in_any_condition(tmp_path, condition):
    ids, labels = _batch()
    source = network(Embedding(3, name="ids"), 2)
    fit(source, "adam", ids, labels, batch_size=8)
    expected = records_of(source.get_layer("ids").table)
    assert all(np.any(slots) for _, slots, *_ in expected.values())
    source.save_weights(tmp_path / "model.weights.h5")

    model = network(Embedding(3, name="ids"), 2)
    if condition == "called":
        model(ids)
    elif condition == "compiled":
        model.compile("adam", "mse")
    elif condition == "fit":
        fit(model, "adam", ids + 100, labels, batch_size=8)
    model.load_weights(tmp_path / "model.weights.h5")
    assert_same_records(records_of(model.get_layer("ids").table), expected)
    some_new = ids + 3
    np.testing.assert_array_equal(model(some_new), source(some_new))


@pytest.mark.parametrize("restore_first", [True, False])
def test_k02_a_checkpoint_restores_into_an_unbuilt_model(
    tmp_path, restore_first
):
    source = _trained_subclass()
    checkpoint = tf.train.Checkpoint(model=source, optimizer=source.optimizer)
    path = checkpoint.write(str(tmp_path / "checkpoint"))
    model = Subclassed()
    model.compile("adam", "mse")
    if not restore_first:
        model(_batch()[0])
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    status = checkpoint.read(path)
    source.fit(*_batch(), batch_size=8, shuffle=False, verbose=0)
    model.fit(*_batch(), batch_size=8, shuffle=False, verbose=0)
    status.assert_existing_objects_matched()
    assert int(model.optimizer.iterations) == 4
    assert_same_records(
        records_of(model.embedding.table), records_of(source.embedding.table)
    )


# Keras says so beside any state that does not load, of stock layers too.
_NOT_LOADED = pytest.mark.filterwarnings("ignore:Skipping nested container")


@_NOT_LOADED
def test_k02_another_width_raises_and_names_the_layer(tmp_path):
    source = network(Embedding(3, name="ids"), 1)
    source(np.array([[1]]), training=True)
    source.save_weights(tmp_path / "model.weights.h5")
    wide = network(Embedding(5, name="ids"), 1)
    with pytest.raises(ValueError, match="ids") as error:
        wide.load_weights(tmp_path / "model.weights.h5")
    assert "3" in str(error.value)
    assert "5" in str(error.value)


@_NOT_LOADED
def test_k02_another_name_raises_and_names_both(tmp_path):
    source = network(Embedding(3, name="users"), 1)
    source(np.array([[1]]), training=True)
    source.save_weights(tmp_path / "model.weights.h5")
    other = network(Embedding(3, name="items"), 1)
    with pytest.raises(
        ValueError, match=r"users[\s\S]*items|items[\s\S]*users"
    ):
        other.load_weights(tmp_path / "model.weights.h5")
    assert int(other.layers[1].table.size()) == 0


def test_k11_a_checkpoint_without_the_table_is_reported(tmp_path):
    plain = keras.Sequential([keras.layers.Dense(1)])
    plain(np.zeros((1, 2)))
    path = tf.train.Checkpoint(model=plain).write(str(tmp_path / "plain"))
    model = _trained_subclass()
    status = tf.train.Checkpoint(model=model).read(path)
    with pytest.raises(AssertionError):
        status.assert_existing_objects_matched()


def test_k11_a_table_that_no_layer_takes_is_reported(tmp_path):
    source = _trained_subclass()
    path = tf.train.Checkpoint(model=source).write(str(tmp_path / "table"))
    plain = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(1)])
    plain(np.zeros((1, 2)))
    status = tf.train.Checkpoint(model=plain).read(path)
    with pytest.raises(AssertionError):
        status.assert_consumed()


@_NOT_LOADED
def test_k11_a_weights_file_without_the_table_raises(tmp_path):
    plain = keras.Sequential([keras.layers.Flatten()])
    plain(np.zeros((1, 2)))
    plain.save_weights(tmp_path / "plain.weights.h5")
    model = _trained_subclass(name="user_table")
    before = records_of(model.embedding.table)
    with pytest.raises(ValueError, match="user_table|embedding"):
        model.load_weights(tmp_path / "plain.weights.h5")
    assert_same_records(records_of(model.embedding.table), before)


def test_c02_adam_slots_pass_through_every_door_in_turn(tmp_path):
    model = small_network.build()
    small_network.train(model, 0, 3)
    expected = {
        name: array
        for name, array in small_network.state(model).items()
        if "table" in name
    }
    assert model.get_layer("id_table").table.slot_names
    assert expected["id_table/slots"].shape[1] == 2 * 4
    assert np.all(np.any(expected["id_table/slots"] != 0, axis=1))
    for i, door in enumerate((*DOORS, *DOORS[::-1])):
        directory = tmp_path / str(i)
        directory.mkdir()
        small_network.save(model, directory)
        model = small_network.load(door, directory)
        state = small_network.state(model)
        for name, array in expected.items():
            message = f"{door}: {name}"
            np.testing.assert_array_equal(state[name], array, message)


def test_c02_adam_slots_pass_from_table_to_table_in_chunks():
    source = _trained_subclass().embedding
    target = Subclassed().embedding
    fit_target = network(target, 2)
    other = _batch()[0][:1] + 100
    fit(fit_target, "adam", other, np.ones((1, 1)), batch_size=1)
    target.table.clear()
    chunks = list(source.table.export_chunks(chunk_size=4))
    assert len(chunks) > 1
    for chunk in chunks:
        assert len(chunk.keys) <= 4
        target.table.import_records(chunk)
    assert_same_records(records_of(target.table), records_of(source.table))


@pytest.mark.parametrize("door", ["keras", "checkpoint"])
def test_a_run_saved_between_accumulated_batches_continues_bit_for_bit(
    tmp_path, door
):
    ids = np.random.default_rng(6).integers(0, 12, size=(48, 2))
    labels = random_rows(48, 1)

    def build():
        model = network(repeatable(3), 2)
        optimizer = keras.optimizers.Adam(0.1, gradient_accumulation_steps=2)
        model.compile(DynamicEmbeddingOptimizer(optimizer), "mse")
        return model

    def train(model, first, last):
        kwargs = {"batch_size": 8, "shuffle": False, "verbose": 0}
        model.fit(ids[first:last], labels[first:last], **kwargs)

    model = build()
    train(model, 0, 24)  # three batches: one is pending
    if door == "keras":
        model.save(tmp_path / "model.keras")
        resumed = keras.saving.load_model(tmp_path / "model.keras")
    else:
        path = tf.train.Checkpoint(
            model=model, optimizer=model.optimizer
        ).write(str(tmp_path / "checkpoint"))
        resumed = build()
        tf.train.Checkpoint(model=resumed, optimizer=resumed.optimizer).read(
            path
        )
    for each in (model, resumed):
        train(each, 24, 48)
    tables = [each.get_layer("ids").table for each in (model, resumed)]
    assert_same_records(records_of(tables[1]), records_of(tables[0]))
    np.testing.assert_array_equal(
        resumed.get_layer("score").get_weights()[0],
        model.get_layer("score").get_weights()[0],
    )


@pytest.mark.multiprocess
def test_l08_string_ids_keep_their_rows_in_a_new_process(tmp_path):
    words = np.array(["a", "b", "", "žluťoučký 🐎", "x" * 10_000])
    ids = keras.Input((), dtype="string")
    layer = Embedding(2, key_dtype="string", name="words")
    model = keras.Model(ids, layer(ids))
    model.compile("sgd", "mse")
    model.fit(tf.constant(words), random_rows(5, 2), verbose=0)
    assert int(layer.table.size()) == 5
    model.save(tmp_path / "words.keras")
    expected = np.asarray(layer(words))
    assert len(np.unique(expected)) == 10
    script = (
        "import sys, json, keras, numpy, embedra, tensorflow as tf\n"
        "model = keras.saving.load_model(sys.argv[1])\n"
        "words = tf.constant(json.loads(sys.argv[2]))\n"
        "numpy.save(sys.argv[3], model.predict(words, verbose=0))\n"
    )
    path = tmp_path / "rows.npy"
    arguments = [tmp_path / "words.keras", json.dumps(words.tolist()), path]
    subprocess.run([sys.executable, "-c", script, *arguments], check=True)
    np.testing.assert_array_equal(np.load(path), expected)
