"""SingleCommunicator: a rank by itself."""

import tensorflow as tf

from embedra._typing import Operation, Tensor

from ._communicator import Communicator


class SingleCommunicator(Communicator):
    """The communicator of a job of one rank: what it sends it gets.

    It checks its arguments as others do, so that what works with it works on
    many ranks.

    Example:
        >>> single = SingleCommunicator()
        >>> single.rank, single.size
        (0, 1)
        >>> single.all_reduce(tf.constant([1.0, 2.0])).numpy().tolist()
        [1.0, 2.0]
    """

    rank = 0
    size = 1
    local_rank = 0
    local_size = 1

    def barrier(self, *, label: str = "") -> Operation:
        """Waits for nobody.

        Args:
            label: Unused.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.
        """
        del label
        return None if tf.executing_eagerly() else tf.no_op()

    def _all_to_all_v(
        self,
        values: list[Tensor],
        splits: list[Tensor],
        receive_splits: list[Tensor],
        label: str,
    ) -> tuple[list[Tensor], list[Tensor]]:
        del receive_splits
        received = []
        for value, split in zip(values, splits, strict=True):
            message = (
                f"all_to_all_v {label!r}: `splits` must have one number, that "
                "of the rows given, as there is one rank."
            )
            expected = tf.shape(value, out_type=tf.int64)[:1]
            check = tf.debugging.assert_equal(split, expected, message)
            with tf.control_dependencies([] if check is None else [check]):
                received.append(tf.identity(value))
        return received, splits

    def _all_reduce(
        self,
        values: list[Tensor],
        reduction: str,
        bucket_bytes: int,
        label: str,
    ) -> list[Tensor]:
        del reduction, bucket_bytes, label
        return [tf.identity(value) for value in values]

    def _all_gather_v(
        self, value: Tensor, label: str, any_label: bool
    ) -> tuple[Tensor, Tensor]:
        del label, any_label
        return tf.identity(value), tf.shape(value, out_type=tf.int64)[:1]

    def _broadcast(self, value: Tensor, root: int, label: str) -> Tensor:
        del root, label
        return tf.identity(value)
