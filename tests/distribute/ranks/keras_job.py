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
# Each of its callbacks saves one.
CALLBACK_FILES = [
    "ours/epoch-2.keras",
    "plain/epoch-2.keras",
    "plain/best.weights.h5",
    "legacy/best.keras",
]


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


def read_callback_file(folder, name):
    """The model of a file that a callback has written, and what it gave."""
    kind = name.split("/")[0]
    if name.endswith(".weights.h5"):
        model = model_of(kind)
        model.optimizer.build(model.trainable_variables)
        model.load_weights(folder / name)
    else:
        library = tf_keras if kind == "legacy" else keras
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


if __name__ == "__main__":
    comm = communicator()
    folder = Path(sys.argv[1])
    check_callbacks(folder, comm.rank, comm.size)
    comm.barrier(label="written")
    for name in CALLBACK_FILES:
        model, expected = read_callback_file(folder, name)
        found = model.predict(IDS, verbose=0)
        np.testing.assert_allclose(found, expected, 1e-5, err_msg=name)
        sizes = int(model.get_layer("ids").size())
        total = comm.all_reduce(tf.constant(sizes)).numpy()
        assert total == len(np.unique(IDS)) > sizes, (name, total, sizes)
    for kind in ("plain", "legacy"):
        losses = list((folder / kind).glob("loss-*"))
        assert len(losses) == 2, losses
    check_failed_callback(folder, comm.rank)
    print("passed", flush=True)
