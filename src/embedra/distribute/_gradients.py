"""reduce_gradients: dense gradients of all ranks as one."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from embedra._typing import Tensor

from ._communicator import BUCKET_BYTES, Communicator
from ._graph_share import default_share


def reduce_gradients(
    communicator: Communicator,
    gradients: Sequence[Any],
    *,
    share: Any = None,
    bucket_bytes: int = BUCKET_BYTES,
) -> list[Any]:
    """Turns gradients of each rank's examples into those of all examples.

    It is for weights that all ranks hold, not for tables that are split over
    them: `sharded_rows` does that.

    Args:
        communicator: Of the ranks.
        gradients: Tensors, `tf.IndexedSlices` or None; None on all ranks or on
            none.
        share: This rank's part of all examples, see `batch_share`; None for
            1 / size, or what `set_graph_share` says. Gradients are multiplied
            by it and added up.
        bucket_bytes: See `Communicator.all_reduce`.

    Returns:
        The gradients, dense ones the same bits on all ranks. Slices hold the
        rows of all ranks.

    Example:
        >>> from embedra.distribute import communicator
        >>> gradients = [tf.constant([1.0, 2.0]), None]
        >>> reduce_gradients(communicator(), gradients)[0].numpy().tolist()
        [1.0, 2.0]
    """
    share = default_share(communicator) if share is None else share
    reduced: list[Any] = [None] * len(gradients)
    dense = []
    for place, gradient in enumerate(gradients):
        if isinstance(gradient, tf.IndexedSlices):
            reduced[place] = _gathered(communicator, gradient, share)
        elif gradient is not None:
            dense.append(place)
    for bucket in _buckets(gradients, dense, bucket_bytes):
        totals = communicator.all_reduce(
            [times_share(gradients[place], share) for place in bucket],
            bucket_bytes=bucket_bytes,
            label="gradients",
        )
        for place, total in zip(bucket, totals, strict=True):
            reduced[place] = total
    return reduced


def _buckets(
    gradients: Sequence[Any], places: Sequence[int], bucket_bytes: int
) -> list[list[int]]:
    """Groups gradients, those of the last weights first.

    A backward pass makes them in that order, so a bucket can be exchanged while
    the gradients of earlier layers are still being computed.
    """
    buckets: list[list[int]] = []
    room = 0
    for place in reversed(places):
        if room <= 0:
            buckets.append([])
            room = bucket_bytes
        buckets[-1].append(place)
        gradient = gradients[place]
        # What is not known when a function is traced counts as nothing.
        elements = gradient.shape.num_elements() or 0
        room -= elements * gradient.dtype.size
    return buckets


def _gathered(
    communicator: Communicator, slices: tf.IndexedSlices, share: Any
) -> tf.IndexedSlices:
    values, _ = communicator.all_gather_v(
        times_share(slices.values, share), label="rows of gradients"
    )
    indices, _ = communicator.all_gather_v(
        slices.indices, label="indices of gradients"
    )
    return tf.IndexedSlices(values, indices, slices.dense_shape)


def times_share(value: Any, share: Any) -> Tensor:
    """Multiplies by this rank's part of all examples, to be added up.

    Args:
        value: A tensor of floats, or what makes one.
        share: This rank's part, a scalar, see `batch_share`. Of no examples
            there may be values that are no numbers: they count as 0.

    Example:
        >>> times_share([2.0, float("nan")], 0.0).numpy().tolist()
        [0.0, 0.0]
    """
    value = tf.convert_to_tensor(value)
    return tf.math.multiply_no_nan(value, tf.cast(share, value.dtype))
