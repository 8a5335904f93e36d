"""What `fit` takes, and who may end it, on ranks: small dense models."""

import os
import tempfile
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import embedra as hb
from embedra.distribute import job_communicator
from embedra.optimizers import UnsupportedOptimizerError


# Data may end where they like; only numbers of steps are promises.
ENDED = "Your input ran out of data"
warnings.filterwarnings("error", ENDED)

comm = job_communicator()
RANK, SIZE = comm.rank, comm.size
RNG = np.random.default_rng(0)
X = RNG.normal(size=(26, 3)).astype("float32")
Y = (X.sum(1, keepdims=True) > 0).astype("float32")
# Of 26 rows the first rank has 20.
OWN = slice(0, 20) if RANK == 0 else slice(20, 26)
STEPS = [[*range(8), *range(20, 26)], [*range(8, 16)], [*range(16, 20)]]


def small(cls=hb.keras.Model, *layers, **settings):
    keras.utils.set_random_seed(1)
    inputs = x = keras.Input((3,))
    for layer in layers:
        x = layer(x)
    model = cls(inputs, keras.layers.Dense(1, activation="sigmoid")(x))
    model.compile(
        keras.optimizers.SGD(0.5),
        "binary_crossentropy",
        metrics=["mae"],
        **settings,
    )
    return model


def same_on_all(values):
    of_all, _ = comm.all_gather_v(tf.constant([values], tf.float64))
    assert np.ptp(of_all.numpy(), axis=0).max() == 0.0, of_all
    assert np.isfinite(of_all.numpy()).all()


def check_history(history, expected=None):
    for name in sorted(history.history):
        same_on_all(history.history[name])
        if expected is not None:
            np.testing.assert_allclose(
                history.history[name], expected.history[name], atol=1e-5
            )


