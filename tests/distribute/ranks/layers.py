"""Layers whose tables are split over ranks, against one rank with all data."""

import functools

import keras
import numpy as np
import tensorflow as tf
from layer_models import (
    BATCH,
    Model,
    batches,
    part_of,
    records,
)

import embedra
from embedra import DynamicEmbeddingOptimizer, _ops
from embedra._ops import _communication_gradients
from embedra.distribute import job_communicator, owned, reduce_gradients
from embedra.layers import Embedding, EmbeddingCollection
from embedra.optimizers import UnsupportedOptimizerError


comm = job_communicator()
RANK, SIZE = comm.rank, comm.size


def same_on_all(value):
    return int(comm.all_reduce(tf.constant(int(value), tf.int64)))


@functools.cache
def trained_by_one(make_optimizer):
    """What a plain optimizer makes of all data, with tables that are whole."""
    with embedra.scope(sharding=False):
        model = Model()
    optimizer = make_optimizer()
    optimizer.build(model.variables)
    losses = []
    for batch in batches():
        with tf.GradientTape() as tape:
            loss = model.loss(*batch)
        gradients = tape.gradient(loss, model.variables)
        optimizer.apply(gradients, model.variables)
        losses.append(loss)
    return model, losses


def check_training(
    make_optimizer, tolerance=2e-5, uneven=False, compiled=False, **settings
):
    one, losses = trained_by_one(make_optimizer)
    many = Model(**settings)
    optimizer = DynamicEmbeddingOptimizer(make_optimizer())
    optimizer.build(many.variables)

    def step(scale, *batch):
        with tf.GradientTape() as tape:
            loss = many.loss(*batch) * scale
        gradients = tape.gradient(loss, many.variables)
        # Those of tables are with the ranks that own their rows.
        count = len(many.dense)
        gradients[:count] = reduce_gradients(comm, gradients[:count])
        optimizer.apply(gradients, many.variables)
        return comm.all_reduce(loss, "mean")

    if compiled:
        step = tf.function(step, reduce_retracing=True)
    for number, (batch, loss) in enumerate(zip(batches(), losses, strict=True)):
        part, share = part_of(batch, number, RANK, SIZE, uneven)
        found = step(tf.constant(share * SIZE, tf.float32), *part)
        np.testing.assert_allclose(found, loss, rtol=100 * tolerance)
    for weight, expected in zip(many.dense, one.dense, strict=True):
        np.testing.assert_allclose(weight, expected, atol=tolerance)
    expected, own = records(one.layers), records(many.layers)
    for key, values in own.items():
        np.testing.assert_allclose(
            values, expected[key], atol=tolerance, err_msg=str(key)
        )
    assert same_on_all(len(own)) == len(expected)
    assert len(own) > 0.4 * len(expected) / SIZE


def check_first_rows():
    """Each rank brings ids that no other has, and some of them none."""
    ids = np.arange(40) + 1000 * RANK if RANK else np.zeros(0, np.int64)
    layer = Embedding(3, name="disjoint")
    rows = layer(ids, training=True)
    assert rows.shape == (len(ids), 3)
    with embedra.scope(sharding=False):
        whole = Embedding(3, name="disjoint", seed=layer.table.seed)
    assert whole.table.communicator is None
    np.testing.assert_array_equal(rows, whole(ids))
    everyone, _ = comm.all_gather_v(tf.constant(ids, tf.int64))
    np.testing.assert_array_equal(
        np.sort(np.concatenate([c.keys for c in layer.table.export_chunks()])),
        np.sort(everyone[owned(everyone, comm)]),
    )


def check_insertion():
    layer = Embedding(2, name="modes", embeddings_initializer="ones")
    ids = tf.range(10) + RANK
    rows = layer(ids, training=False)
    layer(ids)
    assert same_on_all(layer.size()) == 0
    np.testing.assert_array_equal(rows, np.ones((10, 2)))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids))
    tape.gradient(loss, layer.trainable_variables)
    assert same_on_all(layer.size()) == 9 + SIZE
    zeros = Embedding(2, name="zeros", inference_default="zeros")
    assert not np.any(zeros(ids, training=False))
    frozen = Embedding(2, name="frozen", trainable=False)
    frozen(ids, training=True)
    assert same_on_all(frozen.size() + zeros.size()) == 0


def check_python_initializer():
    def by_key(shape, keys):
        return tf.cast(keys, tf.float32)[:, None] * tf.ones(shape)

    layer = Embedding(2, name="python", embeddings_initializer=by_key)
    ids = tf.range(6) + 10 * RANK
    rows = layer(ids, training=True)
    np.testing.assert_array_equal(rows[:, 0], ids)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids + 100))
    tape.gradient(loss, layer.trainable_variables)
    assert same_on_all(layer.size()) == 12 * SIZE


