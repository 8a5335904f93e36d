"""A model whose tables ranks hold together, saved by each door."""

import sys
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import embedra as hb
from embedra.distribute import communicator


IDS = np.random.default_rng(0).integers(-(2**40), 2**40, (64, 2))
LABELS = (IDS.sum(1, keepdims=True) % 2).astype("float32")


def model_of():
    users = keras.Input((2,), dtype="int64")
    rows = hb.layers.Embedding(4, combiner="sum", name="users")(users)
    rows = keras.layers.Dropout(0.5, seed=7)(rows)
    score = keras.layers.Dense(1, activation="sigmoid", name="score")(rows)
    model = hb.keras.Model(users, score)
    model.compile("adam", "binary_crossentropy", metrics=["AUC"])
    return model


def data_of(rank, size, batch=8):
    features, labels = IDS[rank::size], LABELS[rank::size]
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(
        batch // size
    )


def table_of(model):
    return model.get_layer("users").table


def fit(model, folder, epochs, rank, size, callbacks=()):
    model.fit(
        data_of(rank, size),
        epochs=epochs,
        verbose=0,
        shuffle=False,
        checkpoint_dir=folder,
        save_checkpoints_steps=3,
        callbacks=list(callbacks),
    )


def write(folder, rank, size):
    keras.utils.set_random_seed(1)
    model = model_of()
    best = keras.callbacks.ModelCheckpoint(
        folder / "best.weights.h5", save_weights_only=True
    )
    fit(model, folder / "fit", 2, rank, size, [best])
    model.save_weights(folder / "model.weights.h5")
    model.save(folder / "model.keras")
    exported = model.export_saved_model(folder / "export")
    assert exported.tables[0].keys == len(np.unique(IDS))
    assert Path(exported.path).parent == folder / "export"
    hb.saved_model.export(model, folder / "native", native_ops=True)
    predictions = model.predict(IDS, verbose=0)
    if rank == 0:
        np.save(folder / "predictions", predictions)


def check_conversion():
    """A converted model has the rows of this rank."""
    keras.utils.set_random_seed(1)
    ids = keras.Input((2,), dtype="int64")
    items = keras.layers.Embedding(4, 4, name="items")
    small = keras.layers.Lambda(lambda ids: ids % 4)(ids)
    users = hb.layers.Embedding(4, name="users")
    model = hb.keras.Model(ids, keras.layers.add([items(small), users(ids)]))
    users(IDS, training=True)
    converted = hb.keras.convert(model)
    expected, found = (m.predict(IDS, verbose=0) for m in (model, converted))
    np.testing.assert_allclose(found, expected, 1e-6)
    assert table_of(converted).size() == users.size() > 0


def check(folder):
    """Reads what was written by each door."""
    expected = np.load(folder / "predictions.npy")
    same = keras.models.load_model(folder / "model.keras")
    np.testing.assert_allclose(same.predict(IDS, verbose=0), expected, 1e-5)
    for path in ("best.weights.h5", "model.weights.h5", "fit"):
        model = model_of()
        model.load_weights(folder / path)
        np.testing.assert_allclose(
            model.predict(IDS, verbose=0), expected, 1e-5, err_msg=path
        )
    model = model_of()
    model.evaluate(data_of(0, 1), checkpoint_dir=folder / "fit", verbose=0)
    (export,) = (folder / "export").iterdir()
    for path in (export, folder / "native"):
        loaded = tf.saved_model.load(str(path))
        np.testing.assert_allclose(loaded.serve(IDS), expected, 1e-5)
    return [same, model]


if __name__ == "__main__":
    comm = communicator()
    check_conversion()
    action, *folders = sys.argv[1:]
    for folder in map(Path, folders):
        if action == "write":
            write(folder, comm.rank, comm.size)
        comm.barrier(label="written")
        sizes = [int(table_of(model).size()) for model in check(folder)]
        totals = comm.all_reduce(tf.constant(sizes)).numpy().tolist()
        assert totals == [len(np.unique(IDS))] * 2, totals
        assert max(sizes) < len(np.unique(IDS)), sizes
    comm.barrier(label="end")
    print(f"rank {comm.rank} passed", flush=True)
