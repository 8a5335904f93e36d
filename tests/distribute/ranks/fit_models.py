"""Models and data of `fitting.py`: what ranks have, and all together."""

import keras
import numpy as np
import tensorflow as tf

import embedra as hb


NUMBERS = 3


def examples(count, seed=1):
    """Examples with ids of which a part is seen once, and bags, also empty."""
    rng = np.random.default_rng(seed)
    users = rng.integers(0, 12, count)
    users[::3] = 10**12 + np.arange(len(users[::3]))
    bags = [rng.integers(0, 9, rng.integers(0, 4)) for _ in range(count)]
    numbers = rng.normal(size=(count, NUMBERS)).astype(np.float32)
    labels = (numbers.sum(1, keepdims=True) > 0).astype(np.float32)
    weights = rng.uniform(0.5, 2.0, count).astype(np.float32)
    return users, bags, numbers, labels, weights


def batch_of(data, rows):
    """Makes a batch of some rows, in the structure that models take."""
    users, bags, numbers, labels, weights = data
    bags = [bags[i] for i in rows]
    flat = np.concatenate([*bags, []]).astype(np.int64)
    items = tf.RaggedTensor.from_row_lengths(flat, [len(bag) for bag in bags])
    features = {
        "user": tf.constant(users[rows], tf.int64),
        "items": items,
        "numbers": tf.constant(numbers[rows]),
    }
    return features, tf.constant(labels[rows]), tf.constant(weights[rows])


def dataset(batches, known=True):
    """A dataset of batches, the number of which is known or not."""
    spec = (
        {
            "user": tf.TensorSpec([None], tf.int64),
            "items": tf.RaggedTensorSpec([None, None], tf.int64),
            "numbers": tf.TensorSpec([None, NUMBERS], tf.float32),
        },
        tf.TensorSpec([None, 1], tf.float32),
        tf.TensorSpec([None], tf.float32),
    )
    found = tf.data.Dataset.from_generator(
        lambda: iter(batches), output_signature=spec
    )
    if known:
        found = found.apply(
            tf.data.experimental.assert_cardinality(len(batches))
        )
    return found


def divided(sizes, number_of_rows):
    """Divides rows among ranks, as their batches come.

    Args:
        sizes: For each rank the rows of its batches.
        number_of_rows: Of all.

    Returns:
        For each rank the rows of each of its batches, and those of all ranks'
        batches of each step.
    """
    rows = iter(range(number_of_rows))
    steps = max(map(len, sizes))
    of_ranks = [[] for _ in sizes]
    together = []
    for step in range(steps):
        together.append([])
        for rank, own in enumerate(sizes):
            if step < len(own):
                of_ranks[rank].append([next(rows) for _ in range(own[step])])
                together[-1] += of_ranks[rank][-1]
    return of_ranks, together


def ranking(cls, normalized=False):
    """A model with two tables and dense weights, the same in all processes."""
    keras.utils.set_random_seed(3)
    inputs = {
        "user": keras.Input((), dtype="int64", name="user_id"),
        "items": keras.Input(
            (None,), dtype="int64", ragged=True, name="item_ids"
        ),
        "numbers": keras.Input((NUMBERS,), name="numbers"),
    }
    user = hb.layers.Embedding(4, seed=1, name="user")(inputs["user"])
    items = hb.layers.Embedding(3, combiner="mean", seed=1, name="items")(
        inputs["items"]
    )
    x = keras.layers.Concatenate()([user, items, inputs["numbers"]])
    if normalized:
        x = keras.layers.BatchNormalization(momentum=0.5)(x)
    x = keras.layers.Dense(
        5, activation="tanh", kernel_regularizer=keras.regularizers.L2(0.01)
    )(x)
    score = keras.layers.Dense(1, activation="sigmoid")(x)
    return cls(inputs, score)


def compile_settings():
    return {
        "loss": "binary_crossentropy",
        "metrics": ["mae", keras.metrics.AUC(name="auc")],
        "weighted_metrics": [hb.metrics.AUC(name="own_auc")],
    }


def alone(optimizer, *arguments, **settings):
    """Makes a model that one process would train with all data."""
    with hb.scope(sharding=False):
        model = ranking(keras.Model, *arguments)
    model.compile(optimizer, **compile_settings(), **settings)
    return model


def together(optimizer, *arguments, **settings):
    """Makes the model of a job."""
    model = ranking(hb.keras.Model, *arguments)
    model.compile(optimizer, **compile_settings(), **settings)
    return model


def rows_of_tables(model):
    """The rows of each table, and slots, by key."""
    found = {}
    for layer in model.layers:
        if isinstance(layer, hb.layers.Embedding):
            for chunk in layer.table.export_chunks():
                for i, key in enumerate(chunk.keys):
                    found[layer.name, int(key)] = chunk.rows[i]
    return found
