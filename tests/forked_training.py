"""Trainings that are to be killed, each forked from one process.

Importing TensorFlow takes far longer than these trainings, so this process
imports it once, runs nothing of it, and forks. For each line with a folder that
it reads, it writes "process" and the id of a process that trains there without
end. That one writes "step" and a number after each step, before it saves, and
this one "ended" when it is gone.
"""

import os
import sys

import keras
import tensorflow as tf

import embedra as hb


def model():
    """A model whose table has as many rows as it has done steps of `data`."""
    ids = keras.Input((1,), dtype="int64")
    rows = hb.layers.Embedding(1, combiner="sum", name="rows")(ids)
    built = hb.keras.Model(ids, rows)
    built.compile("adam", "mse")
    return built


def data():
    """One new id in each batch."""
    ids = tf.data.Dataset.range(10**9).batch(1).batch(1)
    return ids.map(lambda batch: (batch, tf.cast(batch, tf.float32)))


class SaySteps(keras.callbacks.Callback):
    """Writes how many steps are done."""

    def on_train_batch_end(self, batch, logs=None):
        del logs
        print("step", batch + 1, flush=True)


def train(folder):
    model().fit(
        data(),
        verbose=0,
        checkpoint_dir=folder,
        keep_checkpoint_max=2,
        save_checkpoints_steps=1,
        callbacks=[SaySteps()],
    )


def main():
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            train(line.strip())
            return
        print("process", process, flush=True)
        os.waitpid(process, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main()
