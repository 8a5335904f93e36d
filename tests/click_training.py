"""A training that tests, and the processes that they start, have in common.

Run as a program it trains in a folder, and is stopped from outside:

    python click_training.py FOLDER EPOCHS [STEPS BETWEEN SAVES]
"""

import sys

import keras
import numpy as np
import tensorflow as tf

import embedra as hb


BATCHES = 6


def data(batches=BATCHES, start=0):
    """Batches of ids, of which new ones appear all the time, and labels."""
    generator = np.random.default_rng(3)
    count = batches * 8
    latest = np.arange(count)[:, None] + 5
    ids = (generator.random((count, 3)) * latest).astype(np.int64) + start
    labels = (generator.random((count, 1)) < 0.4).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((ids, labels)).batch(8)


def dense(name, units, activation):
    """A layer whose first weights differ by its name."""
    seed = len(name)
    return keras.layers.Dense(
        units,
        activation,
        kernel_initializer=keras.initializers.GlorotNormal(seed),
        name=name,
    )


class Network(hb.keras.Model):
    """Written by subclassing; `dropout` has a random state of its own."""

    def __init__(self, dropout=0.3):
        super().__init__()
        self.rows = hb.layers.Embedding(4, combiner="mean", seed=1, name="rows")
        self.dropout = keras.layers.Dropout(dropout, seed=5)
        self.hidden = dense("hidden", 4, "relu")
        self.score = dense("score", 1, "sigmoid")

    def call(self, ids, training=None):
        rows = self.rows(ids, training=training)
        hidden = self.hidden(self.dropout(rows, training=training))
        return self.score(hidden)


def functional(width=4, hidden="hidden", units=1):
    """The same by the functional API, or one that differs somewhere."""
    ids = keras.Input((3,), dtype="int64", name="ids")
    rows = hb.layers.Embedding(width, combiner="mean", seed=1, name="rows")(ids)
    rows = keras.layers.Dropout(0.3, seed=5)(rows)
    rows = dense(hidden, 4, "relu")(rows)
    return hb.keras.Model(ids, dense("score", units, "sigmoid")(rows))


def compiled(model=None, optimizer=None, **kwargs):
    model = Network() if model is None else model
    model.compile(
        optimizer or keras.optimizers.Adam(0.05),
        "binary_crossentropy",
        metrics=[keras.metrics.AUC(name="auc")],
        **kwargs,
    )
    return model


def table_of(model):
    layer = model.rows if hasattr(model, "rows") else model.get_layer("rows")
    return layer.table


def records(model):
    """Whole records of the table, in one order."""
    columns = zip(*table_of(model).export_chunks(), strict=True)
    keys, *rest = (np.concatenate(column) for column in columns)
    order = np.argsort(keys)
    return [keys[order], *(column[order] for column in rest)]


def state(model):
    """All that training changed, in one order."""
    arrays = records(model)
    arrays += [v.numpy() for v in model.variables if 0 not in v.shape]
    arrays += [v.numpy() for v in model.optimizer.variables if 0 not in v.shape]
    return arrays


def assert_same_state(model, expected):
    for one, other in zip(state(model), state(expected), strict=True):
        np.testing.assert_array_equal(one, other)


class SlowSteps(keras.callbacks.Callback):
    """Says when a step is done, so that a signal can come in the middle."""

    def on_train_batch_end(self, batch, logs=None):
        del logs
        print("step", batch, flush=True)


def main():
    folder, epochs = sys.argv[1], int(sys.argv[2])
    every = int(sys.argv[3]) if len(sys.argv) > 3 else None
    compiled().fit(
        data(),
        validation_data=data(2),
        epochs=epochs,
        verbose=0,
        checkpoint_dir=folder,
        keep_checkpoint_max=2,
        save_checkpoints_steps=every,
        callbacks=[SlowSteps()],
    )


if __name__ == "__main__":
    main()
