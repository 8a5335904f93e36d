"""Lookups that combine rows, against TensorFlow's own on a dense matrix."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from numerics import assert_allclose


KEYS = np.arange(10)
DIM = 3
COMBINERS = ["sum", "mean", "sqrtn"]
DEVICES = pytest.mark.parametrize(
    "devices", [None, ["/CPU:0"] * 3], ids=["one table", "three tables"]
)


def start_rows():
    return np.random.default_rng(3).normal(size=(10, DIM)).astype(np.float32)


def variable(devices=None, **kwargs):
    made = de.Variable(dim=DIM, name="tag", devices=devices, **kwargs)
    made.upsert(KEYS, start_rows())
    return made


def sparse(values, dtype=tf.int64, shape=(4, 5)):
    """Row 1 and the last row are empty; id 3 is repeated."""
    indices = [[0, 0], [0, 2], [2, 1], [2, 3], [2, 4]]
    return tf.SparseTensor(indices, tf.constant(values, dtype), shape)


def as_ragged(tensor):
    return tf.RaggedTensor.from_value_rowids(
        tensor.values, tensor.indices[:, 0], nrows=tensor.dense_shape[0]
    )


def sgd():
    return de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(1.0))


def eager(function):
    return function


def step(lookup, weights):
    """Looks up, and makes a step; returns rows and the weights' gradient."""
    optimizer = sgd()
    with tf.GradientTape() as tape:
        tape.watch(weights)
        rows, trainable = lookup(weights)
        loss = tf.reduce_sum(rows * rows)
    (gradient, of_weights) = tape.gradient(loss, [trainable, weights])
    optimizer.apply_gradients([(gradient, trainable)])
    return rows, of_weights


def dense_step(lookup, weights):
    """The same for a dense matrix."""
    matrix = tf.Variable(start_rows())
    with tf.GradientTape() as tape:
        tape.watch(weights)
        rows = lookup(matrix, weights)
        loss = tf.reduce_sum(rows * rows)
    gradient, of_weights = tape.gradient(loss, [matrix, weights])
    matrix.assign_sub(tf.convert_to_tensor(gradient))
    return rows, of_weights, matrix


@DEVICES
@pytest.mark.parametrize(
    ("wrap", "max_norm"), [(eager, None), (eager, 1.0), (tf.function, None)]
)
@pytest.mark.parametrize("combiner", COMBINERS)
def test_weighted_rows_and_gradients_are_those_of_a_dense_matrix(
    combiner, max_norm, wrap, devices
):
    tag = variable(devices)
    ids = sparse([1, 2, 3, 3, 4])
    options = {"combiner": combiner, "max_norm": max_norm}

    def lookup(weights):
        sp_weights = tf.SparseTensor(ids.indices, weights, ids.dense_shape)
        return de.embedding_lookup_sparse(
            tag, ids, sp_weights, return_trainable=True, **options
        )

    def lookup_dense(matrix, weights):
        sp_weights = tf.SparseTensor(ids.indices, weights, ids.dense_shape)
        return tf.nn.embedding_lookup_sparse(matrix, ids, sp_weights, **options)

    weights = tf.constant([1.0, 2.0, 0.5, 3.0, 1.0])
    rows, of_weights = step(wrap(lookup), weights)
    expected, expected_of_weights, matrix = dense_step(lookup_dense, weights)
    assert rows.shape == (4, DIM)
    assert_allclose(rows[:3], expected, rtol=1e-5)
    np.testing.assert_array_equal(rows[3], np.zeros(DIM))
    assert_allclose(of_weights, expected_of_weights, rtol=1e-4, atol=1e-5)
    assert_allclose(tag.lookup(KEYS), matrix, rtol=1e-4, atol=1e-5)
    assert not np.allclose(tag.lookup(KEYS), start_rows())


