"""warm_start and WarmStartHook: what an earlier model learnt, as asked."""

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de

from .states import make, records_of, train
from .v1_runs import Model, run


v1 = tf.compat.v1


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """The folder of an earlier run, its records and its dense variable."""
    folder = tmp_path_factory.mktemp("earlier")
    _, records, dense, _ = run(folder, 4)
    return str(folder), records, dense


@pytest.fixture(scope="module")
def earlier_eager(tmp_path_factory):
    """An earlier `tf.train.Checkpoint`, and what its variable held."""
    variable = make(3, name="old_user")
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1))
    train(variable, optimizer, 3)
    folder = tmp_path_factory.mktemp("earlier_eager")
    dense = tf.Variable([1.0, 2.0], name="dense")
    path = tf.train.Checkpoint(user=variable, dense=dense).save(
        str(folder / "model")
    )
    return path, records_of(variable)


@pytest.fixture(autouse=True)
def _forgotten():
    """Forgets the variables that a test made by name."""
    yield
    for name in ("user", "fresh"):
        try:
            de.delete_variable(name)
        except ValueError:
            continue


def rows_only(records, slot_width=4):
    """Returns records as they are without slots and steps."""
    return {
        key: (row, [0.0] * slot_width, frequency, 0)
        for key, (row, _, frequency, _) in records.items()
    }


def started(operation, model):
    """Runs a warm start in a session of its own."""
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(operation)
        return model.records(session), session.run(model.dense).tolist()


@pytest.mark.parametrize("devices", [1, 3])
def test_c06_a_string_restores_rows_and_trainable_variables(earlier, devices):
    folder, records, dense = earlier
    with tf.Graph().as_default():
        model = Model(devices)
        found = started(de.warm_start(folder), model)
    assert found == (rows_only(records, 0), dense)


@pytest.mark.parametrize("devices", [1, 3])
def test_c06_a_list_restores_slots_too(earlier, devices):
    folder, records, dense = earlier
    with tf.Graph().as_default():
        model = Model(devices)
        found = started(de.warm_start(folder, [".*"]), model)
    assert found == (records, dense)


def test_c06_slots_are_restored_as_asked(earlier):
    folder, records, _ = earlier
    with tf.Graph().as_default():
        model = Model()
        slots = _slot_names(folder)
        operation = de.warm_start(folder, ["user$", f"user/{slots[1]}$"])
        found, dense = started(operation, model)
    expected = {
        key: (row, slot[2:], frequency, step)
        for key, (row, slot, frequency, step) in records.items()
    }
    assert found == expected
    assert dense == [[1.0], [1.0]]


def _slot_names(folder):
    reader = tf.train.load_checkpoint(folder)
    return [name.decode() for name in reader.get_tensor("user/slot_names")]


def test_c06_tables_come_under_their_new_name(earlier):
    folder, records, dense = earlier
    with tf.Graph().as_default():
        model = Model(name="reader")
        operation = de.warm_start(
            folder, var_name_to_prev_var_name={"reader": "user"}
        )
        found = started(operation, model)
    assert found == (rows_only(records, 0), dense)


def test_c06_new_tables_stay_fresh_and_what_is_left_out_is_listed(
    earlier, caplog
):
    folder, records, _ = earlier
    with tf.Graph().as_default():
        fresh = make(name="fresh")
        store = fresh.upsert([4], [[1.0, 2.0]])
        keys, _ = fresh.export()
        model = Model()
        with caplog.at_level(logging.INFO, logger="embedra"):
            operation = de.warm_start(folder)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(store)
            session.run(operation)
            assert session.run(keys).tolist() == [4]
            assert model.records(session) == rows_only(records, 0)
    assert "left out fresh: the checkpoint has no such table" in caplog.text
    assert "['user', 'dense']" in caplog.text


def test_only_what_matches_is_restored(earlier):
    folder, records, _ = earlier
    with tf.Graph().as_default():
        model = Model()
        found = started(de.warm_start(folder, "user"), model)
    assert found == (rows_only(records, 0), [[1.0], [1.0]])


def test_variables_themselves_may_be_listed(earlier):
    folder, records, _ = earlier
    with tf.Graph().as_default():
        model = Model()
        found = started(de.warm_start(folder, [model.user]), model)
    assert found == (records, [[1.0], [1.0]])


def test_a_match_of_nothing_is_an_error(earlier):
    folder, *_ = earlier
    with tf.Graph().as_default():
        Model(name="another")
        with pytest.raises(ValueError, match="Nothing of 'another'"):
            de.warm_start(folder, "another")


def test_another_width_is_refused_and_both_sides_are_named(earlier):
    folder, *_ = earlier
    with tf.Graph().as_default():
        Model(dim=3)
        with pytest.raises(ValueError, match="dim=2 in the file, 3 in the"):
            de.warm_start(folder, "user")
        with pytest.raises(ValueError, match=r"shape \(3, 1\), but 'dense'"):
            de.warm_start(folder, "dense")


def test_no_checkpoint_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no checkpoint"):
        de.warm_start(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="There is no checkpoint"):
        de.warm_start(str(tmp_path / "model-1"))


def test_es05_a_hook_starts_training_and_leaves_a_resumed_run_alone(
    earlier, tmp_path
):
    folder, records, _ = earlier
    hook = de.WarmStartHook(folder, ["user", "dense$"])
    before, after, *_ = run(tmp_path, 2, hooks=[hook])
    assert before == records
    assert hook.restored[0] == "user"
    assert "dense" in hook.restored
    assert not hook.skipped
    resumed, *_ = run(tmp_path, 0, hooks=[de.WarmStartHook(folder, ["user"])])
    assert resumed == after


def test_a_graph_starts_from_a_checkpoint_of_eager_training(earlier_eager):
    path, records = earlier_eager
    with tf.Graph().as_default():
        model = Model(2)
        operation = de.warm_start(
            path, ["user"], var_name_to_prev_var_name={"user": "old_user"}
        )
        found, _ = started(operation, model)
    assert found == records


def test_eager_training_starts_from_a_checkpoint_of_a_graph(earlier):
    folder, records, dense = earlier
    fresh = de.get_variable("fresh", dim=2)
    user = de.get_variable("user", dim=2, devices=["/CPU:0"] * 3)
    assert de.warm_start(folder, [".*"]) is None
    assert records_of(user) == records
    assert int(fresh.size()) == 0
    variable = tf.Variable(np.zeros((2, 1), np.float32), name="dense")
    de.warm_start(folder, [variable])
    assert variable.numpy().tolist() == dense


def test_eager_training_starts_from_a_checkpoint_of_its_own_kind(
    earlier_eager,
):
    path, records = earlier_eager
    user = make(1, initializer=0.5)
    dense = tf.Variable([0.0, 0.0], name="dense")
    de.warm_start(
        path,
        [user, dense],
        var_name_to_prev_var_name={"user": "old_user"},
    )
    assert records_of(user) == records
    assert dense.numpy().tolist() == [1.0, 2.0]
    # What comes new starts as the new table says.
    assert user.lookup([77]).numpy().tolist() == [[0.5, 0.5]]
