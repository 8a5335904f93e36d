"""What Keras models of a job do besides training."""

import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
import tf_keras

import embedra as hb
import embedra.dynamic_embedding as de
from embedra.distribute import RankError, communicator


IDS = np.random.default_rng(0).integers(-(2**40), 2**40, (24, 2))
LABELS = (IDS.sum(1, keepdims=True) % 2).astype("float32")
# What callbacks and `de_hvd_save_model` save.
FILES = [
    "ours/epoch-2.keras",
    "plain/epoch-2.keras",
    "plain/best.weights.h5",
    "legacy/best.keras",
    "ours/saved",
    "plain/saved",
    "plain/saved.keras",
    "legacy/saved.keras",
]
EXPORTS = ["ours/saved", "plain/saved"]


def network(library, embedding):
    ids = library.Input((2,), dtype="int64")
    rows = embedding(4, combiner="sum", name="ids")(ids)
    return ids, library.layers.Dense(1, activation="sigmoid")(rows)


def model_of(kind):
    """A model of the kind "ours", "plain" or "legacy", compiled."""
    if kind == "legacy":
        layer = de.keras.legacy.layers.SquashedEmbedding
        model = tf_keras.Model(*network(tf_keras, layer))
        plain = tf_keras.optimizers.Adam(0.01)
    else:
        made = hb.keras.Model if kind == "ours" else keras.Model
        model = made(*network(keras, de.keras.layers.SquashedEmbedding))
        plain = keras.optimizers.Adam(0.01)
    model.compile(de.DynamicEmbeddingOptimizer(plain), "binary_crossentropy")
    return model


def check_callbacks(folder, rank, size):
    """Rank 0 decides when to save, with all; logs of others are their own."""
    for kind in ("ours", "plain", "legacy"):
        keras.utils.set_random_seed(1)
        model = model_of(kind)
        callbacks = callbacks_of(folder / kind, kind)
        model.fit(
            IDS[rank::size],
            LABELS[rank::size],
            batch_size=len(IDS) // size // 2,
            epochs=2,
            shuffle=False,
            callbacks=callbacks,
            verbose=0,
        )
        expected = model.predict(IDS, verbose=0)
        if rank == 0:
            np.save(folder / kind / "predictions", expected)
        save = de.keras.models.de_hvd_save_model
        save(model, folder / kind / "saved.keras")
        if kind != "legacy":
            save(model, folder / kind / "saved")
        else:
            check_refused(save, model, folder / "no")


def check_refused(call, *arguments):
    try:
        call(*arguments)
    except RankError as error:
        assert "NotImplementedError: In a job" in str(error)  # noqa: PT017
    else:
        raise AssertionError


def callbacks_of(folder, kind):
    made = {
        "ours": de.keras.callbacks,
        "plain": de.keras.callbacks,
        "legacy": de.keras.legacy.callbacks,
    }[kind].DEHvdModelCheckpoint
    every = made(str(folder / "epoch-{epoch}.keras"), save_freq=2)
    if kind == "ours":
        return [every]
    # Rank 0 names its own loss in the path; on others it is another one.
    named = made(str(folder / "loss-{loss:.6f}" / "model.keras"))
    best = made(
        str(folder / "best.weights.h5")
        if kind == "plain"
        else str(folder / "best.keras"),
        monitor="loss",
        mode="min",
        save_best_only=True,
        save_weights_only=kind == "plain",
    )
    return [every, named, best]


def read(folder, name):
    """The model of a file that a callback has written, and what it gave."""
    kind = name.split("/")[0]
    if name.endswith("saved"):
        model = de.keras.models.load_model(folder / name)
    elif name.endswith(".weights.h5"):
        model = model_of(kind)
        model.optimizer.build(model.trainable_variables)
        model.load_weights(folder / name)
    else:
        # tf_keras does not find a class that was not imported.
        legacy = kind == "legacy" and de.keras.legacy.layers
        library = tf_keras if legacy else keras
        model = library.models.load_model(folder / name)
    return model, np.load(folder / kind / "predictions.npy")


def check_failed_callback(folder, rank):
    """What fails on one rank fails on all, and is named."""
    model = model_of("ours")
    made = de.keras.callbacks.DEHvdModelCheckpoint
    callback = made(str(folder / "{unknown}.keras"))
    try:
        model.fit(IDS, LABELS, callbacks=[callback], verbose=0)
    except RankError as error:
        assert "Rank 0 failed" in str(error), error  # noqa: PT017
        assert "unknown" in str(error), error  # noqa: PT017
    else:
        raise AssertionError(rank)


class OwnSteps(hb.keras.Model):
    """Logs more of the last batch than its metrics."""

    def train_step(self, data):
        return super().train_step(data) | logs_of(data[1])

    def test_step(self, data):
        return super().test_step(data) | logs_of(data[1])


