"""embedding_lookup and embedding_lookup_unique."""

import gc
import os
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from numerics import assert_allclose


LOOKUPS = pytest.mark.parametrize(
    "lookup", [de.embedding_lookup, de.embedding_lookup_unique]
)
DEVICES = pytest.mark.parametrize(
    "devices", [None, ["/CPU:0"] * 3], ids=["one table", "three tables"]
)


def start_rows():
    return np.random.default_rng(7).normal(size=(8, 3)).astype(np.float32)


def variable(devices=None, **kwargs):
    made = de.Variable(dim=3, name="item", devices=devices, **kwargs)
    made.upsert(np.arange(8), start_rows())
    return made


def sgd():
    return de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(1.0))


def train(variable, ids, lookup=de.embedding_lookup, optimizer=None, **kwargs):
    """Makes a step of SGD(1) on half the sum of squares; returns rows."""
    optimizer = optimizer or sgd()
    with tf.GradientTape() as tape:
        rows, trainable = lookup(variable, ids, return_trainable=True, **kwargs)
        flat = rows.flat_values if isinstance(rows, tf.RaggedTensor) else rows
        loss = tf.reduce_sum(flat**2) / 2
    optimizer.apply_gradients([(tape.gradient(loss, trainable), trainable)])
    return rows


@DEVICES
@LOOKUPS
def test_rows_have_the_shape_of_the_ids_and_repeats_are_summed(lookup, devices):
    item = variable(devices)
    ids = np.array([[[1, 2]], [[1, 1]]])
    rows = train(item, ids, lookup)
    assert_allclose(rows, start_rows()[ids])
    expected = start_rows()
    expected[1] *= 1 - 3
    expected[2] = 0
    assert_allclose(item.lookup(np.arange(8)), expected, atol=1e-5)


@DEVICES
@LOOKUPS
def test_ragged_ids_keep_their_structure(lookup, devices):
    item = variable(devices)
    ids = tf.ragged.constant([[[1, 2], []], [], [[1]]], dtype=tf.int64)
    rows = train(item, ids, lookup)
    assert rows.to_list() == tf.gather(start_rows(), ids).to_list()
    expected = start_rows()
    expected[1] *= -1
    expected[2] = 0
    assert_allclose(item.lookup(np.arange(8)), expected, atol=1e-5)


@DEVICES
@LOOKUPS
@pytest.mark.parametrize("max_norm", [0.5, 1.5, 100.0])
def test_max_norm_clips_rows_and_its_gradient_is_that_of_the_clip(
    lookup, devices, max_norm
):
    item = variable(devices)
    ids = tf.constant([1, 2, 1, 7], tf.int64)
    factors = tf.random.normal((4, 3))
    with tf.GradientTape() as tape:
        rows, trainable = lookup(
            item, ids, max_norm=max_norm, return_trainable=True
        )
        loss = tf.reduce_sum(rows * factors)
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(1.0))
    optimizer.apply_gradients([(tape.gradient(loss, trainable), trainable)])

    matrix = tf.Variable(start_rows())
    with tf.GradientTape() as tape:
        expected = tf.nn.embedding_lookup(matrix, ids, max_norm=max_norm)
        loss = tf.reduce_sum(expected * factors)
    matrix.assign_sub(tf.convert_to_tensor(tape.gradient(loss, matrix)))
    assert_allclose(rows, expected, rtol=1e-5)
    assert_allclose(item.lookup(np.arange(8)), matrix, rtol=1e-4, atol=1e-5)
    norms = np.linalg.norm(rows, axis=1)
    assert norms.max() <= max_norm * (1 + 1e-5)


def test_a_row_of_zeros_is_clipped_to_zeros_with_a_finite_gradient():
    item = de.Variable(dim=3, name="item")
    rows = train(item, [1], max_norm=1.0)
    assert_allclose(rows, np.zeros((1, 3)))
    assert np.all(np.isfinite(item.lookup([1])))


def test_max_norm_of_a_shadow_holds_in_every_lookup():
    item = variable()
    shadow = de.shadow_ops.ShadowVariable(item, max_norm=0.1)
    for rows in (
        de.embedding_lookup(shadow, [1]),
        de.shadow_ops.embedding_lookup(shadow, [1]),
        de.embedding_lookup_sparse(shadow, [[1]], None),
    ):
        assert_allclose(np.linalg.norm(rows), 0.1, rtol=1e-5)


