"""FlatExchanges: TensorFlow's collectives, of vectors of any length."""

from typing import Any

import tensorflow as tf

from embedra import _ops
from embedra._typing import Tensor


_GROUP = 7_301  # one of all ranks; strategies of the user count from 1
_MERGES = {"sum": "Add", "max": "Max", "min": "Min"}
_KINDS = ("gather", "all_to_all", *_MERGES)
# What all collectives take.
WIRE_DTYPES = (tf.float32, tf.float64, tf.int32, tf.int64)


class FlatExchanges:
    """Exchanges vectors of numbers with the other ranks.

    To TensorFlow a collective is known by a number, its instance key, that all
    ranks have to give it, and by which it keeps the shape for good. Here the
    key follows from what is exchanged: kind, dtype and length, which is rounded
    up, so that there are few keys. So ranks need not trace functions in the
    same order, and calls leave nothing behind.

    All ranks must make the same calls, of the same length, in the same order:
    ops take a resource that TensorFlow orders them by.

    Args:
        size: Number of ranks.
        device: Of this rank.
        timeout: Seconds after which a collective fails; 0 for never.
    """

    def __init__(self, size: int, device: str, timeout: float) -> None:
        self._size = size
        self._device = device
        self._timeout = timeout
        with tf.device(device):
            self._order = tf.Variable(0.0, trainable=False)

    def gather(self, vector: Tensor) -> Tensor:
        """Gives every rank the vectors of all.

        Args:
            vector: Of one of `WIRE_DTYPES`, shape `(n,)`.

        Returns:
            Shape `(size, n)`, that of rank 0 first.
        """
        n = tf.size(vector)
        padded, length = _rounded_up(n)
        rows = self._run(
            tf.raw_ops.CollectiveGatherV2,
            tf.pad(vector[tf.newaxis], [[0, 0], [0, padded - n]]),
            self._key("gather", vector.dtype, length),
        )
        return tf.reshape(rows, (self._size, padded))[:, :n]

    def reduce(self, vector: Tensor, reduction: str) -> Tensor:
        """Reduces vectors over the ranks.

        Args:
            vector: Of one of `WIRE_DTYPES`, shape `(n,)`.
            reduction: "sum", "max" or "min".

        Returns:
            The same on all ranks, shape `(n,)`.
        """
        n = tf.size(vector)
        padded, length = _rounded_up(n)
        reduced = self._run(
            tf.raw_ops.CollectiveReduceV2,
            tf.pad(vector, [[0, padded - n]]),
            self._key(reduction, vector.dtype, length),
            merge_op=_MERGES[reduction],
            final_op="Id",
        )
        return reduced[:n]

    def all_to_all(self, vectors: Tensor) -> Tensor:
        """Sends each rank a vector, and gets one of each.

        Args:
            vectors: Of one of `WIRE_DTYPES`, shape `(size, n)`: that for rank 0
                first.

        Returns:
            Shape `(size, n)`: that of rank 0 first.
        """
        n = tf.shape(vectors)[1]
        padded, length = _rounded_up(n)
        received = self._run(
            tf.raw_ops.CollectiveAllToAllV2,
            tf.pad(vectors, [[0, 0], [0, padded - n]]),
            self._key("all_to_all", vectors.dtype, length),
        )
        return tf.reshape(received, (self._size, padded))[:, :n]

    def _run(
        self, collective: Any, values: Tensor, key: Tensor, **options: str
    ) -> Tensor:
        with tf.device(self._device):
            return collective(
                input=values,
                group_size=self._size,
                group_key=_GROUP,
                instance_key=key,
                ordering_token=[_ops.captured(self._order.handle)],
                communication_hint="ring",
                timeout_seconds=self._timeout,
                **options,
            )

    @staticmethod
    def _key(kind: str, dtype: tf.DType, length: Tensor) -> Tensor:
        """Returns the instance key of a kind of collective.

        Args:
            kind: One of `_KINDS`.
            dtype: One of `WIRE_DTYPES`.
            length: Number that stands for a length, from `_rounded_up`.
        """
        first = _KINDS.index(kind) * len(WIRE_DTYPES) + WIRE_DTYPES.index(dtype)
        return 1 + first * _LENGTHS + length


# Lengths are rounded up to n * 2**e, where n < 8: by a quarter at most.
_POWERS = 32
_LENGTHS = 8 * _POWERS


def _rounded_up(length: Tensor) -> tuple[Tensor, Tensor]:
    """Rounds a length up to one of few.

    Args:
        length: Scalar, `int32`.

    Returns:
        The rounded one, at least 1, and its number among all, below `_LENGTHS`;
        `int32`.
    """
    length = tf.cast(length, tf.int64)
    powers = tf.constant([2**e for e in range(_POWERS - 1)], tf.int64)
    # The smallest for which at most 7 of it are enough.
    exponent = tf.reduce_sum(tf.cast(7 * powers < length, tf.int64))
    step = tf.bitwise.left_shift(tf.constant(1, tf.int64), exponent)
    number = tf.maximum((length + step - 1) // step, 1)
    return (
        tf.cast(number * step, tf.int32),
        tf.cast(exponent * 8 + number, tf.int32),
    )
