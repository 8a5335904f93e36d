"""combine: one row of each bag, with ops of TensorFlow."""

import tensorflow as tf


def combine(
    rows: tf.Tensor, row_splits: tf.Tensor, weights: tf.Tensor, combiner: str
) -> tf.Tensor:
    """Combines the rows of each bag.

    Args:
        rows: A row for each id of the bags, `float32`, shape `(n, dim)`.
        row_splits: Where bags begin and end, `int64`, shape `(bags + 1,)`.
        weights: `float32`, shape `(n,)`, or `(0,)` for none.
        combiner: "sum", "mean" or "sqrtn".

    Returns:
        `float32`, shape `(bags, dim)`; zeros for empty bags.
    """
    bag_of = tf.ragged.row_splits_to_segment_ids(row_splits, out_type=tf.int64)
    count = tf.size(row_splits, out_type=tf.int64) - 1

    def total(values: tf.Tensor) -> tf.Tensor:
        return tf.math.unsorted_segment_sum(values, bag_of, count)

    if weights.shape[0] == 0:
        weights = tf.ones(tf.shape(rows)[:1])
    weights = weights[:, tf.newaxis]
    sums = total(rows * weights)
    if combiner == "sum":
        return sums
    if combiner == "mean":
        return tf.math.divide_no_nan(sums, total(weights))
    squares = total(weights**2)
    # The root has no gradient at 0, where there is nothing to divide.
    divisors = tf.sqrt(tf.where(squares > 0, squares, 1.0))
    return sums / divisors