def check_whole_tables_beside_split_ones():
    with embedra.scope(sharding=False):
        whole = Embedding(2, name="whole", embeddings_initializer="ones")
    split = Embedding(2, name="split", embeddings_initializer="ones")
    collection = EmbeddingCollection({"a": split, "b": whole, "c": split})
    ids = tf.range(4) + RANK
    rows = collection({"a": ids, "b": ids, "c": ids + 1}, training=True)
    assert all(np.all(each == 1) for each in rows.values())
    assert int(whole.size()) == 4
    assert same_on_all(split.size()) == 4 + SIZE


def check_plain_optimizer_is_refused():
    layer = Embedding(2, name="plain")
    optimizer = keras.optimizers.SGD()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(tf.constant([1, 2]), training=True))
    gradients = tape.gradient(loss, layer.trainable_variables)
    try:
        optimizer.apply(gradients, layer.trainable_variables)
    except UnsupportedOptimizerError as error:
        assert "DynamicEmbeddingOptimizer" in str(error)  # noqa: PT017
        return
    msg = "a plain optimizer made a step"
    raise AssertionError(msg)


class SentBytes:
    """Counts what this rank sends to others, in eager exchanges of rows."""

    def __init__(self):
        self.count = self.exchanges = 0
        self._send = _ops.all_to_all_v

    def __enter__(self):
        _ops.all_to_all_v = self._counted
        _communication_gradients.all_to_all_v = self._counted
        return self

    def __exit__(self, *_):
        _ops.all_to_all_v = self._send
        _communication_gradients.all_to_all_v = self._send

    def _counted(self, handle, values, splits, *others, **settings):
        self.exchanges += 1
        for value, split in zip(values, splits, strict=True):
            away = int(tf.reduce_sum(split) - split[RANK])
            width = int(np.prod(value.shape[1:]))
            self.count += away * width * value.dtype.size
        return self._send(handle, values, splits, *others, **settings)


def check_bytes(wire_dtype, size, num_groups):
    shared = Embedding(6, name="shared")
    collection = EmbeddingCollection(
        {
            "user": Embedding(4, name="user"),
            "item": shared,
            "last": shared,
            "tag": Embedding(2, combiner="sum", name="tag"),
        },
        wire_dtype=wire_dtype,
        num_groups=num_groups,
    )
    rng = np.random.default_rng(RANK)
    ids = {
        "user": rng.integers(0, 20, 50),
        "item": rng.integers(0, 30, (50, 2)),
        "last": rng.integers(0, 60, 50),
        "tag": rng.integers(0, 10, (50, 3)),
    }
    with SentBytes() as sent:
        with tf.GradientTape() as tape:
            rows = collection(ids, training=True)
            loss = tf.add_n([tf.reduce_sum(each) for each in rows.values()])
        tape.gradient(loss, collection.trainable_variables)
    of_table = [
        (4, ids["user"]),
        (6, np.concatenate([ids["item"].ravel(), ids["last"]])),
        (2, ids["tag"]),
    ]
    least = 0
    for dim, keys in of_table:
        away = np.unique(keys)
        away = away[~owned(away, comm).numpy()]
        least += len(away) * (8 + 2 * dim * size)
    total, bound = same_on_all(sent.count), same_on_all(least)
    assert bound <= total <= 1.1 * bound, (total, bound)
    # One of keys, one of rows, one of gradients.
    assert sent.exchanges == 3 * num_groups
    return rows, ids


def check_wire():
    exact, ids = check_bytes("float32", 4, 1)
    check_bytes("float32", 4, 2)
    with embedra.scope(wire_dtype="float16"):
        layer = Embedding(4, name="user")
    assert layer.reader.wire_dtype == "float16"
    rounded = layer(ids["user"], training=True)
    np.testing.assert_array_equal(
        rounded, tf.cast(tf.cast(exact["user"], "float16"), "float32")
    )
    for wire_dtype, bits in (("float16", 11), ("bfloat16", 8)):
        rows, _ = check_bytes(wire_dtype, 2, 1)
        error = np.abs(rows["item"] - exact["item"])
        assert np.max(error) > 0
        # Float16 has fewer bits below 2^-14.
        assert np.all(error <= 2.0**-bits * np.abs(exact["item"]) + 2.0**-25)


OPTIMIZERS = (
    lambda: keras.optimizers.SGD(0.5),
    lambda: keras.optimizers.Adagrad(0.3),
    lambda: keras.optimizers.Adam(0.05, epsilon=1e-4),
)
assert BATCH % SIZE == 0
check_first_rows()
check_insertion()
check_python_initializer()
check_whole_tables_beside_split_ones()
check_plain_optimizer_is_refused()
check_wire()
check_training(OPTIMIZERS[0])
check_training(OPTIMIZERS[1])
check_training(OPTIMIZERS[1], uneven=True, num_groups=2, compiled=True)
check_training(OPTIMIZERS[2], compiled=True)
check_training(OPTIMIZERS[0], 5e-3, wire_dtype="bfloat16")
check_training(OPTIMIZERS[0], one_by_one=True)
print("passed", flush=True)
