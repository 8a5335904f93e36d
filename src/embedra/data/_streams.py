"""The running streams of a source, one for each iterator over its dataset."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing
from threading import RLock

from ._channel import Channel, ClosedError
from ._encode import Array
from ._source import Source, run_into
from ._threads import close_at_exit, start_thread


# Iterators at the same time that are not slowed by each other.
_MOST_OPEN = 4
_tokens = itertools.count(1)


class _Stream:
    """Batches of an epoch, made ahead on a thread."""

    def __init__(self, source: Source, epoch: int, index: int) -> None:
        self.place = (epoch, index)
        self.dropped = False
        self._channel: Channel[list[Array]] = Channel(
            max(source.options.prefetch, 1)
        )
        channel = self._channel

        def run() -> Iterator[list[Array]]:
            with closing(source.batches(epoch, index)) as batches:
                yield from batches

        start_thread(lambda: run_into(channel, run))

    def take(self) -> list[Array] | None:
        """The next batch; None at the end."""
        epoch, index = self.place
        try:
            batch = self._channel.take()
        except ClosedError:
            return None
        self.place = epoch, index + 1
        return batch

    def drop(self) -> None:
        self.dropped = True
        self._channel.close()


class Streams:
    """Serves batches by their place, best one after another.

    An iterator of TensorFlow is known by a token. A place that does not follow
    on the one before, as after an iterator was restored from a checkpoint,
    begins a new stream there. Streams of iterators that were left behind are
    dropped when there are too many; one that is wanted again begins anew, at
    the right place.

    Args:
        source: Where batches come from.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        # Entered again where datasets are collected in between.
        self._lock = RLock()
        self._streams: OrderedDict[int, _Stream] = OrderedDict()
        self._closed = False
        self.next_epoch = 0
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
        while True:
            stream = self._at(token, epoch, index)
            batch = stream.take()
            if batch is None and stream.dropped:
                continue  # By another iterator, in between.
            if batch is None or index + 1 == self._source.batch_count:
                self._drop(token)
            return batch

    def drop_all(self) -> None:
        """Drops all streams; one that is wanted again begins anew."""
        with self._lock:
            while self._streams:
                self._streams.popitem()[1].drop()

    def close(self) -> None:
        """Drops all streams; there will be no other."""
        self._closed = True
        self.drop_all()

    def _at(self, token: int, epoch: int, index: int) -> _Stream:
        with self._lock:
            if self._closed:
                raise ClosedError
            stream = self._streams.pop(token, None)
            if stream is not None and stream.place != (epoch, index):
                stream.drop()
                stream = None
            if stream is None:
                stream = _Stream(self._source, epoch, index)
                self.next_epoch = max(self.next_epoch, epoch + 1)
            self._streams[token] = stream
            while len(self._streams) > _MOST_OPEN:
                self._streams.popitem(last=False)[1].drop()
            return stream

    def _drop(self, token: int) -> None:
        with self._lock:
            stream = self._streams.pop(token, None)
        if stream is not None:
            stream.drop()