@DEVICES
@pytest.mark.parametrize("ragged", [False, True], ids=["sparse", "ragged"])
@pytest.mark.parametrize("combiner", COMBINERS)
def test_rows_without_weights_are_those_of_a_dense_matrix(
    combiner, ragged, devices
):
    tag = variable(devices)
    ids = sparse([1, 2, 3, 3, 4])
    given = as_ragged(ids) if ragged else ids
    with tf.GradientTape() as tape:
        rows, trainable = de.embedding_lookup_sparse(
            tag, given, None, combiner=combiner, return_trainable=True
        )
        loss = tf.reduce_sum(rows**2)
    sgd().apply_gradients([(tape.gradient(loss, trainable), trainable)])

    matrix = tf.Variable(start_rows())
    with tf.GradientTape() as tape:
        expected = tf.nn.embedding_lookup_sparse(
            matrix, ids, None, combiner=combiner
        )
        loss = tf.reduce_sum(expected**2)
    matrix.assign_sub(tf.convert_to_tensor(tape.gradient(loss, matrix)))
    assert_allclose(rows[:3], expected, rtol=1e-5)
    assert_allclose(tag.lookup(KEYS), matrix, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("ragged", "devices"),
    [(False, None), (True, None), (False, ["/CPU:0"] * 3)],
    ids=["sparse", "ragged", "three tables"],
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("default_id", [None, 6])
@pytest.mark.parametrize("combiner", COMBINERS)
def test_the_safe_lookup_prunes_and_fills_as_tensorflow(
    combiner, default_id, weighted, ragged, devices
):
    tag = variable(devices)
    ids = sparse([1, -2, 3, 3, 4])
    sp_weights = sparse([1.0, 2.0, 0.5, -3.0, 0.0], tf.float32)
    pair = [ids, sp_weights if weighted else None]
    if ragged:
        pair = [part if part is None else as_ragged(part) for part in pair]
    with tf.GradientTape() as tape:
        rows, trainable = de.safe_embedding_lookup_sparse(
            tag,
            *pair,
            combiner=combiner,
            default_id=default_id,
            return_trainable=True,
            mask_negative=True,
        )
        loss = tf.reduce_sum(rows**2)
    sgd().apply_gradients([(tape.gradient(loss, trainable), trainable)])

    matrix = tf.Variable(start_rows())
    with tf.GradientTape() as tape:
        expected = tf.nn.safe_embedding_lookup_sparse(
            matrix,
            ids,
            sp_weights if weighted else None,
            combiner=combiner,
            default_id=default_id,
        )
        loss = tf.reduce_sum(expected**2)
    matrix.assign_sub(tf.convert_to_tensor(tape.gradient(loss, matrix)))
    assert_allclose(rows, expected, rtol=1e-5)
    assert_allclose(tag.lookup(KEYS), matrix, rtol=1e-4, atol=1e-5)
    assert int(tag.size()) == 10


def test_the_safe_lookup_keeps_negative_ids_unless_asked():
    tag = variable()
    tag.upsert([-2], [[9.0, 9.0, 9.0]])
    rows = de.safe_embedding_lookup_sparse(
        tag, sparse([1, -2, 3, 3, 4]), combiner="sum"
    )
    assert_allclose(rows[0], start_rows()[1] + 9.0)


def test_the_plain_lookup_keeps_negative_ids_and_weights():
    tag = variable()
    tag.upsert([-2], [[9.0, 9.0, 9.0]])
    weights = sparse([1.0, -2.0, 1.0, 1.0, 1.0], tf.float32)
    rows = de.embedding_lookup_sparse(
        tag, sparse([1, -2, 3, 3, 4]), weights, combiner="sum"
    )
    assert_allclose(rows[0], start_rows()[1] - 18.0)


def test_unsigned_ids_that_look_negative_are_not_pruned():
    tag = variable(key_dtype=tf.uint64)
    ids = sparse([2**64 - 1, 2, 3, 3, 4], tf.uint64)
    de.safe_embedding_lookup_sparse(tag, ids, mask_negative=True)
    assert int(tag.size()) == 11


def test_string_ids_are_combined():
    tag = de.Variable(tf.string, dim=2, name="word")
    tag.upsert(["a", "", "none"], [[1.0, 2.0], [3.0, 4.0], [7.0, 7.0]])
    ids = tf.SparseTensor([[0, 0], [0, 1]], ["a", ""], (2, 2))
    rows = de.safe_embedding_lookup_sparse(tag, ids, default_id="none")
    assert_allclose(rows, [[2.0, 3.0], [7.0, 7.0]])


@pytest.mark.parametrize("default_id", [None, 5])
def test_the_safe_lookup_takes_any_rank(default_id):
    tag = variable()
    for shape in ([4], [2, 4], [2, 1, 4], [0, 4], [2, 3, 0]):
        places = np.argwhere(np.arange(np.prod(shape)).reshape(shape) % 3 == 0)
        ids = tf.SparseTensor(
            places, tf.range(len(places), dtype=tf.int64), shape
        )
        rows = de.safe_embedding_lookup_sparse(tag, ids, default_id=default_id)
        assert rows.shape == (*shape[:-1], DIM)
        if 0 in shape[:-1]:
            continue
        expected = tf.nn.safe_embedding_lookup_sparse(
            tf.constant(start_rows()),
            tf.sparse.reshape(ids, [-1, shape[-1]])
            if 0 not in shape
            else tf.sparse.reshape(ids, [6, 0]),
            default_id=default_id,
        )
        assert_allclose(tf.reshape(rows, (-1, DIM)), expected)


def test_the_safe_lookup_takes_sparse_ids_of_unknown_shape():
    tag = variable()

    @tf.function(input_signature=[tf.SparseTensorSpec(None, tf.int64)])
    def lookup(ids):
        return (
            de.safe_embedding_lookup_sparse(tag, ids),
            de.embedding_lookup_sparse(tag, ids, None),
        )

    three = tf.sparse.from_dense(tf.constant([[[1, 2]], [[3, 0]]], tf.int64))
    safe, plain = lookup(three)
    expected = [start_rows()[1:3].mean(0), start_rows()[3]]
    assert_allclose(safe, np.array(expected)[:, None])
    assert_allclose(plain, expected)
    safe, _ = lookup(tf.sparse.from_dense(tf.constant([[1, 2]], tf.int64)))
    assert_allclose(safe, [expected[0]])


def test_the_plain_lookup_combines_all_dimensions_but_the_first():
    tag = variable()
    ids = tf.sparse.from_dense(tf.constant([[[1, 2], [3, 4]]], tf.int64))
    rows = de.embedding_lookup_sparse(tag, ids, ids, combiner="sum")
    weights = np.array([1, 2, 3, 4])[:, None]
    assert_allclose(rows, [(start_rows()[1:5] * weights).sum(0)], rtol=1e-5)


def test_ragged_ids_of_two_levels_keep_the_outer_one():
    tag = variable()
    ids = tf.ragged.constant([[[1, 2], []], [], [[3]]], dtype=tf.int64)
    rows = de.embedding_lookup_sparse(tag, ids, None)
    np.testing.assert_array_equal(rows.row_splits, [0, 2, 2, 3])
    expected = [start_rows()[1:3].mean(0), np.zeros(DIM), start_rows()[3]]
    assert_allclose(rows.flat_values, expected)


def test_dense_ids_are_combined_over_the_last_dimension():
    tag = variable()
    rows = de.embedding_lookup_sparse(tag, [[1, 2], [3, 3]], None)
    assert_allclose(rows, [start_rows()[1:3].mean(0), start_rows()[3]])


@DEVICES
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("max_norm", [None, 1000.0])
def test_half_precision_rows_are_combined_in_float32(dtype, max_norm, devices):
    tag = de.Variable(dim=1, value_dtype=dtype, name="half", devices=devices)
    # In float16 and bfloat16 alike, 300 times 1 plus 1 loses the ones.
    tag.upsert(np.arange(300), np.ones((300, 1)))
    ids = tf.RaggedTensor.from_row_lengths(tf.range(300, dtype=tf.int64), [300])
    rows = de.embedding_lookup_sparse(
        tag, ids, None, combiner="sum", max_norm=max_norm
    )
    assert rows.dtype == dtype
    assert_allclose(tf.cast(rows, tf.float32), [[300.0]])


def test_max_norm_of_half_precision_rows_does_not_overflow():
    tag = de.Variable(dim=2, value_dtype=tf.float16, name="half")
    tag.upsert([1], [[300.0, 400.0]])
    rows = de.embedding_lookup(tag, [1], max_norm=5.0)
    assert rows.dtype == tf.float16
    assert_allclose(rows, [[3.0, 4.0]])


def test_in_inference_mode_nothing_is_created_or_counted():
    tag = variable()
    de.enable_inference_mode()
    try:
        rows = de.safe_embedding_lookup_sparse(
            tag, sparse([1, 99, 3, 3, 4]), default_id=98
        )
    finally:
        de.enable_train_mode()
    assert_allclose(rows[0], start_rows()[1] / 2)
    assert int(tag.size()) == 10
    (records,) = tag.tables[0].export_chunks()
    assert not records.frequencies.any()


@pytest.mark.parametrize("max_norm", [None, 1.0])
@DEVICES
def test_a_graph_of_tf1_looks_up_and_gives_gradients(devices, max_norm):
    ids = sparse([1, -2, 3, 3, 4])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tag = de.Variable(dim=DIM, name="tag", devices=devices)
        fill = tag.upsert(KEYS, start_rows())
        fed = tf.compat.v1.sparse_placeholder(tf.int64)
        rows, trainable = de.safe_embedding_lookup_sparse(
            tag,
            fed,
            default_id=6,
            combiner="sum",
            max_norm=max_norm,
            return_trainable=True,
            mask_negative=True,
        )
        (gradient,) = tf.gradients(tf.reduce_sum(rows**2), [trainable.value])
        assert isinstance(gradient, tf.IndexedSlices)
        session.run(tf.compat.v1.local_variables_initializer())
        session.run(fill)
        value = tf.compat.v1.SparseTensorValue(
            ids.indices.numpy(), ids.values.numpy(), ids.dense_shape.numpy()
        )
        actual, values, positions = session.run(
            [rows, gradient.values, gradient.indices], {fed: value}
        )
        size = session.run(tag.size())
    matrix = tf.Variable(start_rows())
    with tf.GradientTape() as tape:
        expected = tf.nn.safe_embedding_lookup_sparse(
            matrix, ids, default_id=6, combiner="sum", max_norm=max_norm
        )
        loss = tf.reduce_sum(expected**2)
    dense = tf.convert_to_tensor(tape.gradient(loss, matrix))
    assert_allclose(actual, expected, rtol=1e-5)
    assert size == 10
    assert positions.min() >= 0
    assert_allclose(values.sum(0), tf.reduce_sum(dense, 0), rtol=1e-4)


def test_weights_that_cancel_out_give_zeros_and_finite_gradients():
    for devices in (None, ["/CPU:0"] * 2):
        tag = variable(devices)
        for combiner, values in (("mean", [1.0, -1.0]), ("sqrtn", [0.0, 0.0])):
            weights = tf.constant(values)
            ids = tf.constant([[1, 2]], tf.int64)
            with tf.GradientTape() as tape:
                tape.watch(weights)
                rows, trainable = de.embedding_lookup_sparse(
                    tag,
                    ids,
                    weights[tf.newaxis],
                    combiner=combiner,
                    return_trainable=True,
                )
                loss = tf.reduce_sum(rows)
            gradient, of_weights = tape.gradient(loss, [trainable, weights])
            np.testing.assert_array_equal(rows, np.zeros((1, DIM)))
            assert np.all(np.isfinite(gradient.values))
            assert np.all(np.isfinite(of_weights))


# Errors.


@pytest.mark.parametrize(
    "lookup", [de.embedding_lookup_sparse, de.safe_embedding_lookup_sparse]
)
class TestRefusals:
    def test_an_unknown_combiner(self, lookup):
        with pytest.raises(ValueError, match=r"'tag'.*'sqrtn'.*'max'"):
            lookup(variable(), sparse([1, 2, 3, 3, 4]), None, combiner="max")

    def test_float_ids(self, lookup):
        ids = sparse([1, 2, 3, 3, 4], tf.float32)
        with pytest.raises(TypeError, match=r"'tag'.*float32"):
            lookup(variable(), ids, None)

    def test_integers_for_strings(self, lookup):
        words = de.Variable(tf.string, dim=1, name="word")
        with pytest.raises(TypeError, match=r"'word'.*string.*int64"):
            lookup(words, sparse([1, 2, 3, 3, 4]), None)

    @pytest.mark.parametrize("ids", [7, [7, 8]])
    def test_ids_of_low_rank(self, lookup, ids):
        with pytest.raises(ValueError, match=r"'tag'.*rank 2.*shape"):
            lookup(variable(), ids, None)

    def test_weights_of_another_kind(self, lookup):
        ids = sparse([1, 2, 3, 3, 4])
        weights = as_ragged(sparse([1.0] * 5, tf.float32))
        match = r"'tag'.*SparseTensor.*RaggedTensor"
        with pytest.raises(ValueError, match=match):
            lookup(variable(), ids, weights)

    def test_weights_at_other_places(self, lookup):
        ids = sparse([1, 2, 3, 3, 4])
        weights = tf.SparseTensor(
            [[0, 0], [0, 1], [2, 1], [2, 3], [2, 4]], [1.0] * 5, (4, 5)
        )
        with pytest.raises(ValueError, match=r"(?s)'tag'.*\[0 1\].*\[0 2\]"):
            lookup(variable(), ids, weights)

    def test_ragged_weights_of_other_lengths_in_a_function(self, lookup):
        ids = tf.ragged.constant([[1, 2], [3]], dtype=tf.int64)
        weights = tf.ragged.constant([[1.0], [1.0, 2.0]])
        tag = variable()

        @tf.function
        def run(ids, weights):
            return lookup(tag, ids, weights)

        with pytest.raises(tf.errors.InvalidArgumentError, match="tag"):
            run(ids, weights)

    def test_something_that_is_no_variable(self, lookup):
        with pytest.raises(TypeError, match=r"de\.Variable.*Variable"):
            lookup(tf.Variable(start_rows()), sparse([1, 2, 3, 3, 4]), None)
