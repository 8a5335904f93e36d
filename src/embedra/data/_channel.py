"""A bounded queue between two threads that either can close."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from threading import Condition
from typing import Generic, TypeVar


T = TypeVar("T")


class ClosedError(Exception):
    """The other side has closed the channel."""


class Channel(Generic[T]):
    """Hands things from one thread to another, in order.

    Args:
        capacity: How many may wait.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[T] = deque()
        self._changed = Condition()
        self._ended = False
        self._closed = False
        self._error: BaseException | None = None

    def put(self, value: T) -> None:
        """Hands a thing over, as soon as there is room.

        Raises:
            ClosedError: If the taker wants no more.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or len(self._waiting) < self._capacity
            )
            if self._closed:
                raise ClosedError
            self._waiting.append(value)
            self._changed.notify_all()

    def end(self, error: BaseException | None = None) -> None:
        """Says that nothing more comes, and why if that is an error."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def take(self) -> T:
        """The next thing, as soon as there is one.

        Raises:
            ClosedError: If there is none, and none will come.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting or self._ended or self._closed
            )
            if self._waiting and not self._closed:
                self._changed.notify_all()
                return self._waiting.popleft()
            if self._error is not None:
                raise self._error
            raise ClosedError

    def close(self) -> None:
        """Says that nothing more is wanted."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()


def run_into(channel: Channel[T], task: Callable[[], Iterator[T]]) -> None:
    """Puts what an iterator yields into a channel, its error too.

    Args:
        channel: The channel.
        task: Begins the iterator.
    """
    try:
        # In a frame of its own, so that nothing is held when the end is said:
        # the taker may begin something else then.
        _put_all(channel, task)
    except ClosedError:
        return
    except Exception as error:  # noqa: BLE001 - raised where it is taken.
        channel.end(error)
    else:
        channel.end()


def _put_all(channel: Channel[T], task: Callable[[], Iterator[T]]) -> None:
    for value in task():
        channel.put(value)
