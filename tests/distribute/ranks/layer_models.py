"""A model of several kinds of features, and its data, for ranks."""

import keras
import numpy as np
import tensorflow as tf

from embedra.layers import Embedding, EmbeddingCollection


STEPS = 3
BATCH = 24


class Model:
    """Tables of all kinds of features, and dense weights."""

    def __init__(self, one_by_one=False, **settings):
        bags = Embedding(3, combiner="mean", name="bags", seed=3)
        self.one_by_one = one_by_one
        self.collection = EmbeddingCollection(
            {
                "user": Embedding(
                    4, name="user", seed=3, embeddings_regularizer="l2"
                ),
                "bags": bags,
                "last": bags,
                "tags": Embedding(
                    2, combiner="sqrtn", mask_zero=True, name="tags", seed=3
                ),
                "words": Embedding(2, key_dtype="string", name="words", seed=3),
            },
            **settings,
        )
        self.layers = list(dict.fromkeys(self.collection.embeddings.values()))
        initial = np.random.default_rng(2).normal(size=(14, 1)) * 0.3
        self.dense = [
            keras.Variable(initial, dtype="float32"),
            keras.Variable([0.1]),
        ]
        self.variables = [
            *self.dense,
            *(layer.embeddings for layer in self.layers),
        ]

    def rows(self, ids, weights):
        if not self.one_by_one:
            return self.collection(ids, weights=weights, training=True)
        return {
            name: layer(ids[name], weights=weights.get(name), training=True)
            for name, layer in self.collection.embeddings.items()
        }

    def loss(self, users, bags, weights, lasts, tags, words, labels):
        ids = {
            "user": users,
            "bags": bags,
            "last": lasts,
            "tags": tf.sparse.from_dense(tags),
            "words": words,
        }
        rows = self.rows(ids, {"bags": weights})
        features = tf.concat(list(rows.values()), -1)
        logits = features @ self.dense[0].value + self.dense[1].value
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
        mean = tf.math.divide_no_nan(
            tf.reduce_sum(losses), tf.cast(tf.shape(labels)[0], tf.float32)
        )
        penalty = tf.add_n(
            [loss for layer in self.layers for loss in layer.losses]
        )
        return mean + penalty


def batches():
    """All examples of each step; a quarter of the users come once."""
    rng = np.random.default_rng(1)
    for step in range(STEPS):
        users = rng.integers(-20, 20, BATCH)
        users[::4] = 10**12 + np.arange(len(users[::4])) + 100 * step
        lengths = rng.integers(0, 4, BATCH)
        bags = rng.integers(0, 30, sum(lengths))
        weights = rng.uniform(0.5, 2.0, sum(lengths)).astype(np.float32)
        yield (
            tf.constant(users),
            tf.RaggedTensor.from_row_lengths(bags, lengths),
            tf.RaggedTensor.from_row_lengths(weights, lengths),
            tf.constant(rng.integers(0, 40, BATCH)),
            tf.constant(rng.integers(0, 9, (BATCH, 3))),
            tf.constant([f"w{n}" for n in rng.integers(0, 15, BATCH)]),
            tf.constant(rng.integers(0, 2, (BATCH, 1)).astype(np.float32)),
        )


def part_of(batch, step, rank, size, uneven):
    """What a rank has of a batch, and which part of its examples these are.

    An equal part; or, uneven, more on rank 0, which has all of one batch.
    """
    bounds = np.linspace(0, BATCH, size + 1).astype(int)
    if uneven:
        bounds[1:-1] = BATCH if step == 1 else BATCH - size + 1
        bounds[1:-1] += 0 if step == 1 else np.arange(size - 1)
    begin, end = bounds[rank], bounds[rank + 1]
    return [each[begin:end] for each in batch], (end - begin) / BATCH


def records(layers):
    """Rows and slots that this process has, by table and key."""
    found = {}
    for layer in layers:
        for chunk in layer.table.export_chunks():
            for i, key in enumerate(chunk.keys):
                slots = chunk.slots[i] if len(chunk.slots) else []
                found[layer.name, int(key)] = np.concatenate(
                    [chunk.rows[i], slots]
                )
    return found