class Pairs(keras.utils.PyDataset):
    """Batches of the own rows, which count their epochs."""

    epochs = 0

    def __len__(self):
        return -(-len(X[OWN]) // 8)

    def __getitem__(self, index):
        rows = slice(8 * index, 8 * index + 8)
        return X[OWN][rows], Y[OWN][rows]

    def on_epoch_end(self):
        self.epochs += 1


def generator():
    for start in range(0, len(X[OWN]), 8):
        yield X[OWN][start : start + 8], Y[OWN][start : start + 8]


# Arrays, generators and datasets of Keras give the same.
class_weight = {0: 1.0, 1: 3.0}
weights = np.where(Y[:, 0] > 0, 3.0, 1.0).astype("float32")
weighed = tf.data.Dataset.from_generator(
    lambda: ((X[rows], Y[rows], weights[rows]) for rows in STEPS),
    output_signature=(
        tf.TensorSpec([None, 3]),
        tf.TensorSpec([None, 1]),
        tf.TensorSpec([None]),
    ),
).apply(tf.data.experimental.assert_cardinality(len(STEPS)))
expected = small(keras.Model).fit(weighed, epochs=2, verbose=0)
history = small(steps_per_execution=2).fit(
    X[OWN],
    Y[OWN],
    batch_size=8,
    epochs=2,
    shuffle=False,
    class_weight=class_weight,
    verbose=0,
)
check_history(history, expected)
plain = weighed.map(lambda x, y, _: (x, y))
expected = small(keras.Model).fit(plain, epochs=1, verbose=0)
check_history(small().fit(generator(), epochs=1, verbose=0), expected)
pairs = Pairs()
history = small(run_eagerly=True).fit(pairs, epochs=1, shuffle=False, verbose=0)
check_history(history, expected)
assert pairs.epochs == 1
model = small()
model.fit(X[OWN], Y[OWN], validation_split=0.5, epochs=2, verbose=0)
same_on_all(model.history.history["val_loss"])
model.fit(X[OWN], Y[OWN], batch_size=8, verbose=0)
assert model.history.params["steps"] == 3, "as many as the first rank has"
print("inputs", flush=True)


# Steps of an epoch are counted on all ranks; data go on in the next epoch.
class Count(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        del logs
        batches.append(batch)


batches = []
count = Count()
data = tf.data.Dataset.from_tensor_slices((X[OWN], Y[OWN])).batch(4)
with pytest.warns(UserWarning, match=ENDED):
    model.fit(data, steps_per_epoch=2, epochs=3, callbacks=[count], verbose=0)
assert batches == [0, 1, 0, 1, 0], batches
sparse = tf.data.Dataset.from_tensor_slices(
    (tf.sparse.from_dense(X[OWN]), Y[OWN])
).batch(4, drop_remainder=True)
assert model.predict(sparse, verbose=0).shape == (len(X[OWN]) // 4 * 4, 1)

# Numbers of steps that differ, as those of uneven data may, are told.
for wrong, message in (
    ({"steps_per_epoch": 2 + RANK}, "same steps_per_epoch.*0 has 2, rank 1 3"),
    ({"epochs": 1 + RANK}, "same epochs.*has 1, rank 1 2"),
    (
        {"validation_split": 0.5 * RANK},
        "validation data.*has none, rank 1 some",
    ),
):
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y, verbose=0, **wrong)
with pytest.raises(ValueError, match="`evaluate` the same steps"):
    model.evaluate(data, steps=2 if RANK else None, verbose=0)
print("steps", flush=True)


# A callback of one rank ends the training of all, a step later.
class Stop(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        del logs
        if RANK == SIZE - 1 and batch == 0:
            self.model.stop_training = True


batches.clear()
model.fit(data, epochs=3, callbacks=[Stop(), count], verbose=0)
assert batches == [0, 1], batches


class StopEpoch(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        del logs
        self.model.stop_training = RANK == 0 and epoch == 1


history = model.fit(data, epochs=4, callbacks=StopEpoch(), verbose=0)
assert history.epoch == [0, 1]
print("ends", flush=True)

# Each rank writes of its part of the tables, in a folder of its own.
with tempfile.TemporaryDirectory() as folder:
    summary = hb.keras.callbacks.TableSummary(folder)
    model.fit(data, callbacks=[summary], verbose=0)
    assert os.listdir(folder) == [f"tables-{RANK}"]

# Batch normalization: states are averaged by rows, and stay numbers where a
# rank has none.
model = small(hb.keras.Model, keras.layers.BatchNormalization(momentum=0.5))
model.fit(X[OWN], Y[OWN], batch_size=20, shuffle=False, verbose=0)
normalization = model.layers[1]
np.testing.assert_allclose(
    normalization.moving_mean, 0.5 * X.mean(0), atol=1e-6
)
own = slice(0, 26) if RANK == 0 else slice(0, 0)
model.fit(X[own], Y[own], batch_size=13, epochs=2, verbose=0)
for weight in model.get_weights():
    same_on_all(weight.flatten())
print("batch normalization", flush=True)


# A step of the user's own, with a metric that has the examples.
class Grouped(hb.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.gauc = hb.metrics.GroupedAUC()

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x)
            loss = self.optimizer.scale_loss(tf.reduce_mean((logits - y) ** 2))
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(
            zip(gradients, self.trainable_weights, strict=True)
        )
        groups = tf.cast(x[:, 0] > 0, tf.int64)
        self.gauc.update_state(y, logits[:, 0] + x[:, 1], groups=groups)
        return {"gauc": self.gauc.result(), "first": tf.reduce_sum(x)}


model = Grouped()
model.compile(keras.optimizers.SGD(0.0))
history = model.fit(X[OWN], Y[OWN], batch_size=8, verbose=0)
check_history(history)
metric = hb.metrics.GroupedAUC()
scores = model(X)[:, 0] + X[:, 1]
metric.update_state(Y, scores, groups=(X[:, 0] > 0).astype("int64"))
with model.gauc.over_ranks(comm):
    np.testing.assert_allclose(model.gauc.result(), metric.result(), atol=1e-6)
assert float(model.gauc.result()) != float(metric.result())
print("own steps", flush=True)

# Optimizers of tf_keras and TensorFlow 1 add up gradients, in steps of one's
# own; they do not clip by a norm of which each rank knows a part.
for optimizer in (
    tf_keras.optimizers.SGD(1.0),
    tf_keras.optimizers.legacy.SGD(1.0),
    tf.compat.v1.train.GradientDescentOptimizer(1.0),
):
    weight = tf.Variable(0.0)
    pairs = [(tf.constant(RANK + 1.0), weight)]
    hb.DynamicEmbeddingOptimizer(optimizer).apply_gradients(pairs)
    assert float(weight) == -(SIZE + 1) / 2
layer = hb.layers.Embedding(2, name="split")
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(layer(tf.constant([1, 2]), training=True))
gradients = tape.gradient(loss, layer.trainable_variables)
clipping = tf_keras.optimizers.SGD(1.0, clipnorm=1.0)
with pytest.raises(UnsupportedOptimizerError, match="'split' is split over"):
    hb.DynamicEmbeddingOptimizer(clipping).apply_gradients(
        zip(gradients, layer.trainable_variables, strict=True)
    )
print("other optimizers", flush=True)
print("passed", flush=True)
