"""Files of records in TF1 graphs: the same, as operations to run.

Reading and writing happen in Python, so the session must be of this process.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from embedra import _ops, table as table_lib

from ._graph_header import (
    from_header,
    header_tensors,
    set_layout,
    to_header,
)
from ._record_writer import RecordWriter, finish_save
from ._state import import_all


_RECORD_DTYPES = (tf.int64, None, tf.float32, tf.int64, tf.int64)

_RECORD_SHAPES: tuple[Any, ...] = (
    (None,),
    (None, None),
    (None, None),
    (None,),
    (None,),
)


def save_tables(
    tables: Sequence[tuple[table_lib.Table, Callable[[], RecordWriter]]],
    chunk_size: int,
) -> tf.Operation:
    """Returns the operation that writes tables to files.

    Args:
        tables: Each table, and what begins its files.
        chunk_size: Records in memory at a time, at most.
    """
    jobs = [_SaveJob(make_writer, table) for table, make_writer in tables]
    written = [_write(job, chunk_size) for job in jobs]

    def finish() -> np.bool_:
        try:
            finish_save([job.writer for job in jobs])
        except BaseException:
            for job in jobs:
                job.writer.discard()
            raise
        return np.bool_(1)

    with tf.control_dependencies(written):
        return _python(finish, []).op


def _write(job: "_SaveJob", chunk_size: int) -> tf.Tensor:
    """Returns what, when it runs, writes a table under temporary names."""
    table = job.table
    begun = _python(job.begin, [])

    def write(cursor: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        *columns, following = _ops.table_export(
            table.resource_handle,
            cursor,
            tf.constant(chunk_size, tf.int64),
            dtype=table.dtype,
            dim=table.dim,
        )
        more = _python(job.write, columns)
        with tf.control_dependencies([more]):
            return tf.identity(following), more

    with tf.control_dependencies([begun]):
        start = (tf.constant(0, tf.int64), tf.constant(value=True))
        _, more = tf.while_loop(
            lambda _, more: more, write, start, parallel_iterations=1
        )
    with tf.control_dependencies([more]):
        header = header_tensors(table)
    return _python(job.describe, header)


def load_group(
    group: table_lib.TableGroup,
    source: Any,
    keep: Callable[[tf.Tensor], tf.Tensor] | None,
) -> tf.Operation:
    """Returns the operation that replaces tables by what is in files.

    All files are read once, and checked, before any table is changed.

    Args:
        group: The tables.
        source: Reads the files, a `FileSource`.
        keep: Given keys, which of them to load; all by default.
    """
    first = group.first
    job = _LoadJob(source, first)
    current = header_tensors(first)
    header = tf.numpy_function(
        job.begin, current, [tensor.dtype for tensor in current]
    )
    with tf.control_dependencies(header):
        header = [tf.identity(tensor) for tensor in header]
        laid_out = [set_layout(table, header) for table in group.tables]
    dtypes = [dtype or tf.as_dtype(first.dtype) for dtype in _RECORD_DTYPES]

    def add(_: tf.Tensor) -> tf.Tensor:
        *columns, more = tf.numpy_function(job.next, [], [*dtypes, tf.bool])
        columns = [
            tf.ensure_shape(column, shape)
            for column, shape in zip(columns, _RECORD_SHAPES, strict=True)
        ]
        if keep is not None:
            which = tf.where(keep(columns[0]))[:, 0]
            columns = [tf.gather(column, which) for column in columns]
        with tf.control_dependencies([import_all(group, columns)]):
            return tf.identity(tf.ensure_shape(more, ()))

    with tf.control_dependencies(laid_out):
        more = tf.while_loop(
            lambda more: more,
            add,
            (tf.constant(value=True),),
            parallel_iterations=1,
        )
    return tf.group(more)


def _python(function: Callable[..., np.bool_], arguments: Any) -> tf.Tensor:
    """Calls a function that gives a bool when the graph runs."""
    result = tf.numpy_function(function, arguments, tf.bool)
    return tf.ensure_shape(result, ())


class _SaveJob:
    """What is under way while a session saves.

    Args:
        make_writer: Begins the files.
        table: The table.
    """

    def __init__(
        self, make_writer: Callable[[], RecordWriter], table: table_lib.Table
    ) -> None:
        self.table = table
        self._make_writer = make_writer
        self._writer: RecordWriter | None = None

    @property
    def writer(self) -> RecordWriter:
        if self._writer is None:
            msg = f"No save of table {self.table.name!r} has begun."
            raise RuntimeError(msg)
        return self._writer

    def begin(self) -> np.bool_:
        self._writer = self._make_writer()
        return np.bool_(1)

    def write(self, *columns: Any) -> np.bool_:
        records = table_lib.Records(*columns)
        if len(records.keys):
            self._checked(lambda writer: writer.write(records))
        return np.bool_(len(records.keys) > 0)

    def describe(self, *header: Any) -> np.bool_:
        described = to_header(self.table, header)
        self._checked(lambda writer: writer.describe(described))
        return np.bool_(1)

    def _checked(self, step: Callable[[RecordWriter], None]) -> None:
        try:
            step(self.writer)
        except BaseException:
            self.writer.discard()
            raise


class _LoadJob:
    """What is under way while a session loads.

    Args:
        source: Reads the files.
        table: Where they go.
    """

    def __init__(self, source: Any, table: table_lib.Table) -> None:
        self._source = source
        self._table = table
        self._chunks: Iterator[table_lib.Records] = iter(())
        self._header: table_lib.TableHeader

    def begin(self, *current: Any) -> tuple[Any, ...]:
        header = self._source.header(to_header(self._table, current))
        table_lib.check_fits(self._table, header, "files")
        for _ in self._source.chunks(header):
            pass
        self._chunks = self._source.chunks(header)
        self._header = header
        return from_header(header)

    def next(self) -> tuple[Any, ...]:
        records = next(self._chunks, None)
        if records is not None:
            return (*records, np.bool_(1))
        dtype = tf.as_dtype(self._header.dtype).as_numpy_dtype
        width = sum(slot.width for slot in self._header.slots)
        return (
            np.zeros(0, np.int64),
            np.zeros((0, self._header.dim), dtype),
            np.zeros((0, width), np.float32),
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.bool_(0),
        )
