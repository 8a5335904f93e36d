"""SIGTERM comes to one rank: all save after the same step, and go on later."""

import os
import signal
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
from embedra.distribute import job_communicator


FOLDER = sys.argv[1]
comm = job_communicator()
IDS = np.arange(40).reshape(20, 2) + 100 * comm.rank
LABELS = (IDS.sum(1, keepdims=True) % 3 == 0).astype("float32")


class Terminate(keras.callbacks.Callback):
    """Sends the signal in the second epoch."""

    def __init__(self):
        super().__init__()
        self.epoch = 0

    def on_epoch_begin(self, epoch, logs=None):
        del logs
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        del logs
        if self.epoch == 1 and batch == 1 and comm.rank == comm.size - 1:
            os.kill(os.getpid(), signal.SIGTERM)


def fit(folder=None, callbacks=None):
    keras.utils.set_random_seed(2)
    ids = keras.Input((2,), dtype="int64")
    rows = hb.layers.Embedding(4, combiner="sum", seed=1, name="items")(ids)
    model = hb.keras.Model(ids, keras.layers.Dense(1, "sigmoid")(rows))
    model.compile(keras.optimizers.Adagrad(0.5), "binary_crossentropy")
    data = tf.data.Dataset.from_tensor_slices((IDS, LABELS)).batch(4)
    history = model.fit(
        data, epochs=3, callbacks=callbacks, checkpoint_dir=folder, verbose=2
    )
    return model, history


unbroken, _ = fit()
with pytest.raises(SystemExit) as stopped:
    fit(FOLDER, [Terminate()])
assert stopped.value.code == 128 + signal.SIGTERM
saved = tf.train.load_checkpoint(FOLDER)
keys = [f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in ("epoch", "step")]
# The signal is known to all after the next step.
assert [saved.get_tensor(key) for key in keys] == [1, 3]
model, history = fit(FOLDER)
assert history.epoch == [1, 2]
for a, b in zip(unbroken.weights, model.weights, strict=True):
    np.testing.assert_array_equal(a, b)
sizes, _ = comm.all_gather_v([model.layers[1].size()])
assert sum(sizes.numpy()) == 40 * comm.size
print("passed", flush=True)
