"""Steps of a job: all ranks make the same number of them."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator

from ._batches_ahead import BatchesAhead


v1: Any = tf.compat.v1


class Turns(v1.train.SessionRunHook):
    """Says whether there is another step: the same on all ranks.

    Ranks whose data have ended go on with batches of no rows until those of all
    have. Batches that have no rows on any rank are passed over. Training ends
    on all ranks when a hook of one asks for it.

    To be made in the graph of the training.

    Args:
        ranks: The ranks of the job.
        ahead: Batches of this rank; None if its input is no dataset, and has
            no end.

    Attributes:
        has_ended: Whether the data of all ranks have ended.
    """

    def __init__(self, ranks: Communicator, ahead: BatchesAhead | None) -> None:
        self._ahead = ahead
        self._session: Any = None
        self.has_ended = False
        one = tf.ones((), tf.int64)
        self._stop = v1.placeholder(tf.int64, ())
        rows, present = (
            (one, one) if ahead is None else (ahead.rows, ahead.present)
        )
        with ranks.chain("turns"):
            self._sums = ranks.all_reduce(
                tf.stack([rows, present, self._stop]), label="another step"
            )
        self._own_rows = rows

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Notes the session.

        Args:
            session: The session.
            coord: Unused.
        """
        del coord
        self._session = session

    def next(
        self, should_stop: Callable[[], bool]
    ) -> dict[tf.Tensor, Any] | None:
        """Agrees on a step, and reads its batch.

        Args:
            should_stop: Whether the session of this rank is to stop.

        Returns:
            What to feed in the step; None if there is none.
        """
        if should_stop():
            self._stopped()
            return None
        while True:
            rows, (total, present, stop) = self._read()
            if stop or not present:
                self.has_ended = not stop
                return None
            if self._ahead is None:
                return {}
            if total:
                return {self._ahead.share: rows / total}
            self._session.run(self._ahead.drop)

    def _read(self) -> tuple[int, list[int]]:
        """Reads a batch; returns its rows, and what all ranks tell."""
        read = [] if self._ahead is None else self._ahead.read
        rows, sums, _ = self._session.run(
            [self._own_rows, self._sums, read], {self._stop: 0}
        )
        return int(rows), [int(number) for number in sums]

    def _stopped(self) -> None:
        """Tells the others, and reads nothing more."""
        fed: dict[Any, int] = {self._stop: 1}
        if self._ahead is not None:
            fed |= {self._ahead.rows: 0, self._ahead.present: 0}
        self._session.run(self._sums, fed)
