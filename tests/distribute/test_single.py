"""The communicator of one rank, and what all communicators check."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import distribute


@pytest.fixture
def single():
    return distribute.communicator("single")


def test_one_process_has_a_single_communicator():
    found = distribute.communicator()
    assert (found.rank, found.size) == (0, 1)
    assert (found.local_rank, found.local_size) == (0, 1)


def test_all_collectives_give_back_what_they_are_given(single):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    for reduction in ("sum", "mean", "max", "min"):
        np.testing.assert_array_equal(single.all_reduce(x, reduction), x)
    rows, splits = single.all_to_all_v(x, [2])
    np.testing.assert_array_equal(rows, x)
    np.testing.assert_array_equal(splits, [2])
    gathered, counts = single.all_gather_v(x)
    np.testing.assert_array_equal(gathered, x)
    np.testing.assert_array_equal(counts, [2])
    np.testing.assert_array_equal(single.broadcast(x), x)
    assert single.barrier() is None


def test_gradients_pass_through(single):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        rows, splits = single.all_to_all_v([x, x * 2], [[2], [2]])
        loss = single.all_reduce(tf.add_n(rows), "mean") * single.broadcast(x)
    np.testing.assert_array_equal(tape.gradient(loss, x), 6 * x)
    assert len(splits) == 2


def test_splits_that_do_not_add_up_are_an_error(single):
    with pytest.raises(tf.errors.InvalidArgumentError, match="'ids'"):
        single.all_to_all_v([1, 2, 3], [2], label="ids")


def test_works_in_a_tf1_graph(single):
    with tf.Graph().as_default():
        x = single.all_reduce(tf.constant([3.0]))
        with tf.control_dependencies([single.barrier()]):
            y = tf.identity(x)
        with tf.compat.v1.Session() as session:
            assert session.run(y) == 3.0


def test_mixed_dtypes_cannot_be_sent_together(single):
    with pytest.raises(ValueError, match="one dtype.*float32, int64"):
        single.all_to_all_v(
            [tf.constant([1.0]), tf.constant([1], tf.int64)], [[1], [1]]
        )


def test_lists_of_different_lengths_are_an_error(single):
    with pytest.raises(ValueError, match=r"len\(values\)=2, len\(splits\)=1"):
        single.all_to_all_v([tf.ones([1]), tf.ones([1])], [[1]])


def test_mean_of_integers_is_an_error(single):
    with pytest.raises(ValueError, match="int32.*reduction=.sum"):
        single.all_reduce([1, 2], "mean")


def test_unknown_names_are_errors(single):
    with pytest.raises(ValueError, match="reduction='median'"):
        single.all_reduce(1.0, "median")
    with pytest.raises(ValueError, match="root=1"):
        single.broadcast(1.0, 1)
    with pytest.raises(ValueError, match="engine='gloo'"):
        distribute.communicator("gloo")
