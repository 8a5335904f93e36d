"""Cases of lookups, through the names of `embedra.dynamic_embedding`."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de

from .reference import (
    assert_close,
    assert_concurrent_calls_get_their_own_rows,
    random_rows,
)


DEVICES = pytest.mark.parametrize(
    "devices", [None, ["/CPU:0"] * 4], ids=["one table", "four tables"]
)
KINDS = {
    "dense": tf.convert_to_tensor,
    "ragged": tf.RaggedTensor.from_tensor,
    "sparse": tf.sparse.from_dense,
}


def variable(keys, rows, **kwargs):
    made = de.Variable(dim=np.shape(rows)[1], name="ids", **kwargs)
    made.upsert(np.asarray(keys), rows)
    return made


def step(rows_and_trainable, tape, factors, optimizer=None):
    """Applies the gradient of `sum(rows * factors)` with SGD(1)."""
    with tape:
        rows, trainable = rows_and_trainable()
        loss = tf.reduce_sum(rows * factors)
    optimizer = optimizer or keras.optimizers.SGD(1.0)
    optimizer = de.DynamicEmbeddingOptimizer(optimizer)
    gradient = tape.gradient(loss, trainable)
    optimizer.apply_gradients([(gradient, trainable)])
    return rows


@DEVICES
def test_l01_a_row_depends_on_the_id_alone(devices):
    user = de.Variable(
        dim=3, name="ids", initializer="random_normal", devices=devices
    )
    first = de.embedding_lookup(user, [1, 2, 3]).numpy()
    np.testing.assert_array_equal(de.embedding_lookup(user, [1, 2, 3]), first)
    turned = de.embedding_lookup(user, [3, 2, 1])
    np.testing.assert_array_equal(turned, first[::-1])
    five, six = de.embedding_lookup(user, [5]), de.embedding_lookup(user, [6])
    assert len(np.unique(np.concatenate([first, five, six]))) == 15
    repeated = de.embedding_lookup(user, [6, 5, 6]).numpy()
    np.testing.assert_array_equal(repeated, np.concatenate([six, five, six]))


@DEVICES
def test_l02_inference_gives_unseen_ids_their_initial_row(devices):
    user = de.Variable(
        dim=2, name="ids", initializer="uniform", devices=devices
    )
    initial = user.lookup([1, 99]).numpy()
    step(
        lambda: de.embedding_lookup(user, [1, 2], return_trainable=True),
        tf.GradientTape(),
        1.0,
    )
    de.enable_inference_mode()
    try:
        for _ in range(2):
            rows = de.embedding_lookup(user, [1, 99])
            assert_close(rows, [initial[0] - 1.0, initial[1]])
    finally:
        de.enable_train_mode()
    assert int(user.size()) == 2


@DEVICES
def test_l03_negative_ids_have_rows_of_their_own(devices):
    ids = np.array([0, -1, -2, -5, -6, -7, -1])
    user = de.Variable(
        dim=2, name="ids", initializer="random_normal", devices=devices
    )
    gradients = random_rows(7, 2)
    start = step(
        lambda: de.embedding_lookup(user, ids, return_trainable=True),
        tf.GradientTape(),
        gradients,
        keras.optimizers.Adagrad(0.5, initial_accumulator_value=0.1),
    )
    assert int(user.size()) == 6
    assert len(np.unique(start)) == 12
    summed = gradients.astype(np.float64)
    summed[[1, 6]] = summed[1] + summed[6]
    expected = start - 0.5 * summed / np.sqrt(0.1 + summed**2 + 1e-7)
    assert_close(user.lookup(ids), expected)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_l05_integer_ids_of_any_width_are_the_same_ids(dtype, tmp_path):
    values = [-3, 0, 5, 100]
    user = variable(values, random_rows(4, 3), key_dtype=dtype)
    for ids in (values, np.array(values, dtype), tf.constant(values, dtype)):
        assert_close(de.embedding_lookup(user, ids), random_rows(4, 3))
    path = tf.train.Checkpoint(user=user).save(str(tmp_path / "model"))
    loaded = de.Variable(dtype, dim=3, name="ids")
    tf.train.Checkpoint(user=loaded).restore(path).assert_consumed()
    assert_close(loaded.lookup(np.array(values, np.int64)), random_rows(4, 3))


@DEVICES
def test_l06_uint64_ids_map_to_int64_by_twos_complement(devices):
    user = de.Variable(
        tf.uint64, dim=3, name="ids", initializer="uniform", devices=devices
    )
    ids = np.array([5, 2**63, 2**64 - 1, 2**63 + 1], np.uint64)
    rows = de.embedding_lookup(user, ids)
    assert len(np.unique(rows)) == 12
    signed = np.array([5, -(2**63), -1, -(2**63) + 1])
    np.testing.assert_array_equal(de.embedding_lookup(user, signed), rows)
    assert int(user.size()) == 4


_LOAD = """
import sys
import numpy as np, tensorflow as tf
import embedra.dynamic_embedding as de
user = de.Variable(tf.string, dim=2, name="ids")
tf.train.Checkpoint(user=user).restore(sys.argv[1]).assert_consumed()
print(user.lookup(["a", "b", "", "žluťoučký 🐎", "x" * 10000]).numpy().tolist())
"""


@DEVICES
def test_l08_string_ids_train_and_keep_their_rows(devices, tmp_path):
    words = np.array(["a", "b", "a", "", "žluťoučký 🐎", "x" * 10_000])
    user = de.Variable(
        tf.string, dim=2, name="ids", initializer="uniform", devices=devices
    )
    gradients = random_rows(6, 2)
    start = step(
        lambda: de.embedding_lookup(user, words, return_trainable=True),
        tf.GradientTape(),
        gradients,
    )
    assert len(np.unique(start)) == 10
    gradients[[0, 2]] = gradients[0] + gradients[2]
    assert_close(user.lookup(words), start - gradients)
    assert int(user.size()) == 5
    if devices is None:
        path = tf.train.Checkpoint(user=user).save(str(tmp_path / "model"))
        result = subprocess.run(
            [sys.executable, "-c", _LOAD, path],
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = np.array(eval(result.stdout.splitlines()[-1]))
        expected = user.lookup(words).numpy()[[0, 1, 3, 4, 5]]
        assert_close(loaded, expected)


@DEVICES
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_l09_no_ids_give_no_rows_and_change_nothing(shape, devices):
    user = variable([1, 2], random_rows(2, 4), devices=devices)
    ids = np.zeros(shape, np.int64)
    rows = step(
        lambda: de.embedding_lookup(user, ids, return_trainable=True),
        tf.GradientTape(),
        1.0,
        keras.optimizers.Adam(1.0),
    )
    assert rows.shape == (*shape, 4)
    np.testing.assert_array_equal(user.lookup([1, 2]), random_rows(2, 4))
    assert int(user.size()) == 2


@DEVICES
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("kind", ["ragged", "sparse"])
def test_l09_rows_without_ids_pool_to_zeros(kind, combiner, devices):
    user = variable([0, 1], random_rows(2, 4), devices=devices)
    ids = {
        "ragged": tf.ragged.constant([[], [], []], dtype=tf.int64),
        "sparse": tf.sparse.from_dense(np.zeros((3, 2), np.int64)),
    }[kind]
    for lookup in (de.embedding_lookup_sparse, de.safe_embedding_lookup_sparse):
        rows = step(
            lambda lookup=lookup: lookup(
                user, ids, None, combiner=combiner, return_trainable=True
            ),
            tf.GradientTape(),
            1.0,
        )
        np.testing.assert_array_equal(rows, np.zeros((3, 4)))
    np.testing.assert_array_equal(user.lookup([0, 1]), random_rows(2, 4))
    assert int(user.size()) == 2


@DEVICES
def test_l11_ragged_ids_keep_their_row_splits(devices):
    user = variable(range(1, 7), random_rows(6, 3), devices=devices)
    ids = tf.ragged.constant([[1, 2], [3], [], [4, 5, 6]], dtype=tf.int64)
    rows = de.embedding_lookup(user, ids)
    np.testing.assert_array_equal(rows.row_splits, ids.row_splits)
    np.testing.assert_array_equal(rows.flat_values, random_rows(6, 3))
    two_level = tf.ragged.constant([[[1, 2], []], [[3]], []], dtype=tf.int64)
    rows = de.embedding_lookup_unique(user, two_level)
    assert [split.numpy().tolist() for split in rows.nested_row_splits] == [
        [0, 2, 3, 3],
        [0, 2, 2, 3],
    ]
    pooled = de.embedding_lookup_sparse(user, ids, None, combiner="sum")
    parts = np.split(random_rows(6, 3), [2, 3, 3])
    assert_close(pooled, [part.sum(0) for part in parts])


@DEVICES
@pytest.mark.parametrize("row", [0, 3, 4])
def test_l12_sparse_ids_give_a_row_for_every_input_row(row, devices):
    user = variable([5, 7, 8], random_rows(3, 2), devices=devices)
    start = random_rows(3, 2)
    ids = tf.SparseTensor(
        [[row, 0], [row, 1]], tf.constant([5, 7], tf.int64), [5, 2]
    )
    for lookup in (de.embedding_lookup_sparse, de.safe_embedding_lookup_sparse):
        rows = step(
            lambda lookup=lookup: lookup(
                user, ids, None, return_trainable=True
            ),
            tf.GradientTape(),
            1.0,
        )
        expected = np.zeros((5, 2))
        expected[row] = start[:2].mean(0)
        assert_close(rows, expected)
        start[:2] -= 0.5
        assert_close(user.lookup([5, 7, 8]), start)
    assert int(user.size()) == 3


@DEVICES
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("kind", KINDS)
def test_l14_weights_scale_rows_and_negative_ids_are_kept(
    kind, combiner, devices
):
    user = variable([7, -1], random_rows(2, 3), devices=devices)
    ids, weights = [[7, -1], [-1, -1]], [[2.0, 0.5], [0.25, 3.0]]
    arguments = [
        KINDS[kind](tf.constant(ids, tf.int64)),
        KINDS[kind](tf.constant(weights)),
    ]
    w = np.array(weights)
    rows = user.lookup(ids).numpy().astype(np.float64)
    total = np.einsum("bi,bid->bd", w, rows)
    divisor = {
        "sum": np.ones(2),
        "mean": w.sum(1),
        "sqrtn": np.sqrt((w**2).sum(1)),
    }[combiner]
    for lookup, options in (
        (de.embedding_lookup_sparse, {}),
        (de.safe_embedding_lookup_sparse, {}),
    ):
        pooled = lookup(user, *arguments, combiner=combiner, **options)
        assert_close(pooled, total / divisor[:, None])


def test_l15_concurrent_calls_of_an_export_get_their_own_rows(tmp_path):
    keys = np.arange(1000)
    user = variable(keys, np.float32(keys)[:, None] * [[1.0, -2.0]])
    de.enable_inference_mode()
    try:
        module = tf.Module()
        module.user = user

        @tf.function(input_signature=[tf.TensorSpec((None,), tf.int64)])
        def serve(ids):
            return {"ids": ids + 0, "rows": de.embedding_lookup(user, ids)}

        module.serve = serve
        tf.saved_model.save(module, str(tmp_path / "export"))
    finally:
        de.enable_train_mode()
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    assert_concurrent_calls_get_their_own_rows(loaded.serve)
