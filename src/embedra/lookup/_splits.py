"""Bags of sparse ids: which one each is in, and where they begin and end.

There are many in a graph, one for each column: it is built of few ops.
"""

import tensorflow as tf


def bags_of(
    ids: tf.SparseTensor,
) -> tuple[tf.Tensor | None, tf.Tensor, tf.Tensor]:
    """Returns the outer shape, each id's bag in it, and how many there are.

    Of matrices, which are most of what there is, a row is a bag: the shape is
    None, and there is nothing to work out, in each of many columns.

    Args:
        ids: Sparse ids of known rank.
    """
    outer = max(ids.shape.rank - 1, 1)
    if outer == 1:
        # Slices would be four ops each.
        rank = ids.shape.rank
        bag_of = tf.raw_ops.Unpack(value=ids.indices, num=rank, axis=1)[0]
        bags = tf.raw_ops.Unpack(value=ids.dense_shape, num=rank)[0]
        return None, bag_of, bags
    outer_shape = ids.dense_shape[:outer]
    # Row-major number of each id's bag.
    strides = tf.math.cumprod(outer_shape, exclusive=True, reverse=True)
    bag_of = tf.reduce_sum(ids.indices[:, :outer] * strides, axis=1)
    return outer_shape, bag_of, tf.reduce_prod(outer_shape)


def checked_order(bag_of: tf.Tensor, owner: str) -> tf.Tensor:
    """Returns the bag of each id, once they are seen to be in order.

    The op is called as it is: tf.Assert builds a branch and functions for it.

    Args:
        bag_of: The bag of each id, `int64`, shape `(n,)`.
        owner: Name of the layer, for messages.
    """
    in_order = tf.raw_ops.Assert(
        condition=tf.reduce_all(bag_of[1:] >= bag_of[:-1]),
        data=[
            f"{owner} needs sparse ids in row-major order. Use "
            "tf.sparse.reorder."
        ],
    )
    with tf.control_dependencies([] if in_order is None else [in_order]):
        return tf.identity(bag_of)


def splits_of(bag_of: tf.Tensor, bags: tf.Tensor) -> tf.Tensor:
    """Returns where bags begin and end, `int64`, shape `(bags + 1,)`.

    The ops are called as they are: tf.searchsorted works out shapes that are
    known here.

    Args:
        bag_of: The bag of each id, `int64`, shape `(n,)`, in order.
        bags: How many bags there are.
    """
    one = tf.constant(1, tf.int64)
    numbers = tf.range(tf.constant(0, tf.int64), bags + one, one)
    splits = tf.raw_ops.LowerBound(
        sorted_inputs=tf.raw_ops.Pack(values=[bag_of]),
        values=tf.raw_ops.Pack(values=[numbers]),
        out_type=tf.int64,
    )
    return tf.squeeze(splits, axis=0)
