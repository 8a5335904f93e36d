"""Lookups: which row an id gets, for every kind and shape of id."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.layers import Embedding

from .reference import (
    assert_close,
    assert_concurrent_calls_get_their_own_rows,
    assert_same_records,
    embedding_with,
    fit,
    network,
    random_rows,
    records_of,
    repeatable,
    rows_of,
)


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]


def test_l01_a_row_depends_on_the_id_alone():
    layer = Embedding(3, embeddings_initializer="random_normal", name="ids")
    first = np.asarray(layer(np.array([1, 2, 3]), training=True))
    again = np.asarray(layer(np.array([1, 2, 3]), training=True))
    turned = np.asarray(layer(np.array([3, 2, 1]), training=True))
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(turned, first[::-1])
    assert len(np.unique(first)) == 9

    five = np.asarray(layer(np.array([5]), training=True))
    six = np.asarray(layer(np.array([6]), training=True))
    assert not np.array_equal(five, six)
    repeated = np.asarray(layer(np.array([9, 5, 9, 6, 9]), training=True))
    np.testing.assert_array_equal(repeated[1:4:2], [five[0], six[0]])
    np.testing.assert_array_equal(repeated[0], repeated[2])
    np.testing.assert_array_equal(repeated[0], repeated[4])


def test_l01_new_ids_start_equal_in_any_batch_and_order():
    ids = np.random.default_rng(0).integers(-(2**62), 2**62, size=200)
    whole, pieces = repeatable(4), repeatable(4)
    expected = np.asarray(whole(ids, training=True))
    for piece in np.array_split(ids[::-1], 7):
        pieces(piece, training=True)
    np.testing.assert_array_equal(rows_of(pieces, ids), expected)


@pytest.mark.parametrize(
    ("inference_default", "expected"),
    [("zeros", [0.0, 0.0]), ([0.25, -4.0], [0.25, -4.0])],
)
def test_l02_inference_gives_unseen_ids_the_default_that_was_asked_for(
    inference_default, expected
):
    layer = Embedding(2, inference_default=inference_default)
    model = network(layer, 1)
    fit(model, "sgd", np.array([[1], [2]]), np.ones((2, 1)), batch_size=2)
    for _ in range(2):
        rows = np.asarray(layer(np.array([1, 99]), training=False))
        np.testing.assert_array_equal(rows[0], records_of(layer.table)[1][0])
        np.testing.assert_array_equal(rows[1], np.float32(expected))
    assert int(layer.table.size()) == 2


def test_l02_inference_gives_unseen_ids_their_initial_row():
    layer = Embedding(2)
    before = np.asarray(layer(np.array([1, 99]), training=False))
    model = network(layer, 1)
    fit(model, "sgd", np.array([[1], [2]]), np.ones((2, 1)), batch_size=2)
    for _ in range(2):
        rows = np.asarray(layer(np.array([1, 99]), training=False))
        np.testing.assert_array_equal(rows[0], records_of(layer.table)[1][0])
        assert not np.array_equal(rows[0], before[0]), "training had no effect"
        np.testing.assert_array_equal(rows[1], before[1])
    assert int(layer.table.size()) == 2
    started = np.asarray(layer(np.array([99]), training=True))
    np.testing.assert_array_equal(started[0], before[1])


def test_l03_negative_ids_have_rows_of_their_own():
    ids = np.array([0, -1, -2, -5, -6, -7, -1])
    layer = Embedding(2, embeddings_initializer="random_normal")
    start = np.asarray(layer(ids, training=True), np.float64)
    assert int(layer.table.size()) == 6
    assert len(np.unique(start)) == 12
    gradients = random_rows(len(ids), 2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids, training=True) * gradients)
    variables = layer.trainable_variables
    optimizer = keras.optimizers.Adagrad(0.5, initial_accumulator_value=0.1)
    optimizer.apply(tape.gradient(loss, variables), variables)

    summed = gradients.astype(np.float64)
    summed[[1, 6]] = summed[1] + summed[6]
    expected = start - 0.5 * summed / np.sqrt(0.1 + summed**2 + 1e-7)
    assert_close(rows_of(layer, ids), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_l05_integer_ids_of_any_width_are_the_same_ids(dtype, tmp_path):
    values = [0, 1, 5, 100]
    layer = embedding_with(values, random_rows(4, 3))
    expected = np.asarray(layer(np.array(values, np.int64)))
    for ids in (np.array(values, dtype), tf.constant(values, dtype)):
        np.testing.assert_array_equal(layer(ids), expected)

    ids = keras.Input((), dtype=dtype)
    model = keras.Model(ids, layer(ids))
    model.save(tmp_path / "narrow.keras")
    loaded = keras.saving.load_model(tmp_path / "narrow.keras")
    predictions = loaded.predict(np.array(values, dtype), verbose=0)
    np.testing.assert_array_equal(predictions, expected)


def test_l05_negative_narrow_ids_and_lists_are_the_same_ids():
    layer = embedding_with([-3, 4], random_rows(2, 3))
    expected = np.asarray(layer(np.array([-3, 4], np.int64)))
    np.testing.assert_array_equal(layer(np.array([-3, 4], np.int8)), expected)
    np.testing.assert_array_equal(layer([-3, 4]), expected)
    assert len(np.unique(expected)) == 6


def test_l06_uint64_ids_map_to_int64_by_twos_complement():
    layer = Embedding(3)
    ids = np.array([5, 2**63, 2**64 - 1, 2**63 + 1], np.uint64)
    rows = np.asarray(layer(ids, training=True))
    assert len(np.unique(rows)) == 12
    signed = np.array([5, -(2**63), -1, -(2**63) + 1])
    np.testing.assert_array_equal(layer(signed), rows)
    assert set(records_of(layer.table)) == set(signed.tolist())


def test_l06_uint64_ids_pass_through_a_functional_model():
    layer = embedding_with([5, -(2**63), -1], random_rows(3, 2))
    ids = keras.Input((1,), dtype="uint64")
    model = keras.Model(ids, layer(ids))
    fed = np.array([[2**64 - 1], [2**63], [5]], np.uint64)
    rows = model.predict(fed, verbose=0)[:, 0]
    np.testing.assert_array_equal(rows, rows_of(layer, [-1, -(2**63), 5]))


def test_l07_a_float_input_is_refused_when_the_model_is_built():
    with pytest.raises((TypeError, ValueError), match='dtype="int64"'):
        Embedding(2)(keras.Input((1,)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bool"])
def test_l07_ids_that_are_not_integers_are_refused_when_called(dtype):
    layer = Embedding(2, name="user_id")
    with pytest.raises((TypeError, ValueError), match="user_id"):
        layer(tf.cast([16777216.0, 16777217.0], dtype))
    assert int(layer.table.size()) == 0


def test_l08_string_ids_are_updated_once_with_their_summed_gradient():
    ids = np.array(["a", "b", "a", "", "žluťoučký 🐎", "x" * 10_000])
    layer = Embedding(2, key_dtype="string")
    start = np.asarray(layer(ids, training=True))
    np.testing.assert_array_equal(start[0], start[2])
    assert len(np.unique(start)) == 10
    gradients = random_rows(len(ids), 2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids, training=True) * gradients)
    variables = layer.trainable_variables
    keras.optimizers.SGD(1.0).apply(tape.gradient(loss, variables), variables)

    gradients[[0, 2]] = gradients[0] + gradients[2]
    assert_close(layer(ids), start - gradients)
    assert int(layer.table.size()) == 5


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_l09_no_ids_give_no_rows_and_change_nothing(shape):
    layer = embedding_with([1, 2], random_rows(2, 4))
    before = records_of(layer.table)
    with tf.GradientTape() as tape:
        rows = layer(np.zeros(shape, np.int64), training=True)
        loss = tf.reduce_sum(rows)
    (gradient,) = tape.gradient(loss, layer.trainable_variables)
    assert rows.shape == (*shape, 4)
    assert gradient.values.shape == (0, 4)
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.apply([gradient], layer.trainable_variables)
    assert_same_records(records_of(layer.table), before)


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("kind", ["dense", "ragged", "sparse"])
def test_l09_rows_without_ids_pool_to_zeros(kind, combiner):
    ids = {
        "dense": tf.zeros((3, 0), tf.int64),
        "ragged": tf.ragged.constant([[], [], []], dtype=tf.int64),
        "sparse": tf.sparse.from_dense(np.zeros((3, 2), np.int64)),
    }[kind]
    layer = embedding_with([0, 1], random_rows(2, 4), combiner=combiner)
    before = records_of(layer.table)
    with tf.GradientTape() as tape:
        pooled = layer(ids, training=True)
        loss = tf.reduce_sum(pooled)
    np.testing.assert_array_equal(pooled, np.zeros((3, 4)))
    gradients = tape.gradient(loss, layer.trainable_variables)
    keras.optimizers.SGD(1.0).apply(gradients, layer.trainable_variables)
    assert_same_records(records_of(layer.table), before)


def test_l09_a_batch_without_rows_pools_to_no_rows():
    layer = Embedding(4, combiner="mean")
    assert layer(np.zeros((0, 3), np.int64), training=True).shape == (0, 4)
    empty = tf.RaggedTensor.from_row_splits(
        tf.constant([], tf.int64), tf.constant([0], tf.int64)
    )
    assert layer(empty, training=True).shape == (0, 4)
    assert int(layer.table.size()) == 0


def test_l11_ragged_ids_keep_their_row_splits():
    layer = Embedding(3)
    ids = tf.ragged.constant([[1, 2], [3], [], [4, 5, 6]], dtype=tf.int64)
    rows = layer(ids, training=True)
    np.testing.assert_array_equal(rows.row_splits, ids.row_splits)
    np.testing.assert_array_equal(rows.flat_values, rows_of(layer, range(1, 7)))
    assert rows.shape[-1] == 3


def test_l11_two_level_ragged_ids_keep_both_row_splits():
    layer = Embedding(3)
    ids = tf.ragged.constant([[[1, 2], []], [[3]], []], dtype=tf.int64)
    rows = layer(ids, training=True)
    for have, want in zip(
        rows.nested_row_splits[:2], ids.nested_row_splits, strict=True
    ):
        np.testing.assert_array_equal(have, want)
    np.testing.assert_array_equal(rows.flat_values, rows_of(layer, [1, 2, 3]))


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_l11_pooled_ragged_ids_equal_numpy_for_each_row(combiner):
    lists = [[1, 2], [3], [], [4, 5, 6, 4]]
    layer = embedding_with(range(1, 7), random_rows(6, 3), combiner=combiner)
    divide = {"sum": lambda _: 1.0, "mean": float, "sqrtn": np.sqrt}[combiner]
    expected = [
        rows_of(layer, ids).sum(0) / divide(len(ids)) if ids else np.zeros(3)
        for ids in lists
    ]
    ragged = tf.ragged.constant(lists, dtype=tf.int64)
    assert_close(layer(ragged), expected)
    two_level = tf.ragged.constant([lists[:3], lists[3:]], dtype=tf.int64)
    pooled = layer(two_level)
    np.testing.assert_array_equal(pooled.row_splits, [0, 3, 4])
    assert_close(pooled.flat_values, expected)


def test_l11_ragged_ids_train_in_a_functional_model():
    ids = keras.Input((None,), dtype="int64", ragged=True)
    layer = Embedding(3, combiner="sum")
    model = keras.Model(ids, keras.layers.Dense(1)(layer(ids)))
    model.compile("sgd", "mse")
    fed = tf.ragged.constant([[1, 2], [3], [], [2, 2]], dtype=tf.int64)
    dataset = tf.data.Dataset.from_tensors((fed, tf.ones((4, 1))))
    model.fit(dataset, shuffle=False, verbose=0)
    assert set(records_of(layer.table)) == {1, 2, 3}
    expected = rows_of(layer, [1, 2]).sum(0)
    assert_close(np.asarray(layer(fed))[0], expected)


@pytest.mark.parametrize("row", [0, 3, 4])
def test_l12_sparse_ids_give_a_row_for_every_input_row(row):
    layer = embedding_with([5, 7, 8], random_rows(3, 2), combiner="mean")
    start = rows_of(layer, [5, 7, 8])
    ids = tf.sparse.SparseTensor([[row, 0], [row, 1]], [5, 7], [5, 2])
    with tf.GradientTape() as tape:
        pooled = layer(ids, training=True)
        loss = tf.reduce_sum(pooled)
    expected = np.zeros((5, 2))
    expected[row] = start[:2].mean(0)
    assert_close(pooled, expected)

    gradients = tape.gradient(loss, layer.trainable_variables)
    keras.optimizers.SGD(1.0).apply(gradients, layer.trainable_variables)
    assert_close(rows_of(layer, [5, 7]), start[:2] - 0.5)
    np.testing.assert_array_equal(rows_of(layer, [8]), start[2:])
    assert int(layer.table.size()) == 3


def test_l12_sparse_ids_pass_through_a_functional_model():
    layer = embedding_with([5, 7], random_rows(2, 2), combiner="sum")
    ids = keras.Input((2,), dtype="int64", sparse=True)
    model = keras.Model(ids, layer(ids))
    fed = tf.sparse.SparseTensor([[1, 0], [1, 1]], [5, 7], [4, 2])
    expected = np.zeros((4, 2))
    expected[1] = rows_of(layer, [5, 7]).sum(0)
    assert_close(model(fed), expected)


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("kind", ["dense", "ragged", "sparse"])
def test_l14_weights_scale_rows_and_negative_ids_are_kept(kind, combiner):
    layer = embedding_with([7, -1], random_rows(2, 3), combiner=combiner)
    ids, weights = [[7, -1], [-1, -1]], [[2.0, 0.5], [0.25, 3.0]]
    convert = {
        "dense": tf.constant,
        "ragged": tf.RaggedTensor.from_tensor,
        "sparse": tf.sparse.from_dense,
    }[kind]
    pooled = layer(
        convert(tf.constant(ids, tf.int64)),
        weights=convert(tf.constant(weights)),
    )
    w = np.array(weights)
    total = np.einsum("bi,bid->bd", w, rows_of(layer, ids).astype(np.float64))
    divisor = {
        "sum": np.ones(2),
        "mean": w.sum(1),
        "sqrtn": np.sqrt((w**2).sum(1)),
    }[combiner]
    assert_close(pooled, total / divisor[:, None])


def test_l14_weights_scale_what_each_row_learns():
    layer = embedding_with([7, -1], random_rows(2, 2), combiner="sum")
    start = rows_of(layer, [7, -1])
    with tf.GradientTape() as tape:
        pooled = layer(
            np.array([[7, -1, 7]]),
            weights=np.float32([[2, 0.5, 1]]),
            training=True,
        )
        loss = tf.reduce_sum(pooled * [1.0, 10.0])
    gradients = tape.gradient(loss, layer.trainable_variables)
    keras.optimizers.SGD(1.0).apply(gradients, layer.trainable_variables)
    moved = start - rows_of(layer, [7, -1])
    assert_close(moved, [[3.0, 30.0], [0.5, 5.0]])


def test_l14_each_id_of_a_flat_batch_is_a_bag_of_its_own():
    layer = embedding_with([7, -1], random_rows(2, 3), combiner="sum")
    weights = np.float32([2.0, 0.5])
    pooled = layer(np.array([7, -1]), weights=weights)
    assert_close(pooled, rows_of(layer, [7, -1]) * weights[:, None])


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8"])
def test_l14_padding_is_left_out_of_its_bag(dtype):
    layer = embedding_with([7, 0], random_rows(2, 3), combiner="mean")
    masked = embedding_with(
        [7, 0], rows_of(layer, [7, 0]), combiner="mean", mask_zero=True
    )
    ids = np.array([[7, 0, 0], [0, 0, 0]], dtype)
    weights = np.float32([[2.0, 5.0, 1.0], [1.0, 1.0, 1.0]])
    row = rows_of(layer, [7])[0]
    assert_close(masked(ids), [row, np.zeros(3)])
    assert_close(masked(ids, weights=weights), [row, np.zeros(3)])
    assert not np.allclose(layer(ids)[0], row)


def test_l14_weights_of_another_shape_are_refused():
    layer = embedding_with([7, -1], random_rows(2, 3), combiner="sum")
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        layer(np.array([[7, -1]]), weights=np.ones((1, 3), np.float32))
    ids = tf.ragged.constant([[7, -1], [7]], dtype=tf.int64)
    weights = tf.ragged.constant([[1.0], [2.0, 3.0]])
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        layer(ids, weights=weights)


def test_l15_concurrent_calls_of_an_export_get_their_own_rows(tmp_path):
    keys = np.arange(1000)
    layer = embedding_with(keys, np.float32(keys)[:, None] * [[1.0, -2.0]])
    ids = keras.Input((), dtype="int64")
    model = keras.Model(ids, {"ids": ids + 0, "rows": layer(ids)})
    model.export(tmp_path / "export", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    assert_concurrent_calls_get_their_own_rows(loaded.serve)
