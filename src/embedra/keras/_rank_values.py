"""RankValues: what each rank of a job has of its own, in checkpoints."""

import io
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from embedra.distribute import Communicator, gather_bytes


class RankValues:
    """Keeps metrics and random states of all ranks in a checkpoint.

    Metrics count what each rank has seen, and random states are not the same.
    As many ranks as wrote a checkpoint get theirs back. Of another number, each
    takes over the metrics of some of those, or begins with none.

    Args:
        model: A model; built.
        communicator: Of the ranks; None in one process.

    Attributes:
        saved: For each rank its values, to be put into the checkpoint.
    """

    def __init__(
        self, model: keras.Model, communicator: Communicator | None
    ) -> None:
        self._model = model
        self._communicator = communicator
        self.saved = tf.Variable([], shape=(None,), dtype=tf.string)

    def gather(self) -> None:
        """Collects the values of all ranks, which must all call this."""
        if self._communicator is None:
            return
        values = [*self._model.metrics_variables, *self._random_states()]
        buffer = io.BytesIO()
        np.savez(buffer, *(np.asarray(value) for value in values))
        self.saved.assign(
            gather_bytes(
                self._communicator, buffer.getvalue(), label="metrics to save"
            )
        )

    def restore(self, saved: list[bytes]) -> None:
        """Takes over what is for this rank.

        Args:
            saved: The values of each rank that wrote the checkpoint; none if
                that was one process, whose values this rank has.
        """
        rank, size = 0, 1
        if self._communicator is not None:
            rank, size = self._communicator.rank, self._communicator.size
        if not saved:
            if rank != 0:
                # They are counted on rank 0.
                self._model.reset_metrics()
            return
        arrays = [_read(one) for one in saved]
        states = self._random_states()
        of_states = arrays[rank % len(saved)][-len(states) :]
        if states and len(of_states) == len(states):
            for state, value in zip(states, of_states, strict=True):
                state.assign(value)
        self._restore_metrics(arrays[rank::size], exact=size == len(saved))

    def _restore_metrics(self, arrays: list[Any], *, exact: bool) -> None:
        """Gives metrics the sum of what some ranks had."""
        self._model.reset_metrics()
        number = len(self._model.metrics_variables)
        known = number + len(self._random_states())
        if not arrays or any(len(one) != known for one in arrays):
            return
        values = {
            id(variable): [one[place] for one in arrays]
            for place, variable in enumerate(self._model.metrics_variables)
        }
        for metric in _single_metrics(self._model):
            # What grows with the data cannot be added up.
            if exact or all(None not in v.shape for v in metric.variables):
                for variable in metric.variables:
                    _assign_sum(variable, values[id(variable)])

    def _random_states(self) -> list[Any]:
        return [
            variable
            for variable in self._model.non_trainable_variables
            if tf.as_dtype(variable.dtype).is_unsigned
        ]


def _read(text: bytes) -> list[Any]:
    with np.load(io.BytesIO(text)) as found:
        return [found[f"arr_{place}"] for place in range(len(found.files))]


def _single_metrics(model: Any) -> Iterator[Any]:
    for metric in model.metrics:
        # Those given to `compile` come as one.
        yield from getattr(metric, "metrics", [metric])


def _assign_sum(variable: Any, values: list[Any]) -> None:
    same = {value.shape for value in values} == {tuple(variable.shape)}
    if len(values) == 1:
        same = tf.TensorShape(variable.shape).is_compatible_with(
            values[0].shape
        )
    if same:
        variable.assign(values[0] if len(values) == 1 else sum(values))
