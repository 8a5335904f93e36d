"""Ctrl-C and SIGTERM: noted when they come, followed between two steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TrainingStopped(Exception):  # noqa: N818 - a request, not an error
    """The training was asked to stop.

    Attributes:
        signal_number: The signal that asked.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


class StopRequest:
    """Whether Ctrl-C was pressed or SIGTERM came.

    Attributes:
        signal_number: The signal, or `None` while there was none.
    """

    def __init__(self) -> None:
        self.signal_number: int | None = None

    def check(self) -> None:
        """Ends the work at hand if asked to.

        Raises:
            TrainingStopped: If a signal came.
        """
        requested = self.signal_number
        if requested is not None:
            raise TrainingStopped(requested)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Takes note of the first signal; the second acts as ever.

        Only the main thread can listen; in another one nothing is changed.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.getsignal(number)
            for number in (signal.SIGINT, signal.SIGTERM)
        }

        def take_note(number: int, frame: FrameType | None) -> None:
            del frame
            self.signal_number = number
            signal.signal(number, before[signal.Signals(number)])

        for number in before:
            signal.signal(number, take_note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
