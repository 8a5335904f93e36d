"""Metrics of an evaluation by all ranks of a job."""

from typing import Any

import tensorflow as tf

from embedra import metrics
from embedra.distribute import Communicator


v1: Any = tf.compat.v1


class MetricsOverRanks(v1.train.SessionRunHook):
    """Puts together what metrics of all ranks hold, before they are read.

    Counts and sums, which the variables of most metrics hold, are added up;
    examples that metrics keep are gathered.

    Args:
        ranks: The ranks of the job.
    """

    def __init__(self, ranks: Communicator) -> None:
        self._ranks = ranks
        self._merged: Any = None

    def begin(self) -> None:
        """Adds what does it to the graph.

        Raises:
            NotImplementedError: If a metric holds something else, that grows.
        """
        merged = []
        with self._ranks.chain("metrics"):
            gathered = set()
            for store in metrics.example_stores():
                gathered |= {id(variable) for variable in store.variables}
                merged.append(store.gather(self._ranks, "examples of metrics"))
            for variable in v1.get_collection(v1.GraphKeys.METRIC_VARIABLES):
                if id(variable) in gathered:
                    continue
                if not variable.shape.is_fully_defined():
                    msg = (
                        f"Metric variable {variable.op.name!r} grows, and "
                        "cannot be added up over ranks. Evaluate it in one "
                        "process."
                    )
                    raise NotImplementedError(msg)
                total = self._ranks.all_reduce(
                    variable.read_value(), label=variable.op.name
                )
                merged.append(v1.assign(variable, total).op)
        self._merged = tf.group(*merged)

    def end(self, session: Any) -> None:
        """Does it.

        Args:
            session: The session.
        """
        session.run(self._merged)
