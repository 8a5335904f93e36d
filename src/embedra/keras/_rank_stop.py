"""Requests to stop, which all ranks follow at the same step."""

import signal
from typing import Any

import keras

from embedra.checkpoint import StopRequest
from embedra.distribute import Communicator


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class RankStopRequest(StopRequest):
    """Ctrl-C or SIGTERM on any rank: a signal counts when all know of it.

    Args:
        communicator: Of the ranks.

    Attributes:
        noted: The signal that this rank got, or None.
    """

    def __init__(self, communicator: Communicator) -> None:
        self._communicator = communicator
        self._agreed: int | None = None
        self.noted: int | None = None
        super().__init__()

    # What is noted here is set as in one process, and read when agreed on.
    @property
    def signal_number(self) -> int | None:
        """The signal that all ranks know of, or None."""
        return self._agreed

    @signal_number.setter
    def signal_number(self, number: int | None) -> None:
        self.noted = number

    def to_send(self) -> list[int]:
        """Returns, for each signal, 1 if this rank got it."""
        return [int(self.noted == number) for number in _SIGNALS]

    def agree(self, counts: list[int]) -> None:
        """Takes note of what all ranks got.

        Args:
            counts: The sums of what they sent.
        """
        for number, count in zip(_SIGNALS, counts, strict=True):
            if count:
                self._agreed = int(number)

    def agree_now(self) -> None:
        """Agrees with the other ranks, which do so as well."""
        sums = self._communicator.all_reduce(
            self.to_send(), label="request to stop"
        )
        self.agree(sums.numpy().tolist())


class SameEnd(keras.callbacks.Callback):
    """Has a training that a callback ends on one rank end on all.

    It comes after other callbacks. What they ask for within an epoch is done
    after the next step, when all know of it.

    Args:
        communicator: Of the ranks.

    Attributes:
        communicator: Of the ranks.
        asks: Whether a callback of this rank asks to end the training.
        agreed: Whether all ranks know that one does.
    """

    def __init__(self, communicator: Communicator) -> None:
        super().__init__()
        self.communicator = communicator
        self.asks = False
        self.agreed = False

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Puts off what this rank alone knows of."""
        del batch, logs
        self.asks = self.asks or bool(self.model.stop_training)
        self.model.stop_training = self.agreed

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Agrees with the other ranks."""
        del epoch, logs
        asks = self.asks or bool(self.model.stop_training)
        self.model.stop_training = bool(
            self.communicator.all_reduce(
                int(asks), "max", label="end of training"
            )
        )
