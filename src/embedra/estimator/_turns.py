"""Steps of a job: all ranks make the same number of them."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator, gather_values


v1: Any = tf.compat.v1

# Where a rank keeps the batch of the step to come.
_STAGE = "embedra/batch"


def staged(batch: Any) -> tuple[Any, tf.Operation]:
    """Reads batches one step ahead, so that the end of data is known before.

    Args:
        batch: Tensors of the next batch of an iterator, in any structure.

    Returns:
        The batch that was read ahead, and the operation that reads one.
    """
    flat = tf.nest.flatten(batch, expand_composites=True)
    read = tf.raw_ops.Stage(values=flat, shared_name=_STAGE)
    taken = tf.raw_ops.Unstage(
        dtypes=[tensor.dtype for tensor in flat], shared_name=_STAGE
    )
    taken = [
        tf.ensure_shape(tensor, one.shape)
        for tensor, one in zip(taken, flat, strict=True)
    ]
    packed = tf.nest.pack_sequence_as(batch, taken, expand_composites=True)
    return packed, read


class Turns(v1.train.SessionRunHook):
    """Says whether there is another step: the same on all ranks.

    Training ends on all ranks when that of one would: its data are at their
    end, or a hook has asked for it.

    Args:
        ranks: The ranks of the job.
        read: Reads a batch ahead; None if the input is no dataset, and has no
            end.
    """

    def __init__(self, ranks: Communicator, read: tf.Operation | None) -> None:
        self._ranks = ranks
        self._read = read
        self._session: Any = None
        self.ended: list[int] = []

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Notes the session.

        Args:
            session: The session.
            coord: Unused.
        """
        del coord
        self._session = session

    def has_next(self, should_stop: Callable[[], bool]) -> bool:
        """Returns whether all ranks go on, and if so reads their batches.

        Args:
            should_stop: Whether the session of this rank is to stop.
        """
        stop, ended = should_stop(), False
        if not stop and self._read is not None:
            try:
                self._session.run(self._read)
            except tf.errors.OutOfRangeError:
                ended = True
        told = gather_values(self._ranks, [stop, ended], label="another step")
        self.ended = [rank for rank, (_, end) in enumerate(told) if end]
        return not any(stop or end for stop, end in told)
