"""TFRecord files of `tf.train.Example`s as columns, parsed by TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import tensorflow as tf

from ._containers import Container
from ._field import Field
from ._files import SourceFile
from ._load_report import LoadReport


# Examples may be large, and say so only when they are read.
_RUN_ROWS = 4096
_PLAIN = {
    tf.int64: pa.int64(),
    tf.float32: pa.float32(),
    tf.string: pa.binary(),
}

# What is no example is part of TensorFlow's message, and may be no text.
_UNFIT = (tf.errors.InvalidArgumentError, UnicodeDecodeError)


class TFRecordContainer(Container):
    """A TFRecord file of examples.

    Args:
        file: The file; TensorFlow reads it, with its own file systems.
        fields: What to read of each example.
        compression: `""`, `"GZIP"` or `"ZLIB"`.
        report: Counts examples that do not fit, which are left out; None
            makes them an error.
    """

    unit_word = "part"
    has_columns = False

    def __init__(
        self,
        file: SourceFile,
        fields: Sequence[Field],
        compression: str,
        report: LoadReport | None = None,
    ) -> None:
        self._path = file.label if "://" in file.label else file.path
        self._compression = compression
        self._report = report
        self._features = {field.name: stored_type(field) for field in fields}
        self._scalars = {field.name for field in fields if _is_scalar(field)}
        columns = {
            field.name: _kind(field, self._features[field.name])
            for field in fields
        }
        super().__init__(
            file.label, pa.schema(columns), [None], file.partitions
        )

    def read(
        self, units: Sequence[int], names: Sequence[str], chunk_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Streams some features of the examples; see `Container`."""
        del units  # There is one.
        start = 0
        parse = self._parser(names)
        with closing(parse.session):
            for records in self._runs(min(chunk_rows, _RUN_ROWS)):
                yield self._batch(parse, records, start)
                start += len(records)

    def _runs(self, rows: int) -> Iterator[npt.NDArray[Any]]:
        """Records in runs.

        Raises:
            OSError: At what is damaged; what is before it has been yielded.
        """
        start = 0
        try:
            for run in self._records(0, rows):
                yield run
                start += len(run)
        except tf.errors.OpError:
            # One by one, up to the damage.
            try:
                for record in self._records(start, 1):
                    yield record
                    start += 1
            except tf.errors.OpError as error:
                msg = f"after record {start}: {_reason(error)}"
                raise OSError(msg) from error

    def _records(self, start: int, rows: int) -> Iterator[npt.NDArray[Any]]:
        # Graphs of its own: threads of TF1 programs do not run eagerly.
        with tf.Graph().as_default() as graph:
            data = tf.data.TFRecordDataset(self._path, self._compression)
            data = data.skip(start).batch(rows)
            records = tf.compat.v1.data.make_one_shot_iterator(data).get_next()
        with closing(tf.compat.v1.Session(graph=graph)) as session:
            while True:
                try:
                    yield session.run(records)
                except tf.errors.OutOfRangeError:
                    return

    def _parser(self, names: Sequence[str]) -> _Parse:
        with tf.Graph().as_default() as graph:
            given = tf.compat.v1.placeholder(tf.string, [None])
            parsed = tf.io.parse_example(
                given,
                {
                    name: tf.io.RaggedFeature(
                        self._features[name], row_splits_dtype=tf.int64
                    )
                    for name in names
                },
            )
        return _Parse(tf.compat.v1.Session(graph=graph), given, parsed)

    def _batch(
        self, parse: _Parse, records: npt.NDArray[Any], start: int
    ) -> pa.RecordBatch:
        """Columns of a run of examples, those that do not fit left out."""
        try:
            parsed = parse(records)
        except _UNFIT:
            fitting = [
                self._is_example(parse, record, start + place)
                for place, record in enumerate(records, 1)
            ]
            parsed = parse(records[np.array(fitting)])
        return self._checked(parsed, start)

    def _is_example(self, parse: _Parse, record: bytes, place: int) -> bool:
        try:
            parse(np.array([record], object))
        except tf.errors.InvalidArgumentError as error:
            self._fault(place, _reason(error))
            return False
        except UnicodeDecodeError:
            self._fault(place, "is no tf.train.Example")
            return False
        return True

    def _checked(self, parsed: Mapping[str, Any], start: int) -> pa.RecordBatch:
        """Columns, of which scalars have one value in each row or none."""
        rows = len(next(iter(parsed.values())).row_splits) - 1
        bad = np.zeros(rows, np.bool_)
        for name in self._scalars & set(parsed):
            lengths = np.diff(parsed[name].row_splits)
            for row in np.flatnonzero((lengths > 1) & ~bad).tolist():
                reason = f"feature {name!r} has {lengths[row]} values"
                self._fault(start + row + 1, f"{reason}, expected one")
            bad |= lengths > 1
        columns = {
            name: self._column(name, value) for name, value in parsed.items()
        }
        batch = pa.RecordBatch.from_pydict(columns)
        return batch.filter(pa.array(~bad)) if bad.any() else batch

    def _column(self, name: str, found: Any) -> pa.Array:
        kind = self.schema.field(name).type
        splits = found.row_splits
        lengths = np.diff(splits)
        values = pa.array(found.values, _PLAIN[self._features[name]])
        if name in self._scalars:
            # The first of several; those rows are left out.
            first = pa.array(splits[:-1], mask=lengths == 0)
            return values.take(first).cast(kind)
        # An example tells an empty list not from one that it lacks.
        return pa.ListArray.from_arrays(
            pa.array(splits.astype(np.int32)),
            values.cast(kind.value_type),
            mask=pa.array(lengths == 0),
        )

    def _fault(self, place: int, reason: str) -> None:
        if self._report is None:
            msg = f"record {place}: {reason}"
            raise OSError(msg)
        self._report.skip_rows(1, f"{self.label}: record {place}: {reason}")


