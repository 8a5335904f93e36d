"""Batches of a set of files, read by threads in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from ._channel import Channel, ClosedError, run_into
from ._chunk_sizes import ChunkSizes
from ._containers import FAULTS, Container
from ._encode import Array, encode
from ._errors import DataError
from ._load_report import LoadReport
from ._normalize import normalize
from ._plan import Plan
from ._regroup import drop_rows, regroup, shuffle_windows
from ._runs import Run, runs_of
from ._schema import Column, partition_types
from ._threads import start_thread


OnError = Literal["raise", "skip"]

# At once, where rows are read to find the damage only.
_SMALL_ROWS = 4096
# Chunks of a run that wait for those of the files before it.
_WAITING = 1


@dataclass(frozen=True)
class Options:
    """How rows become batches.

    Attributes:
        batch_size: Rows of a batch.
        window: Rows that are shuffled together; 0 for none.
        seed: Seed of the order.
        drop_remainder: Whether to leave out a last, smaller batch.
        reads: Parts of files that are read at the same time.
        prefetch: Batches that are made ahead.
        on_error: What to do about what cannot be read.
    """

    batch_size: int
    window: int = 0
    seed: int = 0
    drop_remainder: bool = False
    reads: int = 2
    prefetch: int = 2
    on_error: OnError = "raise"


class Source:
    """Batches of the rows of some files, for any epoch and from any batch on.

    Args:
        containers: The files.
        columns: What to read of them.
        plan: Which rows, in which order.
        options: How to make batches of them.
        report: Counts what is found.
    """

    def __init__(
        self,
        containers: Sequence[Container],
        columns: Sequence[Column],
        plan: Plan,
        options: Options,
        report: LoadReport,
    ) -> None:
        self.columns = columns
        self.options = options
        self.report = report
        self._containers = containers
        self._plan = plan
        self._partitions = partition_types(containers)
        self._sizes = ChunkSizes(options.batch_size)

    @property
    def batch_count(self) -> int | None:
        """Batches of an epoch; None where only reading tells."""
        rows = self._plan.rows()
        if rows is None or self.options.on_error == "skip":
            return None
        size = self.options.batch_size
        return rows // size if self.options.drop_remainder else -(-rows // size)

    def batches(
        self, epoch: int, first: int = 0
    ) -> Generator[list[Array], None, None]:
        """Streams the arrays of the batches of an epoch.

        Args:
            epoch: The epoch, from 0.
            first: Batches to leave out at the beginning; where it is known how
                many rows there are, they are not read.

        Yields:
            Arrays as of `encode`.

        Raises:
            DataError: At what cannot be read, if it is not to be skipped.
        """
        options = self.options
        skip = first * options.batch_size
        begin = 0
        if self.batch_count is not None:
            # Windows must be whole to be shuffled as they were.
            begin = skip // (options.window or 1) * (options.window or 1)
        with closing(self._chunks(epoch, begin)) as chunks:
            rows: Iterator[pa.RecordBatch] = chunks
            if options.window:
                rows = shuffle_windows(
                    rows,
                    options.window,
                    (options.seed, epoch),
                    begin // options.window,
                )
            rows = drop_rows(rows, skip - begin)
            for batch in regroup(
                rows,
                options.batch_size,
                keep_rest=not options.drop_remainder,
            ):
                yield encode(batch, self.columns)

    def no_rows(self) -> list[Array]:
        """The arrays of a batch without rows."""
        fields = []
        for column in self.columns:
            if column.mask_name:
                fields.append((column.mask_name, pa.bool_()))
            fields.append((column.name, column.kind))
        empty = pa.RecordBatch.from_pylist([], schema=pa.schema(fields))
        return encode(empty, self.columns)

    def _chunks(
        self, epoch: int, drop: int
    ) -> Generator[pa.RecordBatch, None, None]:
        def reading(run: Run) -> Callable[[], Iterator[pa.RecordBatch]]:
            return lambda: self._read(run)

        # What is damaged is skipped by units, so they are read one by one.
        join = self.options.on_error == "raise"
        parts = self._plan.parts(epoch, drop)
        tasks = [
            reading(run) for run in runs_of(parts, self._containers, join=join)
        ]
        for chunk in read_ahead(tasks, self.options.reads):
            self.report.add_rows(chunk.num_rows)
            yield chunk

    def _read(self, run: Run) -> Iterator[pa.RecordBatch]:
        """Reads rows of a file; its damage is an error or is skipped."""
        container = self._containers[run.container]
        names = [
            column.name
            for column in self.columns
            if column.name in container.schema.names
        ]
        constants = {
            name: pa.scalar(value, pa.string()).cast(self._partitions[name])
            for name, value in container.partitions.items()
        }
        end = run.start
        try:
            for raw, row in self._raw(container, run, names):
                good, faults = normalize(raw, self.columns, constants)
                for fault in faults:
                    unit, number = run.place(row + fault.row * run.every)
                    where = container.unit_label(unit)
                    self._fault(f"{where}, row {number}: {fault.reason}", 1)
                end = row + raw.num_rows
                yield good
        except FAULTS as error:
            unit, culprit = _damage(container, run, end, names)
            lost = 0 if run.stop is None else run.stop - end
            where = container.unit_label(unit)
            self._fault(f"{where}{culprit}: cannot be read: {error}", lost)

    def _raw(
        self, container: Container, run: Run, names: Sequence[str]
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Undecoded rows of a run, with the number of each first one."""
        start = 0
        for batch in self._decoded(container, run, names):
            end = start + batch.num_rows
            low = max(run.start, start)
            high = end if run.stop is None else min(run.stop, end)
            if run.every > 1:
                low += (run.offset - low) % run.every
                places = pa.array(range(low - start, high - start, run.every))
                yield batch.take(places), low
            elif low < high:
                yield batch.slice(low - start, high - low), low
            start = end
            if run.stop is not None and start >= run.stop:
                return

    def _decoded(
        self, container: Container, run: Run, names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Rows of the units of a run, in chunks of about the same size."""
        for stretch in self._sizes.stretches(container, run.units, names):
            for chunk in container.read(stretch.units, names, stretch.rows):
                self._sizes.learn(stretch, chunk)
                yield chunk

    def _fault(self, reason: str, rows: int) -> None:
        if self.options.on_error == "raise":
            msg = f'{reason}. To leave it out and count it: on_error="skip".'
            raise DataError(msg)
        self.report.skip_rows(rows, reason)


def read_ahead(
    tasks: Sequence[Callable[[], Iterator[pa.RecordBatch]]], ahead: int
) -> Iterator[pa.RecordBatch]:
    """Runs iterators on threads, some at a time, and yields in their order."""
    waiting = iter(tasks)
    running: deque[Channel[pa.RecordBatch]] = deque()

    def start_next() -> None:
        task = next(waiting, None)
        if task is not None:
            channel: Channel[pa.RecordBatch] = Channel(_WAITING)
            running.append(channel)
            start_thread(lambda: run_into(channel, task))

    try:
        for _ in range(ahead):
            start_next()
        while running:
            try:
                while True:
                    yield running[0].take()
            except ClosedError:
                running.popleft()
                start_next()
    finally:
        for channel in running:
            channel.close()


def _damage(
    container: Container, run: Run, row: int, names: Sequence[str]
) -> tuple[int, str]:
    """The unit that cannot be read, and its column where it is one."""
    first, _ = run.place(row)
    if not container.has_columns:
        return first, ""
    for unit in run.units[run.units.index(first) :]:
        for name in names:
            try:
                for _ in container.read([unit], [name], _SMALL_ROWS):
                    pass
            except FAULTS:
                return unit, f", column {name!r}"
    return first, ""
