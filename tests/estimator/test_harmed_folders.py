"""Folders of estimators: another model, files that are gone, leftovers."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra import estimator as lib

from . import small


v1 = tf.compat.v1


def table_alone(features, labels, mode, params):
    """A model of one table, without dense variables."""
    user = de.get_variable(
        "user",
        dim=2,
        key_dtype=params.get("key_dtype", tf.int64),
        value_dtype=params.get("value_dtype", tf.float32),
        initializer=0.1,
    )
    ids = features["user"]
    if user.key_dtype == tf.string:
        ids = tf.as_string(ids)
    rows = tf.cast(de.embedding_lookup(user, ids), tf.float32)
    loss = tf.reduce_mean((tf.reduce_sum(rows, axis=1) - labels) ** 2)
    train_op = None
    if mode == lib.ModeKeys.TRAIN:
        make = params.get("optimizer", v1.train.AdagradOptimizer)
        train_op = de.DynamicEmbeddingOptimizer(make(0.1)).minimize(
            loss, v1.train.get_global_step()
        )
    return lib.EstimatorSpec(mode, {"rows": rows}, loss, train_op)


def make(folder, **params):
    return small.make(folder, table_alone, params)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (
            {"key_dtype": tf.string},
            "user has keys of dtype int64 there and string here",
        ),
        (
            {"value_dtype": tf.float16},
            "user/rows has dtype float32 there and float16 here",
        ),
    ],
    ids=["keys", "rows"],
)
def test_a_table_of_another_dtype_is_told(tmp_path, params, said):
    make(tmp_path).train(small.input_fn(1))
    other = make(tmp_path, **params)
    with pytest.raises(ValueError, match=said):
        other.train(small.input_fn(1))
    with pytest.raises(ValueError, match=said):
        other.evaluate(small.input_fn(1))


def momentum(rate):
    return v1.train.MomentumOptimizer(rate, 0.9)


def test_a_table_of_another_optimizer_is_told(tmp_path):
    make(tmp_path, optimizer=momentum).train(small.input_fn(1))
    said = "'user' was trained by another optimizer.*slots momentum, which"
    with pytest.raises(ValueError, match=said):
        make(tmp_path).train(small.input_fn(1))
    again = make(tmp_path, optimizer=momentum)
    assert again.latest_checkpoint().endswith("-1")
    again.train(small.input_fn(1))
    assert again.get_variable_value("user/slots").shape == (4, 2)
    assert int(again.get_variable_value("global_step")) == 2


USES = {
    "train": lambda estimator: estimator.train(small.input_fn(1)),
    "max_steps": lambda estimator: estimator.train(
        small.input_fn(1), max_steps=9
    ),
    "evaluate": lambda estimator: estimator.evaluate(small.input_fn(1)),
    "predict": lambda estimator: next(estimator.predict(small.batches_of(1))),
    "export": lambda estimator: estimator.export_saved_model(
        f"{estimator.model_dir}/models",
        lambda: lib.export.ServingInputReceiver(
            *[{"user": v1.placeholder(tf.int64, [None])}] * 2
        ),
    ),
}


@pytest.fixture(params=USES)
def use(request):
    return USES[request.param]


def data_of(folder):
    (path,) = Path(folder).glob("model.ckpt-1.data*")
    return path


def test_c08_a_data_file_that_is_gone_is_named(tmp_path, use):
    estimator = small.make(tmp_path).train(small.input_fn(1))
    data_of(tmp_path).unlink()
    said = re.escape("model.ckpt-1' is not whole")
    with pytest.raises(ValueError, match=f"{said}.*data-.* is gone"):
        use(estimator)


def test_c08_a_data_file_that_was_cut_is_told(tmp_path, use):
    estimator = small.make(tmp_path).train(small.input_fn(1))
    path = data_of(tmp_path)
    path.write_bytes(path.read_bytes()[:10])
    with pytest.raises(ValueError, match="model.ckpt-1' is damaged"):
        use(estimator)


def test_c08_a_checkpoint_that_is_gone_is_not_begun_anew(tmp_path):
    estimator = small.make(tmp_path).train(small.input_fn(1))
    index = tmp_path / "model.ckpt-1.index"
    saved = index.read_bytes()
    index.unlink()
    with pytest.raises(ValueError, match="'checkpoint'.* names .*ckpt-1'"):
        estimator.train(small.input_fn(1))
    # Data without an index are left over, but these are asked for.
    assert data_of(tmp_path).exists()
    index.write_bytes(saved)
    estimator.train(small.input_fn(1))
    assert int(estimator.get_variable_value("global_step")) == 2


def test_c08_what_a_killed_save_left_is_removed(tmp_path):
    estimator = small.make(tmp_path).train(small.input_fn(1))
    unfinished = tmp_path / "model.ckpt-2_temp"
    unfinished.mkdir()
    (unfinished / "part-00000-of-00001.data-00000-of-00001").touch()
    lone = tmp_path / "model.ckpt-2.data-00000-of-00001"
    lone.touch()
    pointer = tmp_path / f"checkpoint.tmp{'a' * 32}"
    pointer.touch()
    mine = tmp_path / "model.ckpt-2_temporary_notes"
    mine.touch()
    estimator.evaluate(small.input_fn(1))
    assert unfinished.exists()
    estimator.train(small.input_fn(3))
    left = [path for path in (unfinished, lone, pointer) if path.exists()]
    assert not left
    assert mine.exists()


KILLED = """
import tensorflow as tf
from embedra import estimator as lib, dynamic_embedding as de

v1 = tf.compat.v1


def model_fn(features, labels, mode):
    table = de.get_variable("user", dim=64, initializer=0.1)
    rows = de.embedding_lookup(table, features)
    loss = tf.reduce_mean((rows - 1.0) ** 2)
    optimizer = de.DynamicEmbeddingOptimizer(v1.train.AdagradOptimizer(0.1))
    train_op = optimizer.minimize(loss, v1.train.get_global_step())
    return lib.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.range(20_000, dtype=tf.int64) + v1.train.get_global_step() % 2


config = lib.RunConfig(save_checkpoints_steps=1, keep_checkpoint_max=2)
lib.Estimator(model_fn, {folder!r}, config).train(input_fn, steps={steps})
"""


def test_c08_a_run_that_was_killed_goes_on_and_leaves_nothing(tmp_path):
    folder = str(tmp_path / "run")

    def command(steps):
        text = KILLED.format(folder=folder, steps=steps)
        return [sys.executable, "-c", text]

    process = subprocess.Popen(command(100_000), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    unfinished = []
    while not unfinished and time.monotonic() < deadline:
        assert process.poll() is None
        saved = tf.train.latest_checkpoint(folder)
        unfinished = saved and list(Path(folder).glob("model.ckpt-*_temp"))
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert unfinished
    before = int(tf.train.load_variable(folder, "global_step"))
    subprocess.run(command(1), check=True, stderr=subprocess.DEVNULL)
    assert int(tf.train.load_variable(folder, "global_step")) == before + 1
    assert np.isfinite(tf.train.load_variable(folder, "user/rows")).all()
    assert not list(Path(folder).glob("*_temp"))
    assert not list(Path(folder).glob("*tempstate*"))