class _Parse:
    """Parses examples in a session."""

    def __init__(
        self,
        session: tf.compat.v1.Session,
        given: tf.Tensor,
        parsed: Mapping[str, Any],
    ) -> None:
        self.session = session
        self._given = given
        self._parsed = dict(parsed)

    def __call__(self, records: npt.NDArray[Any]) -> Mapping[str, Any]:
        """Ragged values by name.

        Raises:
            tf.errors.InvalidArgumentError: If one of them does not fit.
            UnicodeDecodeError: The same, where its bytes are in the message.
        """
        found: Mapping[str, Any] = self.session.run(
            self._parsed, {self._given: records}
        )
        return found


def _reason(error: tf.errors.OpError) -> str:
    """What an op said, without where in a graph it is."""
    said = str(error.message).rsplit("\nNode: ", 1)[-1].split("\n\t [[", 1)[0]
    return said.split("\n", 1)[-1].strip()


def stored_type(field: Field) -> tf.DType:
    """The type in which an example holds a field.

    Raises:
        ValueError: If the field has no dtype, or asks for what examples cannot
            tell.
    """
    if field.dtype is None or (field.ragged_rank or 0) > 1:
        msg = (
            f"Field {field.name!r}: a field of a TFRecord has a dtype, and a "
            f"ragged_rank of 0 or 1. Received: dtype={field.dtype}, "
            f"ragged_rank={field.ragged_rank}."
        )
        raise ValueError(msg)
    if field.dtype in _PLAIN:
        return field.dtype
    if field.dtype.is_integer or field.dtype.is_bool:
        return tf.int64
    if field.dtype.is_floating:
        return tf.float32
    msg = (
        f"Field {field.name!r}: no example holds {field.dtype.name}. Expected "
        "integers, floats, booleans or strings."
    )
    raise ValueError(msg)


def _is_scalar(field: Field) -> bool:
    return not field.shape and not field.ragged_rank


def _kind(field: Field, stored: tf.DType) -> pa.DataType:
    value = pa.bool_() if field.dtype.is_bool else _PLAIN[stored]
    return value if _is_scalar(field) else pa.list_(value)
