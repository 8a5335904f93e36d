"""Pooled lookups of bags of ids: one row for each bag."""

import tensorflow as tf

from embedra import _ops, table as table_lib
from embedra.lookup import Bags, combine as combine_rows

from ._lookup import clip_rows, is_training, longest, rows_of_keys
from ._trainable import TrainableWrapper


COMBINERS = ("mean", "sqrtn", "sum")


def pool(
    trainable: TrainableWrapper,
    bags: Bags,
    combiner: str,
    max_norm: float | None,
) -> tf.Tensor:
    """Looks up and combines the rows of each bag.

    One table without `max_norm` does both in one pass. Otherwise rows are
    looked up one by one, clipped and combined, in float32.

    Args:
        trainable: What stands for the rows.
        bags: Bags of keys, `int64`.
        combiner: "sum", "mean" or "sqrtn".
        max_norm: Longest L2 norm of a row, or None for that of the trainable.

    Returns:
        Rows of the variable's dtype, shape `(bags, dim)`; zeros for bags
        without ids.
    """
    variable = trainable.params
    max_norm = longest(trainable, max_norm)
    is_here = trainable.reader_of_ranks is None
    in_place = is_here and table_lib.current_stand_in() is None
    if max_norm is None and len(variable.tables) == 1 and in_place:
        pooled = _pooled_by_table(trainable, bags, combiner)
    else:
        rows = tf.cast(rows_of_keys(trainable, bags.ids), tf.float32)
        pooled = combine(clip_rows(rows, max_norm), bags, combiner)
    return tf.cast(pooled, variable.value_dtype)


def _pooled_by_table(
    trainable: TrainableWrapper, bags: Bags, combiner: str
) -> tf.Tensor:
    table = trainable.params.tables[0]
    keys, handle = bags.ids, table.resource_handle
    insert = is_training(trainable)
    if insert:
        keys = table.create_missing(keys)
        trainable.read_value()
        handle = trainable.value.handle
    return _ops.table_pooled_lookup(
        [table.resource_handle],
        [handle],
        [keys],
        [bags.row_splits],
        [bags.weights],
        [table.default_row(None)],
        dims=[table.dim],
        dtype=table.dtype,
        insert=insert,
        combiner=combiner,
    ).pooled[0]


def combine(rows: tf.Tensor, bags: Bags, combiner: str) -> tf.Tensor:
    """Combines the rows of each bag.

    Args:
        rows: A row for each id of the bags, `float32`, shape `(n, dim)`.
        bags: The bags.
        combiner: "sum", "mean" or "sqrtn".

    Returns:
        `float32`, shape `(bags, dim)`.
    """
    return combine_rows(rows, bags.row_splits, bags.weights, combiner)


def fill_empty(bags: Bags, key: tf.Tensor) -> Bags:
    """Puts a key into each bag that is empty, with weight 1.

    Args:
        bags: Bags of keys, `int64`.
        key: The key, shape `(1,)`.

    Returns:
        Bags, none of them empty.
    """
    lengths = bags.row_splits[1:] - bags.row_splits[:-1]
    is_empty = tf.equal(lengths, 0)
    added = tf.cast(is_empty, tf.int64)
    splits = tf.concat([[0], tf.cumsum(lengths + added)], axis=0)
    bag_of = tf.ragged.row_splits_to_segment_ids(
        bags.row_splits, out_type=tf.int64
    )
    moved_by = tf.gather(tf.cumsum(added, exclusive=True), bag_of)
    where = [
        tf.range(tf.size(bags.ids, out_type=tf.int64)) + moved_by,
        tf.boolean_mask(splits[:-1], is_empty),
    ]
    where = [tf.cast(places, tf.int32) for places in where]
    count = tf.size(where[1])
    ids = tf.dynamic_stitch(where, [bags.ids, tf.repeat(key, count)])
    weights = bags.weights
    if has_weights(bags):
        weights = tf.dynamic_stitch(where, [weights, tf.ones((count,))])
    return Bags(ids, splits, weights, bags.restore)


def has_weights(bags: Bags) -> bool:
    """Returns whether the ids of bags are weighted.

    Args:
        bags: The bags.
    """
    return bool(bags.weights.shape[0] != 0)
