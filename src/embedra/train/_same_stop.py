"""SameStop: the sessions of all ranks end after the same step."""

from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator


_V1: Any = tf.compat.v1


class SameStop(_V1.train.SessionRunHook):
    """Ends the session on all ranks after a step after which one is to end.

    It must come after hooks that ask for it.

    Args:
        ranks: The ranks of the job.
    """

    def __init__(self, ranks: Communicator) -> None:
        self._ranks = ranks
        self._own: Any = None
        self._any: Any = None

    def begin(self) -> None:
        """Adds what it needs to the graph."""
        self._own = _V1.placeholder(tf.int64, ())
        with self._ranks.chain("stop"):
            self._any = self._ranks.all_reduce(
                self._own, "max", label="whether to stop"
            )

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Tells the others, and is told.

        Args:
            run_context: Knows what hooks before have asked for.
            run_values: Unused.
        """
        del run_values
        asked = {self._own: int(run_context.stop_requested)}
        if run_context.session.run(self._any, asked):
            run_context.request_stop()
