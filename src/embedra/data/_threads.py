"""Threads that end before the interpreter does.

A thread that waits for the interpreter while that shuts down never goes on,
and TensorFlow would wait for it. So all that is open is closed at exit.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet


class Closable(Protocol):
    """Something that lets its threads end."""

    def close(self) -> None:
        """Lets them end."""


_threads: WeakSet[threading.Thread] = WeakSet()
_open: WeakSet[Closable] = WeakSet()
_PATIENCE = 5.0  # Seconds to wait for a thread, which may be in a slow read.


def start_thread(task: Callable[[], None]) -> None:
    """Runs a task on a thread of its own."""
    thread = threading.Thread(target=task, name="embedra-data", daemon=True)
    _threads.add(thread)
    thread.start()


def close_at_exit(what: Closable) -> None:
    """Has something closed when the interpreter ends, if it still is there."""
    _open.add(what)


@atexit.register
def _end() -> None:
    for what in list(_open):
        what.close()
    for thread in list(_threads):
        thread.join(_PATIENCE)
