"""The example with which Keras models by subclassing began, imports aside.

What it leaves to its reader are the model, the data, and what is served.
"""

import argparse
import re

import keras
import numpy as np
import pytest
import tensorflow

import embedra as hb
import embedra.compat.v1 as tf


class RankingModel(keras.Model):
    """What the example leaves to its reader."""

    def __init__(self, args):
        super().__init__()
        self.tables = [
            hb.layers.Embedding(args.dim, combiner="mean", name=name)
            for name in args.categorical
        ]
        self.tower = keras.layers.Dense(8, activation="relu")
        self.score = keras.layers.Dense(1, activation="sigmoid")

    def call(self, inputs):
        rows = [table(inputs[table.name]) for table in self.tables]
        numbers = keras.ops.cast(inputs["number"], "float32")
        features = keras.ops.concatenate([*rows, numbers], axis=1)
        return self.score(self.tower(features))


class DlrmInKeras(hb.keras.Model):
    def __init__(self, args):
        super().__init__()
        self._args = args
        self.dlrm = RankingModel(args)

    def call(self, inputs):  # pylint: disable=method-hidden
        return self.dlrm(inputs)


def loss_func(y_true, y_pred):
    return tf.reduce_mean(tf.keras.losses.binary_crossentropy(y_true, y_pred))


def input_dataset(args, seed):
    generator = np.random.default_rng(seed)
    rows = args.train_batch_size * args.train_max_steps
    ids = {n: generator.integers(0, 50, (rows, 2)) for n in args.categorical}
    labels = (ids["user"][:, :1] % 2).astype(np.float32)
    features = {**ids, "number": generator.random((rows, 1))}
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(
        args.train_batch_size
    )


@pytest.fixture
def args(tmp_path):
    return argparse.Namespace(
        dim=4,
        categorical=["user", "item"],
        train_batch_size=32,
        train_max_steps=20,
        eval_max_steps=5,
        output_dir=str(tmp_path / "output"),
        weights_dir=str(tmp_path / "output"),
    )


def compiled(args):
    dlrm_in_keras = DlrmInKeras(args)
    opt = tf.train.GradientDescentOptimizer(learning_rate=2.0)
    dlrm_in_keras.compile(
        loss=loss_func,
        metrics=[tf.keras.metrics.AUC()],
        optimizer=opt,
    )
    return dlrm_in_keras


def train(args, dlrm_in_keras, epochs=1):
    return dlrm_in_keras.fit(
        x=input_dataset(args, 0),
        y=None,
        epochs=epochs,
        validation_data=input_dataset(args, 1),
        batch_size=args.train_batch_size,
        validation_steps=args.eval_max_steps,
        steps_per_epoch=args.train_max_steps,
        checkpoint_dir=args.output_dir,
        keep_checkpoint_max=2,
        monitor="val_auc",
        mode="max",
        save_best_only=True,
    )


def test_the_example_trains_keeps_the_best_and_is_shown(args, capsys):
    dlrm_in_keras = compiled(args)
    history = train(args, dlrm_in_keras, epochs=3)
    assert isinstance(history, keras.callbacks.History)
    # Keras numbers the metrics of a process, as "auc_1".
    logs = {re.sub(r"_\d+$", "", n): v for n, v in history.history.items()}
    assert set(logs) == {"loss", "auc", "val_loss", "val_auc"}
    assert logs["loss"][-1] < logs["loss"][0]
    best = tf.train.latest_checkpoint(args.output_dir)
    place = tf.train.load_variable(best, "epoch/.ATTRIBUTES/VARIABLE_VALUE")
    assert place == 1 + int(np.argmax(logs["val_auc"]))
    capsys.readouterr()
    dlrm_in_keras.summary()
    shown = capsys.readouterr().out
    assert "user " in shown
    assert "Total bytes of tables" in shown


def test_the_example_exports_the_best_for_tensorflow_alone(args):
    def predict_fn(args):
        inputs = {
            name: tf.placeholder(tf.int64, shape=[None, 2], name=name)
            for name in args.categorical
        }
        inputs["number"] = tf.placeholder(tf.float64, shape=[None, 1])
        return inputs

    dlrm_in_keras = compiled(args)
    train(args, dlrm_in_keras)
    exported = dlrm_in_keras.export_saved_model(
        args.output_dir, lambda: predict_fn(args)
    )
    # Checkpoints and exports lie in one folder.
    assert tf.train.latest_checkpoint(args.output_dir).endswith("ckpt-1")
    batch = next(iter(input_dataset(args, 2)))[0]
    loaded = tensorflow.saved_model.load(exported.path)
    served = loaded.serve(batch)
    np.testing.assert_allclose(served, dlrm_in_keras(batch), rtol=1e-5)


def test_the_example_starts_from_a_checkpoint(args):
    trained = compiled(args)
    train(args, trained)
    dlrm_in_keras = DlrmInKeras(args)
    dlrm_in_keras.load_weights(args.weights_dir)
    batch = next(iter(input_dataset(args, 2)))[0]
    np.testing.assert_array_equal(dlrm_in_keras(batch), trained(batch))
    assert train(args, compiled(args), epochs=2).epoch == [1]
