"""Gradients of lookups against those of a dense embedding matrix."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import _ops
from numerics import assert_allclose
from ops.calls import lookup, pooled_lookup


DIM = 3
BAGS = [[1, 2, 2], [], [7], [3, 1, 7, 7]]
KEYS = np.concatenate([np.array(bag, np.int64) for bag in BAGS])
SPLITS = np.cumsum([0, *map(len, BAGS)])
WEIGHTS = np.array([2, 0.5, 1, 3, 0.25, 1, 1.5, -0.5], np.float32)
UPSTREAM = np.arange(12, dtype=np.float32).reshape(4, 3) - 5


@pytest.fixture
def handle():
    return _ops.anonymous_table(
        name="t",
        dim=DIM,
        initializer="normal",
        initializer_parameters=[0.0, 1.0],
    )


@pytest.fixture
def trainable():
    """The variable that stands for the table."""
    return tf.Variable(tf.zeros([0]))


@pytest.fixture(params=["eager", "function"])
def compiled(request):
    """Wraps a function in the way the test is to run it."""
    return tf.function if request.param == "function" else lambda f: f


def watched_handle(variable):
    variable.read_value()  # makes tapes watch the variable
    return variable.handle


def dense_matrix(handle, size=8):
    keys = tf.range(size, dtype=tf.int64)
    return tf.Variable(lookup([handle], [keys], dims=[DIM]).rows[0])


def gradient_by_key(handle, slices, size=8):
    keys, alive = _ops.table_keys(handle, slices.indices)
    assert bool(tf.reduce_all(alive))
    dense = np.zeros((size, DIM))
    np.add.at(dense, keys.numpy(), slices.values.numpy())
    return dense


@pytest.mark.parametrize("shape", [(8,), (2, 4), (2, 2, 2)])
def test_lookup_gradient_equals_the_dense_one(
    handle, trainable, compiled, shape
):
    dense = dense_matrix(handle)
    keys = tf.reshape(KEYS, shape)

    @compiled
    def gradient():
        with tf.GradientTape() as tape:
            found = lookup_with(handle, trainable, keys)
            loss = tf.reduce_sum(tf.sin(found.rows[0]) ** 2)
        return tape.gradient(loss, trainable)

    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(tf.gather(dense, keys)) ** 2)
    expected = tf.convert_to_tensor(tape.gradient(loss, dense))
    slices = gradient()
    assert slices.dense_shape.numpy().tolist() == [8, DIM]
    assert_allclose(gradient_by_key(handle, slices), expected)


def lookup_with(handle, trainable, keys, dtype="float32"):
    return _ops.table_lookup(
        [handle],
        [watched_handle(trainable)],
        [keys],
        [tf.zeros([0], dtype)],
        dims=[DIM],
        dtype=dtype,
        insert=True,
    )


def test_gradients_of_two_lookups_add_up(handle, trainable):
    with tf.GradientTape() as tape:
        loss = sum(
            tf.reduce_sum(lookup_with(handle, trainable, keys).rows[0])
            for keys in ([1, 2], [2, 2, 3])
        )
    slices = tape.gradient(loss, trainable)
    by_key = gradient_by_key(handle, slices, 4)
    assert_allclose(by_key[:, 0], [0, 1, 3, 1])


def test_gradient_of_low_precision_rows_is_float32(trainable):
    handle = _ops.anonymous_table(name="t", dim=DIM, dtype="bfloat16")
    with tf.GradientTape() as tape:
        rows = lookup_with(handle, trainable, KEYS, "bfloat16").rows[0]
        loss = tf.reduce_sum(tf.cast(rows, tf.float32) * 3)
    slices = tape.gradient(loss, trainable)
    assert slices.values.dtype == tf.float32
    assert_allclose(slices.values, np.full((8, DIM), 3))


def test_gradients_of_a_tf1_graph():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        handle = _ops.table(shared_name="g", name="g", dim=DIM)
        variable = tf.compat.v1.get_variable(
            "trainable", [0], use_resource=True
        )
        rows = lookup_with(handle, variable, KEYS).rows[0]
        [slices] = tf.gradients(tf.reduce_sum(rows * 2), [variable])
        session.run(tf.compat.v1.global_variables_initializer())
        values, indices = session.run([slices.values, slices.indices])
    assert_allclose(values, np.full((8, DIM), 2))
    position_of = dict(zip(KEYS.tolist(), indices.tolist(), strict=True))
    assert len(set(position_of.values())) == len(position_of)
    assert [position_of[key] for key in KEYS.tolist()] == indices.tolist()


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("weighted", [False, True])
def test_pooled_gradients_equal_the_dense_ones(
    handle, trainable, compiled, combiner, weighted
):
    dense = dense_matrix(handle)
    weights = tf.Variable(WEIGHTS if weighted else np.ones(8, np.float32))

    @compiled
    def gradients():
        with tf.GradientTape() as tape:
            outputs = pooled_lookup(
                [handle],
                [KEYS],
                [SPLITS],
                [weights] if weighted else None,
                dims=[DIM],
                combiner=combiner,
                trainables=[watched_handle(trainable)],
            )
            loss = tf.reduce_sum(outputs.pooled[0] * UPSTREAM)
        targets = [trainable, weights] if weighted else [trainable]
        return outputs.pooled[0], tape.gradient(loss, targets)

    with tf.GradientTape() as tape:
        expected = dense_pooled(dense, weights, combiner)
        loss = tf.reduce_sum(expected * UPSTREAM)
    dense_gradient, weight_gradient = tape.gradient(loss, [dense, weights])

    pooled, (slices, *rest) = gradients()
    assert_allclose(pooled, expected, atol=1e-5)
    assert len(set(slices.indices.numpy())) == len(slices.indices)
    assert_allclose(
        gradient_by_key(handle, slices),
        tf.convert_to_tensor(dense_gradient),
        atol=1e-5,
    )
    if weighted:
        assert_allclose(rest[0], weight_gradient, rtol=1e-4, atol=1e-4)


def dense_pooled(dense, weights, combiner):
    """Combines rows of `dense` in stock TensorFlow."""
    bags = tf.ragged.row_splits_to_segment_ids(SPLITS)
    rows = tf.gather(dense, KEYS) * weights[:, None]
    total = tf.math.unsorted_segment_sum(rows, bags, len(BAGS))
    if combiner == "sum":
        return total
    if combiner == "mean":
        divisor = tf.math.unsorted_segment_sum(weights, bags, len(BAGS))
    else:
        squares = tf.math.unsorted_segment_sum(weights**2, bags, len(BAGS))
        divisor = tf.sqrt(squares)
    return tf.math.divide_no_nan(total, divisor[:, None])


def test_pooled_gradient_of_empty_bags(handle, trainable):
    with tf.GradientTape() as tape:
        outputs = pooled_lookup(
            [handle],
            [np.zeros(0, np.int64)],
            [np.zeros(4, np.int64)],
            dims=[DIM],
            trainables=[watched_handle(trainable)],
        )
        loss = tf.reduce_sum(outputs.pooled[0])
    slices = tape.gradient(loss, trainable)
    assert slices.values.shape == (0, DIM)
    # At least two rows: what makes slices dense is to fail, not to fit.
    assert slices.dense_shape.numpy().tolist() == [2, DIM]


def test_absent_keys_of_a_read_only_lookup_get_no_gradient(handle, trainable):
    lookup([handle], [[1]], dims=[DIM])
    with tf.GradientTape() as tape:
        outputs = pooled_lookup(
            [handle],
            [np.array([1, 5])],
            [np.array([0, 2])],
            dims=[DIM],
            insert=False,
            trainables=[watched_handle(trainable)],
        )
        loss = tf.reduce_sum(outputs.pooled[0])
    slices = tape.gradient(loss, trainable)
    assert slices.indices.numpy().tolist() == [0]
