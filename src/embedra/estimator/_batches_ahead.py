"""Batches of a rank in a job, read before their steps."""

from typing import Any, NamedTuple

import tensorflow as tf

from embedra.distribute import RankBatch, rows_of_batch, set_graph_share


v1: Any = tf.compat.v1

# Where a rank keeps the batch of the step to come.
_STAGE = "embedra/batch"


class BatchesAhead(NamedTuple):
    """Batches of which one is read before its step, so that ranks can agree.

    Attributes:
        read: The operation that reads one.
        drop: The operation that forgets what was read.
        rows: How many rows the one that is read has, scalar, `int64`.
        present: Whether it is of this rank's data; else those have ended, and
            it has no rows. Scalar, `int64`.
        share: To be fed in the step: the part of all ranks' rows that this
            rank has. Scalar, `float32`.
    """

    read: tf.Operation
    drop: tf.Operation
    rows: tf.Tensor
    present: tf.Tensor
    share: tf.Tensor


def read_ahead(batch: RankBatch, size: int) -> tuple[Any, BatchesAhead]:
    """Reads batches ahead, and weighs the gradients of this graph by rows.

    Args:
        batch: The next one of an iterator.
        size: Number of ranks.

    Returns:
        The batch that was read ahead, and what reads.
    """
    flat = tf.nest.flatten(batch.batch, expand_composites=True)
    given = [tensor for tensor in flat if tensor is not None]
    dtypes = [tensor.dtype for tensor in given]
    read = tf.raw_ops.Stage(values=given, shared_name=_STAGE)
    drop = tf.raw_ops.StageClear(dtypes=dtypes, shared_name=_STAGE)
    taken = iter(tf.raw_ops.Unstage(dtypes=dtypes, shared_name=_STAGE))
    shaped = [
        None if tensor is None else tf.ensure_shape(next(taken), tensor.shape)
        for tensor in flat
    ]
    packed = tf.nest.pack_sequence_as(
        batch.batch, shaped, expand_composites=True
    )
    present = tf.cast(batch.present, tf.int64)
    share = v1.placeholder_with_default(tf.constant(1.0 / size), ())
    set_graph_share(share)
    return packed, BatchesAhead(
        read, drop, present * rows_of_batch(batch.batch), present, share
    )
