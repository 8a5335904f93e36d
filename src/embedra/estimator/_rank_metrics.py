"""Metrics of an evaluation by all ranks of a job."""

from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator


v1: Any = tf.compat.v1


class MetricsOverRanks(v1.train.SessionRunHook):
    """Adds up over ranks what metrics have counted, before they are read.

    Counts and sums are what the variables of metrics hold.

    Args:
        ranks: The ranks of the job.
    """

    def __init__(self, ranks: Communicator) -> None:
        self._ranks = ranks
        self._summed: Any = None

    def begin(self) -> None:
        """Adds what does it to the graph.

        Raises:
            NotImplementedError: If a metric holds something else.
        """
        summed = []
        with self._ranks.chain("metrics"):
            for variable in v1.get_collection(v1.GraphKeys.METRIC_VARIABLES):
                if not variable.shape.is_fully_defined():
                    msg = (
                        f"Metric {variable.op.name!r} keeps examples, which "
                        "are not brought together from several ranks in TF1 "
                        "graphs. Evaluate it in one process."
                    )
                    raise NotImplementedError(msg)
                total = self._ranks.all_reduce(
                    variable.read_value(), label=variable.op.name
                )
                summed.append(v1.assign(variable, total).op)
        self._summed = tf.group(*summed)

    def end(self, session: Any) -> None:
        """Does it.

        Args:
            session: The session.
        """
        session.run(self._summed)
