"""The steps of `fit`, `evaluate` and `predict` on several ranks."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator, RankBatch, is_none_spec
from embedra.optimizers import weigh_batches

from ._first_step import build
from ._rank_data import rows_of
from ._rank_state import average_states, batch_states, broadcast_state
from ._rank_stop import RankStopRequest, SameEnd


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

    @contextlib.contextmanager
    def working(self, *, training: bool = False) -> Iterator[None]:
        """Surrounds `fit` or `evaluate`.

        Args:
            training: Whether it is `fit`.
        """
        before, self.reads_all = self.reads_all, True
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
        traced = _Traced(self._model, step)

        def train(batch: Any, structure: Any, rows: int, total: int) -> Any:
            if not self._has_begun:
                self._begin(_specs(batch, structure))
            share = rows / total
            self._factor.assign(share * self.communicator.size)
            logs = self._keeping_states(lambda: traced(batch, structure), rows)
            # Steps of the user's own are not weighed.
            self._factor.assign(1.0)
            if self._states:
                average_states(self._states, self.communicator, share)
            return logs

        return self._repeated(train)

    def testing(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wraps a function that makes steps of an evaluation.

        Args:
            step: Makes them on an iterator of batches.

        Returns:
            The same, for all ranks.
        """
        traced = _Traced(self._model, step)

        def test(batch: Any, structure: Any, rows: int, total: int) -> Any:
            del total
            return self._keeping_states(lambda: traced(batch, structure), rows)

        return self._repeated(test)

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


class _Traced:
    """A function of batches that is traced once for any number of rows.

    Args:
        model: The model.
        step: Makes steps on an iterator of batches, as Keras has it.
    """

    def __init__(self, model: Any, step: Callable[[Any], Any]) -> None:
        self._model = model
        self._step = step
        self._structure: Any = None
        self._function: Any = None

    def __call__(self, batch: Any, structure: Any) -> Any:
        """Makes a step.

        Args:
            batch: A batch.
            structure: Specs of all batches; None if they are not known.
        """
        if self._model.run_eagerly or structure is None:
            return self._step([batch])
        if self._function is None or structure != self._structure:
            self._structure = structure
            self._function = self._traced(structure)
        given = [x for x in tf.nest.flatten(batch) if x is not None]
        return self._function(*given)

    def _traced(self, structure: Any) -> Any:
        specs = tf.nest.flatten(structure)

        @tf.autograph.experimental.do_not_convert
        def step(*given: Any) -> Any:
            rest = iter(given)
            leaves = [None if is_none_spec(s) else next(rest) for s in specs]
            return self._step([tf.nest.pack_sequence_as(structure, leaves)])

        signature = [spec for spec in specs if not is_none_spec(spec)]
        return tf.function(step, input_signature=signature)


def _specs(batch: Any, structure: Any) -> Any:
    """Returns specs of a batch, with None where there is nothing.

    Args:
        batch: The batch.
        structure: Specs of all batches, if they are known.
    """
    if structure is not None:
        return tf.nest.map_structure(
            lambda spec: None if is_none_spec(spec) else spec, structure
        )
    return tf.nest.map_structure(
        lambda leaf: (
            leaf
            if leaf is None
            else tf.type_spec_from_value(
                leaf
                if isinstance(leaf, tf.RaggedTensor | tf.SparseTensor)
                else tf.convert_to_tensor(leaf)
            )
        ),
        batch,
    )