def test_arguments_of_tensorflow_are_accepted_in_their_order():
    rows = de.embedding_lookup(variable(), [1], "div", "lookup", False, None)
    assert_allclose(rows, start_rows()[[1]])
    assert_allclose(de.embedding_lookup([variable()], [1]), start_rows()[[1]])


@pytest.mark.parametrize(
    "ids", [[], np.zeros((0, 3), np.int64), np.zeros((3, 0), np.int64)]
)
@DEVICES
def test_no_ids_give_no_rows_and_change_nothing(ids, devices):
    item = variable(devices)
    rows = train(item, ids)
    assert rows.shape == (*np.shape(ids), 3)
    assert_allclose(item.lookup(np.arange(8)), start_rows())
    assert int(item.size()) == 8


# When lookups create rows.


@DEVICES
def test_lookups_in_train_mode_create_rows_and_count(devices):
    item = variable(devices, initializer="uniform")
    first = de.embedding_lookup(item, [100, 101, 100])
    assert int(item.size()) == 10
    np.testing.assert_array_equal(item.lookup([100, 101, 100]), first)
    counts = {}
    for table in item.tables:
        for records in table.export_chunks():
            counts |= dict(zip(records.keys, records.frequencies, strict=True))
    assert (counts[100], counts[101], counts[1]) == (2, 1, 0)


@pytest.fixture
def inference_mode():
    """Inference mode, for as long as the test runs."""
    de.enable_inference_mode()
    yield
    de.enable_train_mode()


@DEVICES
@pytest.mark.usefixtures("inference_mode")
def test_lookups_in_inference_mode_change_nothing(devices):
    item = variable(devices, initializer=0.5)
    assert de.get_model_mode() is de.ModelMode.INFERENCE
    with tf.GradientTape() as tape:
        rows, trainable = de.embedding_lookup(
            item, [1, 99], return_trainable=True
        )
        loss = tf.reduce_sum(rows)
    assert_allclose(rows, [start_rows()[1], [0.5] * 3])
    assert tape.gradient(loss, trainable) is None
    assert int(item.size()) == 8


@DEVICES
def test_a_variable_that_is_not_trainable_stays_as_it_is(devices):
    item = variable(devices, trainable=False)
    with tf.GradientTape() as tape:
        rows, trainable = de.embedding_lookup(
            item, [1, 99], return_trainable=True
        )
        loss = tf.reduce_sum(rows)
    assert tape.gradient(loss, trainable) is None
    assert not trainable.trainable
    assert int(item.size()) == 8


# Names.


def two_lookups(item):
    with tf.GradientTape() as tape:
        rows, left = de.embedding_lookup(
            item, [1, 2], name="left", return_trainable=True
        )
        others, right = de.embedding_lookup(
            item, [2, 3], name="right", return_trainable=True
        )
        loss = tf.reduce_sum(rows) + 10 * tf.reduce_sum(others)
    trainables = [left, right]
    assert left is not right
    return tape.gradient(loss, trainables), trainables


@DEVICES
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["e", "f"])
def test_lookups_of_two_names_are_joined_and_rows_move_once(wrap, devices):
    item = variable(devices)
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.Adagrad(1.0))

    @wrap
    def step():
        optimizer.apply_gradients(zip(*two_lookups(item), strict=True))

    step()
    gradient = np.array([0, 1, 11, 10, 0, 0, 0, 0])[:, None]
    moved = gradient / np.sqrt(0.1 + gradient**2 + 1e-7)
    rows = item.lookup(np.arange(8))
    assert_allclose(rows, start_rows() - moved, rtol=1e-5, atol=1e-5)
    assert int(optimizer.iterations) == 1


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["e", "f"])
def test_plain_optimizers_refuse_lookups_of_two_names(wrap):
    item = variable()
    optimizer = keras.optimizers.Adagrad(1.0)

    @wrap
    def step():
        optimizer.apply_gradients(zip(*two_lookups(item), strict=True))

    with pytest.raises(Exception, match=r"'item'.*DynamicEmbeddingOptimizer"):
        step()
    assert_allclose(item.lookup(np.arange(8)), start_rows())


def test_lookups_of_one_name_have_one_gradient():
    item = variable()
    with tf.GradientTape() as tape:
        first, trainable = de.embedding_lookup(
            item, [1, 2], return_trainable=True
        )
        second, same = de.embedding_lookup(
            item, [[2], [3]], return_trainable=True
        )
        loss = tf.reduce_sum(first) + 10 * tf.reduce_sum(second)
    assert same is trainable
    optimizer = keras.optimizers.SGD(1.0)
    optimizer.apply_gradients([(tape.gradient(loss, trainable), trainable)])
    moved = start_rows() - item.lookup(np.arange(8)).numpy()
    assert_allclose(moved[:, 0], [0, 1, 11, 10, 0, 0, 0, 0], atol=1e-5)


