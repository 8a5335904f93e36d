"""Which checkpoints are kept, which epoch is the best, and crashes."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import click_training
from click_training import compiled, data, functional
from embedra.checkpoint import CheckpointFolder, find
from embedra.keras._monitor import Monitor


SCRIPT = click_training.__file__


def indices(folder):
    return sorted(path.stem for path in Path(folder).glob("*.index"))


def fit(model, folder, **kwargs):
    kwargs = {"epochs": 5, "verbose": 0} | kwargs
    return model.fit(data(2), checkpoint_dir=folder, **kwargs)


def test_c07_the_limit_holds_over_restarts(tmp_path):
    for epochs in (5, 10):
        fit(compiled(), tmp_path, epochs=epochs, keep_checkpoint_max=2)
    assert indices(tmp_path) == ["ckpt-10", "ckpt-9"]
    others = {path.name.split(".")[0] for path in tmp_path.iterdir()}
    assert others == {"ckpt-10", "ckpt-9", "checkpoint"}
    assert tf.train.latest_checkpoint(tmp_path).endswith("ckpt-10")


class Scripted(keras.metrics.Metric):
    """A metric whose value for each epoch is given."""

    def __init__(self, values, name):
        super().__init__(name=name)
        self.values = tf.constant(values)
        self.epoch = tf.Variable(-1, dtype=tf.int32)

    def update_state(self, *args, **kwargs):
        del args, kwargs

    def result(self):
        return self.values[self.epoch]

    def reset_state(self):
        pass


def scripted(values, name="auc", start=-1):
    metric = Scripted(values, name)
    metric.epoch.assign(start)
    model = functional()
    model.compile("sgd", "mse", metrics=[metric])

    class NextEpoch(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            del logs
            metric.epoch.assign(epoch)

    return model, [NextEpoch()]


def test_k06_the_best_survives_a_restart_and_the_limit_holds(tmp_path):
    values = [0.5, 0.7, 0.6, 0.8, 0.1, 0.75, 0.79, 0.9, 0.2, 0.3]
    best = {"monitor": "val_auc", "save_best_only": True}
    best |= {"keep_checkpoint_max": 2, "validation_data": data(1)}
    kept = []
    for epochs in (4, 7, 10):
        model, callbacks = scripted(values)
        fit(model, tmp_path, epochs=epochs, callbacks=callbacks, **best)
        kept.append(indices(tmp_path))
        # The latest state, to go on from, is kept apart.
        assert len(indices(tmp_path / "latest")) == 1
    # Epochs 2 and 4; no better one up to 7; then 4 and 8.
    assert kept == [
        ["ckpt-2", "ckpt-3"],
        ["ckpt-2", "ckpt-3"],
        ["ckpt-3", "ckpt-4"],
    ]
    epoch = tf.train.load_variable(
        str(tmp_path / "ckpt-4"), "epoch/.ATTRIBUTES/VARIABLE_VALUE"
    )
    assert epoch == 8


def test_k06_an_unknown_monitor_raises_before_training(tmp_path):
    model = compiled(functional())
    before = model.get_layer("hidden").kernel.numpy()
    with pytest.raises(ValueError, match=r"auc, loss\..*'val_auc'.*validation"):
        fit(model, tmp_path, monitor="val_auc", save_best_only=True)
    with pytest.raises(ValueError, match="auc, loss, val_auc, val_loss"):
        fit(
            model,
            tmp_path,
            monitor="val_acc",
            save_best_only=True,
            validation_data=data(1),
        )
    np.testing.assert_array_equal(
        before, model.get_layer("hidden").kernel.numpy()
    )
    assert int(model.get_layer("rows").table.size()) == 0
    assert indices(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("val_auc", "max"),
        ("acc", "max"),
        ("val_binary_accuracy", "max"),
        ("precision", "max"),
        ("val_recall_1", "max"),
        ("ndcg_at_10", "max"),
        ("fmeasure", "max"),
        ("val_loss", "min"),
        ("mean_absolute_error", "min"),
        ("binary_crossentropy", "min"),
    ],
)
def test_k06_auto_knows_the_direction(name, mode):
    assert Monitor(name).mode == mode


def test_k06_a_name_that_does_not_tell_needs_a_mode():
    with pytest.raises(ValueError, match="mode='min' or mode='max'"):
        Monitor("val_score")
    assert Monitor("val_score", "max").mode == "max"
    with pytest.raises(ValueError, match="`mode`.*'higher'"):
        Monitor("loss", "higher")


def test_k06_a_number_that_keras_added_to_a_name_is_seen_through():
    monitor = Monitor("val_auc")
    monitor.check({"loss", "val_loss", "auc_3", "val_auc_3"})
    assert monitor.name == "val_auc_3"
    with pytest.raises(ValueError, match="val_auc_3, val_auc_4"):
        Monitor("val_auc").check({"val_auc_3", "val_auc_4"})


def test_options_of_checkpoints_need_a_folder():
    with pytest.raises(ValueError, match="`save_best_only`.*checkpoint_dir"):
        compiled().fit(data(1), save_best_only=True)
    with pytest.raises(ValueError, match="`x` is None"):
        compiled().fit()


@pytest.mark.parametrize(
    "name",
    [
        "keep_checkpoint_max",
        "keep_checkpoint_every_n_hours",
        "save_checkpoints_steps",
    ],
)
def test_numbers_must_be_positive(name, tmp_path):
    with pytest.raises(ValueError, match="must be positive"):
        fit(compiled(), tmp_path, **{name: 0})


# The folder itself.


def number(value=0):
    return tf.train.Checkpoint(value=tf.Variable(value))


def test_one_more_is_kept_for_each_so_many_hours(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    for _ in range(3):  # each time opened anew
        folder = CheckpointFolder(tmp_path, keep_max=2, keep_every_n_hours=1.0)
        for _ in range(3):
            now[0] += 1500.0
            folder.save(number())
    # At most one in 3600 seconds, and the last two.
    assert indices(tmp_path) == ["ckpt-3", "ckpt-6", "ckpt-8", "ckpt-9"]


@pytest.mark.parametrize("when", ["write", "rename data", "rename index"])
def test_c08_what_a_crash_leaves_is_not_used_and_removed(
    when, tmp_path, monkeypatch
):
    folder = CheckpointFolder(tmp_path, keep_max=2)
    folder.save(number(1))
    rename = tf.io.gfile.rename

    def crash(source, target, overwrite=False):
        del overwrite
        kind = "index" if target.endswith(".index") else "data"
        if when.endswith(kind) or kind == "data" and when == "write":
            message = "crash"
            raise SystemExit(message)
        rename(source, target, overwrite=True)

    monkeypatch.setattr("tensorflow.io.gfile.rename", crash)
    monkeypatch.setattr("tensorflow.io.gfile.rmtree", print)
    with pytest.raises(SystemExit):
        folder.save(number(2))
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) > 3
    again = CheckpointFolder(tmp_path, keep_max=2)
    assert again.latest.endswith("ckpt-1")
    assert len(list(tmp_path.iterdir())) == 3
    restored = number()
    restored.restore(again.latest).assert_consumed()
    assert int(restored.value) == 1


def test_c08_what_was_not_deleted_any_more_is_deleted_later(
    tmp_path, monkeypatch
):
    folder = CheckpointFolder(tmp_path, keep_max=1)
    folder.save(number(1))

    def crash(path):
        raise SystemExit(path)

    monkeypatch.setattr("tensorflow.io.gfile.remove", crash)
    with pytest.raises(SystemExit):
        folder.save(number(2))
    monkeypatch.undo()
    assert indices(tmp_path) == ["ckpt-1", "ckpt-2"]
    (tmp_path / "checkpoint.tmp").touch()
    assert CheckpointFolder(tmp_path, keep_max=1).latest.endswith("ckpt-2")
    assert indices(tmp_path) == ["ckpt-2"]
    assert not (tmp_path / "checkpoint.tmp").exists()
    assert tf.train.latest_checkpoint(tmp_path).endswith("ckpt-2")


def test_c08_reading_leaves_what_another_process_is_writing(tmp_path):
    CheckpointFolder(tmp_path).save(number(1))
    writing = tmp_path / "ckpt-2.partial"
    writing.mkdir()
    assert find(tmp_path).endswith("ckpt-1")
    assert writing.exists()
    CheckpointFolder(tmp_path)
    assert not writing.exists()


def test_c08_a_complete_one_without_a_pointer_is_used(tmp_path):
    folder = CheckpointFolder(tmp_path, keep_max=2)
    for value in (1, 2, 3):
        folder.save(number(value))
        if value == 2:
            pointer = (tmp_path / "checkpoint").read_text()
    (tmp_path / "checkpoint").write_text(pointer)
    again = CheckpointFolder(tmp_path, keep_max=2)
    assert again.latest.endswith("ckpt-3")
    again.save(number(4))
    assert indices(tmp_path) == ["ckpt-3", "ckpt-4"]


def test_a_folder_can_be_moved(tmp_path):
    CheckpointFolder(tmp_path / "a").save(number(5))
    os.rename(tmp_path / "a", tmp_path / "b")
    latest = tf.train.latest_checkpoint(tmp_path / "b")
    assert latest == str(tmp_path / "b" / "ckpt-1")


# Signals.


def start(folder, *arguments):
    return subprocess.Popen(
        [sys.executable, SCRIPT, str(folder), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stopped(number_, folder):
    """Sends a signal to a training within its first epoch; what it says."""
    process = start(folder, 1000)
    for line in process.stdout:
        if line == "step 3\n":
            process.send_signal(number_)
            break
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 128 + number_
    return output, errors


@pytest.mark.multiprocess
def test_a_signal_ends_the_step_saves_and_says_so(tmp_path):
    straight = compiled()
    straight.fit(data(), epochs=1, verbose=0)
    signals = [signal.SIGINT, signal.SIGTERM]
    folders = [tmp_path / signal_.name for signal_ in signals]
    # At the same time, as each takes a while to start.
    with ThreadPoolExecutor() as threads:
        said = list(threads.map(stopped, signals, folders))
    for folder, (output, errors) in zip(folders, said, strict=True):
        assert "The training stopped after" in errors
        assert "Traceback" not in errors
        assert output.count("step") <= 2
        (name,) = {path.name for path in folder.glob("*.index")}
        value = tf.train.load_variable(
            str(folder / name.removesuffix(".index")),
            "step/.ATTRIBUTES/VARIABLE_VALUE",
        )
        assert value > 0
        model = compiled()
        history = model.fit(
            data(), epochs=1, verbose=0, checkpoint_dir=folder
        ).history
        assert len(history["loss"]) == 1
        click_training.assert_same_state(model, straight)
