"""A small click model, in a file of its own, so that a test and the processes
that it starts build the same one. Run as a program it continues a training
that a test began and saved through every door:

    python small_network.py DIRECTORY

For each door it loads what the test wrote to DIRECTORY, predicts, trains the
steps that are left, and writes what came out to `DIRECTORY/<door>.npz`.
"""

import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf

from embedra.layers import Embedding


DOORS = ("keras", "weights", "checkpoint")
BATCH = 16
STEPS = 10
SAVED_AT = 5


def examples():
    """Ids (160, 2), tags (160, 3) and labels; new ids appear all the time."""
    generator = np.random.default_rng(8)
    count = STEPS * BATCH
    latest = np.arange(count)[:, None] + 5
    ids = (generator.random((count, 2)) * latest).astype(np.int64) - 3
    tags = generator.integers(0, 12, size=(count, 3))
    labels = (generator.random((count, 1)) < 0.4).astype(np.float32)
    return {"ids": ids, "tags": tags}, labels


def build(*, compiled=True):
    """The model; its weights are drawn anew, those of its tables by key."""
    ids = keras.Input((2,), dtype="int64", name="ids")
    tags = keras.Input((3,), dtype="int64", name="tags")
    parts = [
        keras.layers.Flatten()(Embedding(4, name="id_table")(ids)),
        Embedding(
            3,
            combiner="mean",
            embeddings_initializer=keras.initializers.RandomNormal(seed=1),
            name="tag_table",
        )(tags),
    ]
    hidden = keras.layers.Concatenate()(parts)
    hidden = keras.layers.Dense(8, activation="relu", name="hidden")(hidden)
    score = keras.layers.Dense(1, activation="sigmoid", name="score")(hidden)
    model = keras.Model({"ids": ids, "tags": tags}, score)
    if compiled:
        schedule = keras.optimizers.schedules.ExponentialDecay(0.05, 3, 0.5)
        optimizer = keras.optimizers.Adam(schedule, name="adam")
        model.compile(optimizer, "binary_crossentropy")
    return model


def train(model, first, last):
    """Fits on the batches of steps first..last-1, in order."""
    inputs, labels = examples()
    part = slice(first * BATCH, last * BATCH)
    model.fit(
        {name: values[part] for name, values in inputs.items()},
        labels[part],
        batch_size=BATCH,
        shuffle=False,
        verbose=0,
    )


def predict(model):
    """Predictions for all examples, seen and unseen."""
    return np.asarray(model.predict(examples()[0], batch_size=64, verbose=0))


def state(model):
    """All that training changed, as arrays by name; records sorted by key."""
    arrays = {}
    for name in ("id_table", "tag_table"):
        table = model.get_layer(name).table
        columns = zip(*table.export_chunks(), strict=True)
        keys, *rest = (np.concatenate(column) for column in columns)
        order = np.argsort(keys)
        labels = ("rows", "slots", "frequencies", "last_steps")
        arrays[f"{name}/keys"] = keys[order]
        for label, column in zip(labels, rest, strict=True):
            arrays[f"{name}/{label}"] = column[order]
        arrays[f"{name}/step"] = np.asarray(table.step)
    for name in ("hidden", "score"):
        for i, weight in enumerate(model.get_layer(name).get_weights()):
            arrays[f"{name}/{i}"] = weight
    for variable in model.optimizer.variables:
        if len(variable.shape) and variable.shape[0]:
            arrays[f"optimizer/{variable.path}"] = np.asarray(variable)
    arrays["iterations"] = np.asarray(model.optimizer.iterations)
    arrays["learning_rate"] = np.asarray(model.optimizer.learning_rate)
    return arrays


def save(model, directory):
    """Writes the model through every door."""
    model.save(directory / "model.keras")
    model.save_weights(directory / "model.weights.h5")
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    checkpoint.write(str(directory / "checkpoint"))


def load(door, directory, model=None):
    """A model as saved through `door`; weights go into `model` or a new one."""
    if door == "keras":
        return keras.saving.load_model(directory / "model.keras")
    model = model or build()
    model.optimizer.build(model.trainable_variables)
    if door == "weights":
        model.load_weights(directory / "model.weights.h5")
    else:
        checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        status = checkpoint.read(str(directory / "checkpoint"))
        status.assert_consumed()
    return model


def main():
    directory = pathlib.Path(sys.argv[1])
    for door in DOORS:
        keras.utils.set_random_seed(1000)  # must not matter
        model = load(door, directory)
        results = {f"loaded/{k}": v for k, v in state(model).items()}
        results["loaded/predictions"] = predict(model)
        train(model, SAVED_AT, STEPS)
        results |= {f"final/{k}": v for k, v in state(model).items()}
        results["final/predictions"] = predict(model)
        np.savez(directory / f"{door}.npz", **results)
    inputs = {k: tf.constant(v) for k, v in examples()[0].items()}
    exported = tf.saved_model.load(str(directory / "export"))
    np.savez(directory / "export.npz", predictions=exported.serve(inputs))


if __name__ == "__main__":
    main()
