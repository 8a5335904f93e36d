"""A dense model that does what a table should do, for comparison.

`keras.layers.Embedding` is no reference: its gradients are slices, which Keras
clips and squares before duplicates are summed. A product with one-hot vectors
gives summed gradients.
"""

import keras
import numpy as np

from embedra.layers import Embedding


VOCABULARY = 12
DIM = 3
WIDTH = 4


class OneHotEmbedding(keras.layers.Layer):
    """A dense matrix of rows, looked up by one-hot products."""

    def __init__(self, rows, **kwargs):
        super().__init__(**kwargs)
        self.rows = self.add_weight(shape=rows.shape, name="embeddings")
        self.rows.assign(rows)

    def call(self, ids):
        one_hot = keras.ops.one_hot(ids, VOCABULARY, dtype=self.compute_dtype)
        return keras.ops.matmul(one_hot, self.rows)


def start_rows():
    """Rows that both models start with."""
    generator = np.random.default_rng(5)
    return generator.normal(size=(VOCABULARY, DIM)).astype(np.float32)


def batches(steps=4):
    """Ids in which every key appears, some repeatedly, and labels."""
    generator = np.random.default_rng(6)
    for _ in range(steps):
        ids = generator.permutation(
            np.r_[np.arange(VOCABULARY), generator.integers(0, 4, VOCABULARY)]
        ).reshape(-1, WIDTH)
        yield ids.astype(np.int64), generator.normal(size=(len(ids), 1))


def model_over(embedding, dtype=None):
    """A small model over an embedding."""
    ids = keras.Input((WIDTH,), dtype="int64")
    flat = keras.layers.Flatten(dtype=dtype)(embedding(ids))
    kernel = keras.initializers.RandomNormal(seed=3)
    score = keras.layers.Dense(1, kernel_initializer=kernel, dtype=dtype)(flat)
    return keras.Model(
        ids, keras.layers.Activation("linear", dtype="float32")(score)
    )


def dense_model(dtype=None):
    """The reference, and how to read its rows."""
    layer = OneHotEmbedding(start_rows(), dtype=dtype)
    return model_over(layer, dtype), lambda: layer.rows.numpy()


def table_model(dtype=None, **kwargs):
    """The same with a table, and how to read its rows."""
    layer = Embedding(DIM, dtype=dtype, **kwargs)
    layer.table.assign(np.arange(VOCABULARY), start_rows())
    model = model_over(layer, dtype)
    return model, lambda: layer.table.lookup(np.arange(VOCABULARY)).numpy()


def fit(model, optimizer, steps=4, **compile_options):
    """Trains a model for some steps.

    Returns:
        The model.
    """
    model.compile(optimizer, "mse", **compile_options)
    for ids, labels in batches(steps):
        model.train_on_batch(ids, labels)
    return model
