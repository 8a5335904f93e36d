"""Short forms of the lookup ops, with the table in the trainable's place."""

import tensorflow as tf

from embedra import _ops


def lookup(handles, keys, *, dims, dtype="float32", insert=True, default=()):
    """Looks up `keys[i]` in table i; `default` is a row or () for none."""
    return _ops.table_lookup(
        handles,
        handles,
        keys,
        [tf.constant(default, dtype)] * len(handles),
        dims=dims,
        dtype=dtype,
        insert=insert,
    )


def lookup_one(handle, keys, dim, **options):
    """Looks up keys in one table, and returns its four outputs."""
    outputs = lookup([handle], [keys], dims=[dim], **options)
    return tuple(output[0] for output in outputs)


def pooled_lookup(
    handles,
    keys,
    row_splits,
    weights=None,
    *,
    dims,
    combiner="sum",
    insert=True,
    default=(),
    trainables=None,
):
    """Looks up bags in each table."""
    if weights is None:
        weights = [tf.zeros([0])] * len(handles)
    return _ops.table_pooled_lookup(
        handles,
        trainables or handles,
        keys,
        row_splits,
        weights,
        [tf.constant(default, tf.float32)] * len(handles),
        dims=dims,
        dtype="float32",
        insert=insert,
        combiner=combiner,
    )
