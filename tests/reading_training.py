"""Trainings on Parquet files that count how often each row is used.

As a program, with a number of steps, a path of rows and a folder: trainings on
each pipeline, each begun after so many steps of the one before. After as many
of the last one, all are killed.
"""

import os
import signal
import sys
from pathlib import Path

import keras
import tensorflow as tf

import embedra as hb
from embedra.data import ParquetDataset


ROWS, BATCH, EPOCHS = 100, 8, 3
STEPS = 13  # of an epoch


def to_pair(row):
    return row["id"], row["label"]


# Dataset and steps of an epoch, where `fit` is told.
PIPELINES = {
    "shuffled": (lambda data: data(shuffle=40).map(to_pair), None),
    "mapped": (lambda data: data(shuffle=40).map(to_pair).repeat(), STEPS),
    "skipping": (
        lambda data: data(shuffle=40, on_error="skip").map(to_pair),
        None,
    ),
}


class AtStep(keras.callbacks.Callback):
    """Does something after a step that is not passed over."""

    def __init__(self, number, act):
        super().__init__()
        self._left = number
        self._act = act

    def on_train_batch_end(self, batch, logs=None):
        del batch, logs
        self._left -= 1
        if not self._left:
            self._act()


def train(pipeline, path, folder, *callbacks):
    """Trains to the end, and tells how often each row was used."""
    ids = keras.Input((), dtype="int64")
    layer = hb.layers.Embedding(
        1, embeddings_initializer="zeros", name=f"rows_{pipeline}"
    )
    model = hb.keras.Model(ids, layer(ids))
    # Each use of a row moves it by one, as labels are far below.
    loss = keras.losses.MeanAbsoluteError(reduction="sum")
    model.compile(keras.optimizers.SGD(1.0), loss)
    make, steps = PIPELINES[pipeline]
    model.fit(
        make(lambda **options: ParquetDataset(path, BATCH, **options)),
        epochs=EPOCHS,
        steps_per_epoch=steps,
        verbose=0,
        checkpoint_dir=str(Path(folder, pipeline)),
        save_checkpoints_steps=4,
        callbacks=callbacks,
    )
    return -layer.table.lookup(tf.range(ROWS, dtype=tf.int64)).numpy()[:, 0]


def train_and_die(steps, path, folder):
    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def training(pipeline, then):
        return lambda: train(pipeline, path, folder, AtStep(steps, then))

    act = die
    for pipeline in PIPELINES:
        act = training(pipeline, act)
    act()


if __name__ == "__main__":
    train_and_die(int(sys.argv[1]), *sys.argv[2:])