def test_trainables_are_found_by_name():
    item = variable()
    _, trainable = de.embedding_lookup(
        item, [1], name="x", return_trainable=True
    )
    assert item.get_trainable_by_name("x") is trainable
    assert item.trainable_store == {"x": trainable}


def test_threads_get_one_trainable():
    item, found = variable(), []
    start = threading.Barrier(8)

    def ask():
        start.wait()
        found.append(item.trainable_of("x"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [x is found[0] for x in found] == [True] * 8


# Functions.


@LOOKUPS
def test_batches_of_other_sizes_are_not_traced_again(lookup):
    item, optimizer, traces = variable(), sgd(), []

    @tf.function(input_signature=[tf.TensorSpec(None, tf.int64)])
    def step(ids):
        traces.append(ids.shape)
        return train(item, ids, lookup, optimizer)

    for ids in ([1], [1, 2, 3], [[1, 2], [3, 4]], []):
        rows = step(tf.constant(ids, tf.int64))
        assert rows.shape == (*np.shape(ids), 3)
    assert len(traces) == 1


def test_a_static_shape_is_kept_in_functions():
    item, shapes = variable(["/CPU:0"] * 2), []

    @tf.function(input_signature=[tf.TensorSpec((None, 5), tf.int64)])
    def look_up(ids):
        shapes.append(de.embedding_lookup(item, ids).shape.as_list())
        shapes.append(
            de.embedding_lookup_sparse(item, ids, None).shape.as_list()
        )

    look_up(tf.zeros((2, 5), tf.int64))
    assert shapes == [[None, 5, 3], [None, 3]]


def test_a_loop_in_a_function_trains_at_each_turn():
    item, optimizer = variable(), sgd()

    @tf.function
    def steps(ids):
        for i in range(3):
            train(item, ids + i, optimizer=optimizer)

    steps(tf.constant([1], tf.int64))
    expected = start_rows()
    expected[1:4] = 0
    assert_allclose(item.lookup(np.arange(8)), expected, atol=1e-6)


def _resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a3_a_thousand_eager_steps_leave_nothing_behind():
    item = de.Variable(dim=16, name="item")
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1))

    def step(i):
        ids = tf.range(i % 7, i % 7 + 64, dtype=tf.int64)
        with tf.GradientTape() as tape:
            rows, trainable = de.embedding_lookup(
                item, ids, return_trainable=True
            )
            loss = tf.reduce_sum(rows**2)
        gradient = tape.gradient(loss, trainable)
        optimizer.apply_gradients([(gradient, trainable)])

    for i in range(100):
        step(i)
    gc.collect()
    objects, resident = len(gc.get_objects()), _resident_bytes()
    for i in range(1000):
        step(i)
    gc.collect()
    assert len(gc.get_objects()) - objects < 50
    assert _resident_bytes() - resident < 8 * 2**20
    assert len(item.trainable_store) == 1


# What is refused.


@LOOKUPS
class TestRefusals:
    def test_a_scalar(self, lookup):
        with pytest.raises(ValueError, match=r"'item'.*rank 1.*scalar"):
            lookup(variable(), 3)

    @pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.bool])
    def test_ids_that_are_not_integers(self, lookup, dtype):
        with pytest.raises(TypeError, match=f"'item'.*{dtype.name}"):
            lookup(variable(), tf.cast([0, 1], dtype))

    def test_sparse_ids(self, lookup):
        ids = tf.sparse.from_dense(tf.constant([[1]], tf.int64))
        with pytest.raises(TypeError, match=r"'item'.*embedding_lookup_sparse"):
            lookup(variable(), ids)

    def test_integers_for_strings(self, lookup):
        words = de.Variable(tf.string, dim=1, name="word")
        with pytest.raises(TypeError, match=r"'word'.*'string'.*int64"):
            lookup(words, [1])

    def test_several_variables(self, lookup):
        with pytest.raises(TypeError, match=r"one de\.Variable.*'item'"):
            lookup([variable(), variable()], [1])


def test_a_step_without_a_gradient_is_refused():
    item = variable()
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(1.0))
    _, trainable = de.embedding_lookup(
        item, [1], name="x", return_trainable=True
    )
    with pytest.raises(ValueError, match=r"No gradients.*'x'"):
        optimizer.apply_gradients([(None, trainable)])
    assert int(optimizer.iterations) == 0