def logs_of(labels):
    """No number where there are no rows."""
    return {"mean": tf.reduce_mean(labels), "name": tf.constant([1.0, 2.0])}


def check_logs(comm):
    """Logs of own steps are averaged by the rows of the last batches."""
    keras.utils.set_random_seed(1)
    model = OwnSteps(*network(keras, de.keras.layers.SquashedEmbedding))
    model.compile("sgd", "binary_crossentropy", metrics=["mae"])
    # In the last step there is one row on rank 0, and three on the others; or
    # none on rank 0.
    for own, others in ((5, 7), (4, 7)):
        count = own if comm.rank == 0 else others
        first = 0 if comm.rank == 0 else own + (comm.rank - 1) * others
        labels = np.arange(first, first + count, dtype="float32")[:, None]
        data = IDS[:count], labels
        last, _ = comm.all_gather_v(labels[4:])
        logs = model.evaluate(*data, batch_size=4, verbose=0, return_dict=True)
        np.testing.assert_allclose(logs["mean"], np.mean(last), 1e-6)
        # As in one process: here they would be those of this rank.
        for name in ("loss", "mae"):
            assert_same(comm, logs[name])
        history = model.fit(
            *data,
            batch_size=4,
            shuffle=False,
            verbose=0,
            validation_data=data,
            validation_batch_size=4,
        ).history
        for name in ("mean", "val_mean"):
            np.testing.assert_allclose(history[name][0], np.mean(last), 1e-6)
        for name in ("loss", "val_loss", "mae", "val_mae"):
            assert_same(comm, history[name][0])


def assert_same(comm, value):
    """What is the same on all ranks."""
    value = tf.cast(tf.convert_to_tensor(value), tf.float64)
    lowest, highest = (comm.all_reduce(value, how) for how in ("min", "max"))
    np.testing.assert_array_equal(lowest, highest)


def check_own_loop(comm, library):
    """Ranks that begin with other dense weights take those of rank 0."""
    # Each has a seed of its own.
    library.utils.set_random_seed(comm.rank)
    if library is keras:
        layer, plain = de.keras.layers.SquashedEmbedding, keras.optimizers.Adam
    else:
        layer = de.keras.legacy.layers.SquashedEmbedding
        plain = tf_keras.optimizers.Adam
    model = library.Model(*network(library, layer))
    optimizer = de.DynamicEmbeddingOptimizer(plain(0.1))
    before = model.layers[-1].get_weights()
    of_first = [comm.broadcast(value) for value in before]

    @tf.function
    def step(ids, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(ids, training=True) - labels) ** 2)
        weights = model.trainable_variables
        optimizer.apply_gradients(
            zip(tape.gradient(loss, weights), weights, strict=True)
        )
        return loss

    step(IDS[comm.rank :: comm.size], LABELS[comm.rank :: comm.size])
    for value, first in zip(
        model.layers[-1].get_weights(), of_first, strict=True
    ):
        assert_same(comm, value)
        # The step was made on them.
        assert np.abs(value - first).max() < 0.11
    # Once: afterwards each rank may do as it likes.
    model.layers[-1].set_weights(before)
    step(IDS[comm.rank :: comm.size], LABELS[comm.rank :: comm.size])
    kernels, _ = comm.all_gather_v(model.layers[-1].kernel[None])
    assert np.ptp(kernels.numpy(), axis=0).max() > 0


def check_summary(comm):
    """Any rank may ask for a summary by itself, which says whose it is."""
    model = model_of("ours")
    model(IDS)
    model.get_layer("ids")(IDS, training=True)
    lines = []
    if comm.rank == 1:
        model.summary(print_fn=lambda line, **_: lines.append(line))
        size = int(model.get_layer("ids").size())
        assert any("Tables on rank 1 of 2 (" in line for line in lines), lines
        (cells,) = (x.split() for x in lines if x.startswith("  ids "))
        assert int(cells[1]) == size, lines
        assert 0 < size < len(np.unique(IDS))


if __name__ == "__main__":
    comm = communicator()
    folder = Path(sys.argv[1])
    check_callbacks(folder, comm.rank, comm.size)
    comm.barrier(label="written")
    for name in FILES:
        model, expected = read(folder, name)
        found = model.predict(IDS, verbose=0)
        np.testing.assert_allclose(found, expected, 1e-5, err_msg=name)
        sizes = int(model.get_layer("ids").size())
        total = comm.all_reduce(tf.constant(sizes)).numpy()
        assert total == len(np.unique(IDS)) > sizes, (name, total, sizes)
    for kind in ("plain", "legacy"):
        losses = list((folder / kind).glob("loss-*"))
        assert len(losses) == 2, losses
    check_failed_callback(folder, comm.rank)
    check_logs(comm)
    check_own_loop(comm, keras)
    check_own_loop(comm, tf_keras)
    check_summary(comm)
    print("passed", flush=True)
