"""Callbacks that have those of the user see the same on all ranks."""

from typing import Any

import keras

from embedra.distribute import Communicator

from ._fit_callback import FitCallback
from ._keras_data import Adapted
from ._rank_metrics import same_logs
from ._rank_stop import SameEnd


class SameLogs(keras.callbacks.Callback):
    """Has the logs of an epoch be the same on all ranks; it comes first.

    Args:
        communicator: Of the ranks.
    """

    def __init__(self, communicator: Communicator) -> None:
        super().__init__()
        self._communicator = communicator

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Changes the logs."""
        del epoch
        if logs:
            same_logs(logs, self._communicator)


class Epochs(keras.callbacks.Callback):
    """Tells data when their epochs begin and end.

    Args:
        training: Data of epochs; None for none.
        other: Data of evaluations or predictions.
    """

    def __init__(
        self, training: Adapted | None = None, other: Adapted | None = None
    ) -> None:
        super().__init__()
        self._training = training
        self._other = other

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Tells the data of the training."""
        del epoch, logs
        if self._training is not None:
            self._training.begin_epoch()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Tells the data of the training."""
        del epoch, logs
        if self._training is not None:
            self._training.end_epoch()

    def on_test_begin(self, logs: Any = None) -> None:
        """Tells the data of the evaluation."""
        del logs
        if self._other is not None:
            self._other.begin_epoch()

    def on_test_end(self, logs: Any = None) -> None:
        """Tells the data of the evaluation."""
        del logs
        if self._other is not None:
            self._other.end_epoch()

    def on_predict_begin(self, logs: Any = None) -> None:
        """Tells the data of the prediction."""
        self.on_test_begin(logs)

    def on_predict_end(self, logs: Any = None) -> None:
        """Tells the data of the prediction."""
        self.on_test_end(logs)


def with_first(callbacks: Any, first: keras.callbacks.Callback) -> Any:
    """Adds a callback that comes before all others.

    Args:
        callbacks: What `fit` was given.
        first: The one to add.

    Returns:
        The callbacks. In a list of Keras's own class, it comes last.
    """
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks.append(first)
        return callbacks
    return [first, *_listed(callbacks)]


def around(callbacks: Any, end: SameEnd) -> Any:
    """Adds callbacks that have all ranks' callbacks decide the same.

    Args:
        callbacks: What `fit` was given.
        end: The one that has all ranks end at once.

    Returns:
        The callbacks.
    """
    logs = SameLogs(end.communicator)
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks.append(logs)
        callbacks.append(end)
        return callbacks
    listed = _listed(callbacks)
    # What saves must know whether the training ends.
    saving = [each for each in listed if isinstance(each, FitCallback)]
    others = [each for each in listed if each not in saving]
    return [logs, *others, end, *saving]


def _listed(callbacks: Any) -> list[Any]:
    if callbacks is None:
        return []
    several = isinstance(callbacks, list | tuple)
    return list(callbacks) if several else [callbacks]
