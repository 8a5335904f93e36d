"""The steps of `fit`, `evaluate` and `predict` on several ranks."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator, RankBatch
from embedra.optimizers import weigh_batches

from ._first_step import build
from ._rank_data import rows_of
from ._rank_metrics import logs_of_all
from ._rank_state import average_states, batch_states, broadcast_state
from ._rank_stop import RankStopRequest, SameEnd
from ._traced_step import TracedStep, specs_of


class RankSteps:
    """Makes each step of a model one of all ranks.

    A step begins with an exchange of a few numbers: how many rows each rank
    has, whether its data go on, and whether it was asked to stop. So all ranks
    make as many steps, and weigh their batches by their rows.

    Args:
        model: The model.
        communicator: Of the ranks.

    Attributes:
        communicator: Of the ranks.
        stop: Requests to stop by signals.
        end: Requests to stop by callbacks, of the training at hand.
        reads_all: Whether metrics are read over all ranks.
    """

    def __init__(self, model: Any, communicator: Communicator) -> None:
        self._model = model
        self.communicator = communicator
        self.stop = RankStopRequest(communicator)
        self.end = SameEnd(communicator)
        self.reads_all = False
        self._factor = tf.Variable(1.0, trainable=False)
        self._states: list[Any] = []
        self._has_begun = False
        # Logs of the last step, and this rank's part of its examples.
        self._last: tuple[Any, float] | None = None

    @contextlib.contextmanager
    def working(self, *, training: bool = False) -> Iterator[None]:
        """Surrounds `fit` or `evaluate`.

        Args:
            training: Whether it is `fit`.
        """
        before, self.reads_all = self.reads_all, True
        self._last = None
        if training:
            self._has_begun = False
        try:
            yield
        finally:
            self.reads_all = before
            if training:
                self.stop = RankStopRequest(self.communicator)

    def training(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wraps a function that makes training steps.

        Args:
            step: Makes them on an iterator of batches.

        Returns:
            The same, for all ranks.
        """
        weigh_batches(self._model.optimizer, self._factor)
        traced = TracedStep(self._model, step)

        def train(batch: Any, structure: Any, rows: int, total: int) -> Any:
            if not self._has_begun:
                self._begin(specs_of(batch, structure))
            share = rows / total
            self._factor.assign(share * self.communicator.size)
            logs = self._keeping_states(lambda: traced(batch, structure), rows)
            # Steps of the user's own are not weighed.
            self._factor.assign(1.0)
            if self._states:
                average_states(self._states, self.communicator, share)
            self._last = logs, share
            return logs

        return self._repeated(train)

    def testing(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wraps a function that makes steps of an evaluation.

        Args:
            step: Makes them on an iterator of batches.

        Returns:
            The same, for all ranks.
        """
        traced = TracedStep(self._model, step)

        def test(batch: Any, structure: Any, rows: int, total: int) -> Any:
            logs = self._keeping_states(lambda: traced(batch, structure), rows)
            self._last = logs, rows / total
            return logs

        return self._repeated(test)

    def finish_logs(self, results: dict[str, Any]) -> None:
        """Has the logs of the last step be those of all ranks.

        Keras takes them for the results where the step is the user's own, and
        gives other logs than those of metrics.

        Args:
            results: Those of metrics, over all ranks.
        """
        last, self._last = self._last, None
        if last is not None and isinstance(last[0], dict):
            logs, share = last
            if set(logs) != set(results):
                logs_of_all(logs, results, share, self.communicator)

    def predicting(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wraps a function that predicts for a list of batches.

        Args:
            step: The function.

        Returns:
            The same, for all ranks.
        """

        def run(batches: Any) -> Any:
            if not isinstance(batches[0], RankBatch):
                return step(batches)
            present = any(bool(each.present) for each in batches)
            if self._agree(0, present) is None:
                raise StopIteration
            return step([each.batch for each in batches])

        return run

    def _repeated(
        self, step: Callable[[Any, Any, int, int], Any]
    ) -> Callable[[Any], Any]:
        """Makes a function that agrees on each of the steps it makes."""

        def run(iterator: Any) -> Any:
            logs = structure = None
            if isinstance(iterator, tf.data.Iterator):
                structure = iterator.element_spec.batch
            for _ in range(self._model.steps_per_execution):
                found = self._next(iterator)
                if found is None:
                    break
                batch, rows, total = found
                logs = step(batch, structure, rows, total)
            if logs is None:
                raise StopIteration
            return logs

        return run

    def _next(self, iterator: Any) -> tuple[Any, int, int] | None:
        """Takes a batch, as all ranks do.

        Where none of them has rows, there is nothing to learn: such batches are
        passed over.

        Args:
            iterator: Of `RankBatch`, or of batches that the user gives.

        Returns:
            The batch, how many rows it has, and how many those of all ranks
            have; None if the data of all have ended.
        """
        for batch in iterator:
            present = True
            if isinstance(batch, RankBatch):
                present, batch = bool(batch.present), batch.batch
            rows = rows_of(batch)
            total = self._agree(rows, present)
            if total is None:
                break
            if total:
                return batch, rows, total
        return None

    def _agree(self, rows: int, present: bool) -> int | None:
        """Tells all ranks of this one's batch.

        Args:
            rows: How many rows it has.
            present: Whether it is of the data.

        Returns:
            How many rows all ranks have; None if the data of all have ended.
        """
        own = [rows, present, self.end.asks, *self.stop.to_send()]
        sums = self.communicator.all_reduce(
            tf.constant([int(number) for number in own], tf.int64),
            label="rows of the batch",
        )
        total, ranks, asks, *signals = sums.numpy().tolist()
        self.stop.agree(signals)
        self.end.agreed = bool(asks)
        return total if ranks else None

    def _begin(self, structure: Any) -> None:
        """Gives all ranks the first weights of rank 0, and finds states."""
        model = self._model
        if not model.built:
            build(model, structure)
        elif not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        broadcast_state(model, self.communicator)
        self._states = batch_states(model)
        self._has_begun = True

    def _keeping_states(self, step: Callable[[], Any], rows: int) -> Any:
        """Makes a step that leaves no trace of a batch without rows.

        Means over nothing are no numbers, in metrics as in layers.
        """
        before, self.reads_all = self.reads_all, False
        model = self._model
        try:
            if rows:
                return step()
            metrics = list(model.metrics_variables)
            variables = [*metrics, *self._states]
            kept = [variable.numpy() for variable in variables]
            logs = step()
            for variable, value in zip(variables, kept, strict=True):
                variable.assign(value)
            if len(model.metrics_variables) != len(metrics):
                # They came into being with the step.
                model.reset_metrics()
            if isinstance(logs, dict):
                results = model.get_metrics_result()
                logs = {name: results.get(name, logs[name]) for name in logs}
            return logs
        finally:
            self.reads_all = before
