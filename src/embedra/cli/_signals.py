"""Signals that a command hands on to the processes that it started."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


# Those after which ranks are to end.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FORWARDED = (*ENDING, signal.SIGUSR1, signal.SIGUSR2)


class Signals:
    """Signals that came, in order.

    Attributes:
        waiting: Numbers of those that were not handed on yet.
        is_ending: Whether one of them was to end the ranks.
    """

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.is_ending = False

    def receive(self, number: int, frame: Any) -> None:
        """Keeps a signal; a handler, as Python calls it.

        Args:
            number: Of the signal.
            frame: Unused.
        """
        del frame
        self.waiting.append(number)
        self.is_ending = self.is_ending or number in ENDING


@contextmanager
def received_signals() -> Iterator[Signals]:
    """Collects signals in place of what they would do.

    Yields:
        Those that came.
    """
    signals = Signals()
    before = {
        number: signal.signal(number, signals.receive) for number in _FORWARDED
    }
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
