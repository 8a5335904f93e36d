"""Variables in `tf.train.Checkpoint`, on any number of devices."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de

from .states import CPU, make, records_of, train


@pytest.fixture(scope="module", params=[1, 2, 8])
def saved(request, tmp_path_factory):
    """A checkpoint of a trained variable, and what it should hold."""
    variable = make(request.param)
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1))
    train(variable, optimizer, 3)
    folder = tmp_path_factory.mktemp("saved")
    path = tf.train.Checkpoint(user=variable).save(str(folder / "model"))
    return path, records_of(variable), variable.lookup([77]).numpy()


@pytest.mark.parametrize("devices", [8, 3, 1])
def test_c01_any_number_of_devices_restores_what_any_other_saved(
    saved, devices
):
    path, records, absent = saved
    variable = make(devices)
    tf.train.Checkpoint(user=variable).restore(path).assert_consumed()
    assert records_of(variable) == records
    # New rows go on as they would have, and each key is where lookups look.
    np.testing.assert_array_equal(variable.lookup([77]), absent)
    assert variable.lookup(list(records), return_exists=True)[1].numpy().all()


def test_c01_training_goes_on_equally_on_another_number_of_devices(tmp_path):
    kept = make(2)
    steps = de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1))
    train(kept, steps, 2)
    saved = tf.train.Checkpoint(user=kept, optimizer=steps)
    path = saved.save(str(tmp_path / "model"))
    moved = make(3)
    restored_steps = de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1))
    restoring = tf.train.Checkpoint(user=moved, optimizer=restored_steps)
    restoring.restore(path)
    for variable, optimizer in ((kept, steps), (moved, restored_steps)):
        train(variable, optimizer, 2, ids=(1, 5, 5, 11))
    assert records_of(moved) == records_of(kept)


def test_c02_the_state_of_a_plain_variable_has_the_same_names(tmp_path):
    names = []
    for devices in (1, 3):
        path = tf.train.Checkpoint(user=make(devices)).save(
            str(tmp_path / f"{devices}")
        )
        names.append({name for name, _ in tf.train.list_variables(path)})
    assert names[0] == names[1]


def test_c04_a_large_state_goes_into_a_small_table(tmp_path):
    large = make(1)
    large.upsert(np.arange(1000), np.ones((1000, 2)))
    path = tf.train.Checkpoint(user=large).save(str(tmp_path / "model"))
    small = make(1, init_size=16)
    tf.train.Checkpoint(user=small).restore(path)
    assert records_of(small) == records_of(large)


def test_c06_a_checkpoint_holds_nothing_of_what_stands_for_rows(tmp_path):
    variable = make(1)
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(0.1))
    train(variable, optimizer, 1)
    path = tf.train.Checkpoint(user=variable).save(str(tmp_path / "model"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert all(
        name.startswith(("user/state/", "save_counter", "_CHECKPOINTABLE"))
        for name in names
    )


def test_a_state_of_another_width_is_refused_and_both_sides_are_named(
    saved,
):
    path, *_ = saved
    variable = make(3, dim=5)
    variable.upsert([4], np.ones((1, 5)))
    with pytest.raises(ValueError, match=r"dim=2 in the file, 5 in the table"):
        tf.train.Checkpoint(user=variable).restore(path)
    assert list(records_of(variable)) == [4]


def test_variables_that_share_tables_are_saved_once(tmp_path):
    first = make(2, shared_name="common")
    second = make(2, shared_name="common")
    first.upsert([1], [[1.0, 2.0]])
    path = tf.train.Checkpoint(a=first, b=second).save(str(tmp_path / "model"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert sum(name.endswith("/state/header") for name in names) == 1
    first.clear()
    tf.train.Checkpoint(a=first, b=second).restore(path)
    assert second.lookup([1]).numpy().tolist() == [[1.0, 2.0]]


def test_a_variable_without_checkpoint_is_left_out(tmp_path):
    variable = make(1, checkpoint=False)
    variable.upsert([1], [[1.0, 2.0]])
    path = tf.train.Checkpoint(user=variable).save(str(tmp_path / "model"))
    names = [name for name, _ in tf.train.list_variables(path)]
    assert not [name for name in names if "state" in name]


@pytest.mark.parametrize("devices", [1, 3])
def test_a_saved_model_serves_a_variable(tmp_path, devices):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.user = make(devices)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
        def rows(self, ids):
            return self.user.lookup(ids)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
        def looked_up(self, ids):
            return de.embedding_lookup(self.user, ids)

    model = Model()
    model.user.upsert([1, 2], [[1.0, 2.0], [3.0, 4.0]])
    tf.saved_model.save(model, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    ids = tf.constant([2, 1, 9], tf.int64)
    np.testing.assert_array_equal(loaded.rows(ids), model.rows(ids))
    np.testing.assert_array_equal(loaded.looked_up(ids), model.rows(ids))


def test_c07_a_manager_keeps_two_checkpoints_of_a_de_checkpoint(tmp_path):
    variable = make(1)
    for _ in range(2):
        checkpoint = de.train.DECheckpoint(user=variable)
        manager = tf.train.CheckpointManager(
            checkpoint, str(tmp_path), max_to_keep=2
        )
        checkpoint.restore(manager.latest_checkpoint)
        for _ in range(5):
            variable.upsert([int(variable.size())], [[1.0, 2.0]])
            manager.save()
    indexes = sorted(path.name for path in tmp_path.glob("*.index"))
    assert indexes == ["ckpt-10.index", "ckpt-9.index"]
    data = {path.name.partition(".")[0] for path in tmp_path.glob("*.data-*")}
    assert data == {"ckpt-10", "ckpt-9"}
    restored = make(1)
    de.train.DECheckpoint(user=restored).read(manager.latest_checkpoint)
    assert records_of(restored) == records_of(variable)


def test_devices_are_the_users_to_choose():
    assert make(3).devices == (CPU,) * 3


@pytest.mark.parametrize("devices", [1, 2])
def test_nothing_is_missed_after_training_went_on(tmp_path, devices):
    """What stands for rows comes into being after the restore."""
    saved = {}
    for is_restored in (False, True):
        user = make(devices)
        optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1))
        checkpoint = tf.train.Checkpoint(user=user, optimizer=optimizer)
        if is_restored:
            status = checkpoint.restore(saved["path"])
        train(user, optimizer, 1)
        if is_restored:
            status.assert_existing_objects_matched()
            status.assert_consumed()
        else:
            saved["path"] = checkpoint.save(str(tmp_path / "model"))
