"""Independent references that the acceptance tests compare with.

`DenseTwin` stands in for a table: a plain matrix, looked up by a product with
one-hot vectors, so that the gradients of repeated ids are summed by the matrix
product before any optimizer sees them. (`keras.layers.Embedding` is no such
reference: its gradient is a list of slices, which Keras clips, and some
optimizers square, before repeats are summed.)
"""

import threading

import keras
import numpy as np
import tensorflow as tf
from numpy.testing import assert_allclose

from embedra.layers import Embedding


class DenseTwin(keras.layers.Layer):
    """Looks ids up in a dense matrix; row i belongs to `keys[i]`."""

    def __init__(self, keys, rows, **kwargs):
        super().__init__(**kwargs)
        self.keys = np.asarray(keys, np.int64)
        self.matrix = self.add_weight(shape=np.shape(rows), name="matrix")
        self.matrix.assign(rows)

    def call(self, ids):
        matches = keras.ops.equal(keras.ops.expand_dims(ids, -1), self.keys)
        one_hot = keras.ops.cast(matches, self.compute_dtype)
        return keras.ops.matmul(one_hot, self.matrix)


def random_rows(count, dim, seed=0):
    """Rows drawn from a standard normal distribution, float32."""
    generator = np.random.default_rng(seed)
    return generator.normal(size=(count, dim)).astype(np.float32)


def embedding_with(keys, rows, **kwargs):
    """An `Embedding` whose table holds `rows` under `keys`."""
    layer = Embedding(np.shape(rows)[1], **kwargs)
    layer.table.assign(np.asarray(keys, np.int64), rows)
    return layer


def repeatable(dim, **kwargs):
    """An `Embedding` that starts the same whenever it is made."""
    uniform = keras.initializers.RandomUniform(-0.5, 0.5, seed=11)
    return Embedding(dim, embeddings_initializer=uniform, name="ids", **kwargs)


def network(embedding, width, **kwargs):
    """Ids of shape (width,), embedded, flattened, one dense output."""
    ids = keras.Input((width,), dtype="int64")
    flat = keras.layers.Flatten()(embedding(ids))
    kernel = keras.initializers.RandomNormal(seed=7)
    score = keras.layers.Dense(1, kernel_initializer=kernel, name="score")(flat)
    return keras.Model(ids, score, **kwargs)


def network_and_twin(keys, dim, width):
    """Two networks with equal weights: one over a table, one dense.

    Returns:
        The network, its embedding layer, the twin network, its twin layer.
    """
    rows = random_rows(len(keys), dim)
    layer, twin = embedding_with(keys, rows), DenseTwin(keys, rows)
    return network(layer, width), layer, network(twin, width), twin


def fit(model, optimizer, ids, labels, *, batch_size, **kwargs):
    """Compiles and fits for one epoch, in order; returns the loss."""
    model.compile(optimizer=optimizer, loss="mse", **kwargs)
    history = model.fit(
        ids, labels, batch_size=batch_size, shuffle=False, verbose=0
    )
    return history.history["loss"][-1]


def fit_twin(model, optimizer, ids, labels, batch_size):
    """Fits a dense twin; eagerly, which for four steps is the faster way."""
    kwargs = {"batch_size": batch_size, "run_eagerly": True}
    return fit(model, optimizer, ids, labels, **kwargs)


def every_key_in_every_batch(keys, width, steps, seed=0):
    """Ids (steps x b, width) of batches that hold each key at least once.

    Each batch has `2 * len(keys)` rows: some ids repeat, none is absent, so
    that rows which a dense optimizer moves without a gradient do not differ.

    Returns:
        Ids, labels and the batch size.
    """
    generator = np.random.default_rng(seed)
    size = 2 * len(keys)
    batches = [generator.choice(keys, size=(size, width)) for _ in range(steps)]
    for batch in batches:
        batch[: len(keys), 0] = generator.permutation(keys)
    labels = generator.normal(size=(steps * size, 1)).astype(np.float32)
    return np.concatenate(batches), labels, size


def rows_of(layer, keys):
    """Rows of `keys` as stored (or as they would start), float32."""
    return np.asarray(layer.table.lookup(np.asarray(keys, np.int64)))


def records_of(table):
    """Everything a table keeps: key -> (row, slots, frequency, last step)."""
    records = {}
    for chunk in table.export_chunks():
        for i, key in enumerate(np.asarray(chunk.keys).tolist()):
            records[key] = (
                np.asarray(chunk.rows)[i].copy(),
                np.asarray(chunk.slots)[i].copy(),
                int(chunk.frequencies[i]),
                int(chunk.last_steps[i]),
            )
    return records


def assert_same_records(actual, expected):
    """Asserts that two results of `records_of` agree bit for bit."""
    assert actual.keys() == expected.keys()
    for key, record in expected.items():
        for have, want in zip(actual[key], record, strict=True):
            np.testing.assert_array_equal(have, want, err_msg=f"key {key}")


def assert_all_moved(rows, start):
    """Asserts that every row differs from where it started."""
    assert np.all(np.any(rows != start, axis=1))


def assert_close(actual, expected, *, tolerance=1e-5):
    """Asserts equality up to float32 rounding, relative and absolute."""
    assert_allclose(
        np.asarray(actual),
        np.asarray(expected),
        rtol=tolerance,
        atol=tolerance,
    )


def assert_concurrent_calls_get_their_own_rows(serve):
    """Calls a function 10,000 times from 16 threads.

    Args:
        serve: Gives "ids" as it was given them, below 1000, and their "rows":
            `[id, -2 * id]`.
    """
    wrong, done = [], []

    def call(seed):
        generator = np.random.default_rng(seed)
        for _ in range(625):
            asked = generator.integers(0, 1000, size=generator.integers(1, 50))
            answer = serve(tf.constant(asked))
            rows = np.float32(asked)[:, None] * [[1.0, -2.0]]
            right = np.array_equal(answer["ids"], asked)
            if not (right and np.array_equal(answer["rows"], rows)):
                wrong.append(asked)
            done.append(1)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 10_000
    assert not wrong
