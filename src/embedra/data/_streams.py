"""The running streams of a source, one for each iterator over its dataset."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from threading import RLock
from typing import NamedTuple

from ._channel import Channel, ClosedError, run_into
from ._encode import Array
from ._source import Source
from ._threads import close_at_exit, start_thread


# Iterators left behind that are kept open, in case they are wanted again.
_MOST_IDLE = 4
# Places of streams that were closed, to know of those wanted again.
_REMEMBERED = 256
_tokens = itertools.count(1)


class _Place(NamedTuple):
    """The batch that an iterator wants."""

    token: int
    epoch: int
    batch: int

    def following(self) -> _Place:
        return self._replace(batch=self.batch + 1)


class _Stream:
    """Batches of an epoch, made ahead on a thread."""

    def __init__(self, source: Source, place: _Place) -> None:
        self.place = place
        self.dropped = False
        self._channel: Channel[list[Array]] = Channel(
            max(source.options.prefetch, 1)
        )
        channel = self._channel

        def run() -> Iterator[list[Array]]:
            with closing(source.batches(place.epoch, place.batch)) as batches:
                yield from batches

        start_thread(lambda: run_into(channel, run))

    def take(self) -> list[Array] | None:
        """The next batch; None at the end."""
        try:
            batch = self._channel.take()
        except ClosedError:
            return None
        self.place = self.place.following()
        return batch

    def drop(self) -> None:
        self.dropped = True
        self._channel.close()


class Streams:
    """Serves batches by their place, best one after another.

    An iterator of TensorFlow is known by a token; those restored from one
    checkpoint have the same. A place at which no stream stands, as after an
    iterator was restored, begins a new one there. Whoever takes a batch has
    its stream alone meanwhile.

    Streams of iterators that were left behind are closed when there are too
    many. Where one is wanted again after all, more iterators are in use at the
    same time than are kept, and from then on one more is.

    Args:
        source: Where batches come from.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        # Entered again where datasets are collected in between.
        self._lock = RLock()
        # Those that wait to be taken from, the one left longest first.
        self._idle: list[_Stream] = []
        self._busy: set[_Stream] = set()
        self._most_idle = _MOST_IDLE
        self._left: deque[_Place] = deque(maxlen=_REMEMBERED)
        self._closed = False
        self.next_epoch = 0
        # Whether an epoch came to its end without any row.
        self.barren = False
        close_at_exit(self)

    def begin(self) -> tuple[int, int]:
        """A token for a new iterator, and the epoch it begins with."""
        return next(_tokens), self.next_epoch

    def take(self, token: int, epoch: int, index: int) -> list[Array] | None:
        """The batch at a place; None behind the last one.

        Raises:
            DataError: If the rows cannot be read.
            ClosedError: If the interpreter is ending.
        """
        batches = self._source.batch_count
        while True:
            stream = self._start(_Place(token, epoch, index))
            more = False
            try:
                batch = stream.take()
                dropped = stream.dropped
                more = batch is not None and index + 1 != batches
            finally:
                self._stop(stream, keep=more)
            if batch is None and dropped:
                continue  # By another thread, in between.
            if batch is None and not index:
                self.barren = True
            return batch

    def drop_all(self) -> None:
        """Drops all streams; one that is wanted again begins anew."""
        with self._lock:
            for stream in (*self._idle, *self._busy):
                stream.drop()
            self._idle.clear()

    def close(self) -> None:
        """Drops all streams; there will be no other."""
        self._closed = True
        self.drop_all()

    def _start(self, place: _Place) -> _Stream:
        with self._lock:
            if self._closed:
                raise ClosedError
            for stream in self._idle:
                if stream.place == place:
                    self._idle.remove(stream)
                    break
            else:
                if place in self._left:
                    self._left.remove(place)
                    self._most_idle += 1
                stream = _Stream(self._source, place)
                self.next_epoch = max(self.next_epoch, place.epoch + 1)
            self._busy.add(stream)
            return stream

    def _stop(self, stream: _Stream, *, keep: bool) -> None:
        with self._lock:
            self._busy.discard(stream)
            if keep and not stream.dropped:
                self._idle.append(stream)
            else:
                stream.drop()
            while len(self._idle) > self._most_idle:
                left = self._idle.pop(0)
                left.drop()
                self._left.append(left.place)
