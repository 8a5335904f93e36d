"""de.math, de.data_flow and de.ragged_embedding_ops: TensorFlow's functions."""

import numpy as np
import tensorflow as tf

import embedra.dynamic_embedding as de


IDS = tf.SparseTensor([[0, 1], [2, 0]], tf.constant([7, 8], tf.int64), [3, 2])


def test_sparse_segment_sum_has_as_many_segments_as_asked():
    data = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    sums = de.math.sparse_segment_sum(
        data, [1, 0, 1], [0, 0, 2], num_segments=4
    )
    expected = [[4.0, 6.0], [0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]
    np.testing.assert_array_equal(sums, expected)


def test_sparse_fill_empty_rows_says_which_were_empty():
    filled, was_empty = de.math.sparse_fill_empty_rows(IDS, 9, name="fill")
    np.testing.assert_array_equal(
        tf.sparse.to_dense(filled), [[0, 7], [9, 0], [8, 0]]
    )
    np.testing.assert_array_equal(was_empty, [False, True, False])


def test_sparse_reshape_keeps_the_order_of_values():
    reshaped = de.math.sparse_reshape(IDS, [2, -1])
    np.testing.assert_array_equal(
        tf.sparse.to_dense(reshaped), [[0, 7, 0], [0, 8, 0]]
    )


def test_dynamic_stitch_undoes_dynamic_partition():
    data, parts = tf.range(6) * 10, [1, 0, 2, 2, 0, 1]
    pieces = de.data_flow.dynamic_partition(data, parts, 3)
    assert [piece.numpy().tolist() for piece in pieces] == [
        [10, 40],
        [0, 50],
        [20, 30],
    ]
    places = de.data_flow.dynamic_partition(tf.range(6), parts, 3)
    for use_fast in (True, False):
        joined = de.data_flow.dynamic_stitch(places, pieces, use_fast)
        np.testing.assert_array_equal(joined, data)


def test_ragged_embedding_ops_are_the_lookups_themselves():
    ragged = de.ragged_embedding_ops
    assert ragged.embedding_lookup_sparse is de.embedding_lookup_sparse
    assert (
        ragged.safe_embedding_lookup_sparse is de.safe_embedding_lookup_sparse
    )
