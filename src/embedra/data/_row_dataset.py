"""A `tf.data.Dataset` of the batches of a source."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import tensorflow as tf

from ._encode import Array, decode, wire_types
from ._load_report import LoadReport
from ._source import Source
from ._streams import Streams


_FOREVER = np.iinfo(np.int64).max


class _Lease:
    """Held by all datasets that use the same streams.

    TensorFlow may keep the functions of a dataset, and with them its streams,
    for longer than the dataset. What the streams hold is given back when the
    last of the datasets goes.
    """

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        weakref.finalize(self, streams.drop_all).atexit = False


class RowDataset(tf.data.Dataset):
    """Batches of rows as a dict from name to tensor.

    An iterator over it can be saved with `tf.train.Checkpoint` and goes on at
    the next batch when restored, in another process too. `skip` and `repeat`
    of the dataset itself do not read what they pass over, if it is known how
    many rows there are.

    Each iteration is an epoch with an order of its own, if rows are shuffled.
    """

    def __init__(
        self,
        source: Source,
        *,
        to_dense: bool = False,
        lease: _Lease | None = None,
        epochs: int | None = 1,
        first: int = 0,
    ) -> None:
        self._source = source
        self._to_dense = to_dense
        self._lease = lease or _Lease(Streams(source))
        self._epochs = epochs
        self._first = first
        self._batches = self._make()
        super().__init__(tf.data.experimental.to_variant(self._batches))

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._batches]

    @property
    def element_spec(self) -> dict[str, tf.TypeSpec]:
        """Types and shapes of all tensors, by name."""
        spec: dict[str, tf.TypeSpec] = self._batches.element_spec
        return spec

    @property
    def report(self) -> LoadReport:
        """What was read and left out so far."""
        return self._source.report

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration begins with, from 0."""
        return self._lease.streams.next_epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._lease.streams.next_epoch = epoch

    def skip(self, count: Any, name: str | None = None) -> tf.data.Dataset:
        """Leaves out the first batches; see `tf.data.Dataset.skip`."""
        known = self._source.batch_count is not None
        if not known or not isinstance(count, int) or count < 0:
            return super().skip(count, name=name)
        return self._like(self._epochs, self._first + count)

    def repeat(
        self, count: int | None = None, name: str | None = None
    ) -> tf.data.Dataset:
        """Goes on with further epochs; see `tf.data.Dataset.repeat`."""
        plain = count is None or isinstance(count, int)
        if self._epochs != 1 or self._first or not plain:
            return super().repeat(count, name=name)
        return self._like(None if count is None or count < 0 else count, 0)

    def _like(self, epochs: int | None, first: int) -> RowDataset:
        return RowDataset(
            self._source,
            to_dense=self._to_dense,
            lease=self._lease,
            epochs=epochs,
            first=first,
        )

    def _make(self) -> tf.data.Dataset:
        batches = self._source.batch_count
        data = _begin(self._lease.streams).flat_map(self._iteration)
        left = tf.data.UNKNOWN_CARDINALITY
        if batches is not None:
            left = tf.data.INFINITE_CARDINALITY
            if self._epochs is not None or not batches:
                left = max(batches * (self._epochs or 0) - self._first, 0)
            data = data.apply(tf.data.experimental.assert_cardinality(left))
        kept = tf.data.Options()
        # The place of an iterator is in the dataset, none of it in Python.
        kept.experimental_external_state_policy = (
            tf.data.experimental.ExternalStatePolicy.IGNORE
        )
        return data.with_options(kept)

    def _iteration(self, token: tf.Tensor, epoch: tf.Tensor) -> tf.data.Dataset:
        """Batches of one iterator, made ahead."""
        prefetch = self._source.options.prefetch
        data = self._batches_of_epochs(token, epoch).prefetch(prefetch)
        if self._epochs is None:
            return data
        # Where an iterator is restored whose batches all had been made, this
        # is how the next one comes to know of the epoch.
        end = tf.data.Dataset.from_tensors(epoch + self._epochs)
        return data.concatenate(end.flat_map(lambda e: data.take(self._end(e))))

    def _end(self, epoch: tf.Tensor) -> tf.Tensor:
        """Says that an epoch is the next one; 0 batches follow."""
        streams = self._lease.streams

        @tf.autograph.experimental.do_not_convert
        def end(epoch: Any) -> Array:
            streams.next_epoch = max(streams.next_epoch, int(epoch))
            return np.array(0, np.int64)

        return tf.reshape(tf.numpy_function(end, [epoch], tf.int64), [])

    def _batches_of_epochs(
        self, token: tf.Tensor, epoch: tf.Tensor
    ) -> tf.data.Dataset:
        batches = self._source.batch_count
        if batches is not None:
            # One range over all epochs: each dataset within another takes its
            # time when an iterator begins. Without rows, one that goes on for
            # ever would hang.
            end = _FOREVER if self._epochs is None else batches * self._epochs
            end = end if batches else 0
            places = tf.data.Dataset.range(min(self._first, end), end)
            size = max(batches, 1)
            return places.map(
                lambda place: self._read(
                    token, epoch + place // size, place % size
                )[1]
            )
        epochs = _FOREVER if self._epochs is None else self._epochs
        rounds = tf.data.Dataset.range(epochs)
        # An epoch without rows would be followed by others, for ever.
        rounds = rounds.take_while(
            lambda n: tf.logical_or(n == 0, self._has_rows())
        )
        return rounds.flat_map(lambda n: self._read_epoch(token, epoch + n))

    def _has_rows(self) -> tf.Tensor:
        streams = self._lease.streams

        @tf.autograph.experimental.do_not_convert
        def has_rows() -> Array:
            return np.array(not streams.barren)

        return tf.reshape(tf.numpy_function(has_rows, [], tf.bool), [])

    def _read_epoch(
        self, token: tf.Tensor, epoch: tf.Tensor
    ) -> tf.data.Dataset:
        """Batches of an epoch of which only reading tells the end."""
        data = tf.data.Dataset.range(_FOREVER)
        data = data.map(lambda index: self._read(token, epoch, index))
        data = data.take_while(lambda more, _: more)
        return data.map(lambda _, batch: batch)

    def _read(
        self, token: tf.Tensor, epoch: tf.Tensor, index: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """Whether there is a batch at a place, and that batch."""
        streams, source = self._lease.streams, self._source

        @tf.autograph.experimental.do_not_convert
        def take(token: Any, epoch: Any, index: Any) -> list[Array]:
            batch = streams.take(int(token), int(epoch), int(index))
            more = np.array(batch is not None)
            return [more, *(source.no_rows() if batch is None else batch)]

        types = [tf.bool, *wire_types(source.columns)]
        more, *arrays = tf.numpy_function(take, [token, epoch, index], types)
        options = source.options
        size = options.batch_size if options.drop_remainder else None
        batch = decode(
            arrays,
            source.columns,
            batch_size=size,
            to_dense=self._to_dense,
        )
        return tf.reshape(more, []), batch


def _begin(streams: Streams) -> tf.data.Dataset:
    """One element: the token and first epoch of an iterator."""

    @tf.autograph.experimental.do_not_convert
    def begin() -> list[Array]:
        return [np.array(value, np.int64) for value in streams.begin()]

    def call(_: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        token, epoch = tf.numpy_function(begin, [], [tf.int64, tf.int64])
        return tf.reshape(token, []), tf.reshape(epoch, [])

    return tf.data.Dataset.from_tensors(0).map(call)
