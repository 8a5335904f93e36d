"""Rows of other files on their way into Parquet, run by run."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf

from ._arrow_types import arrow_type
from ._block import Block
from ._columns import Columns
from ._containers import FAULTS
from ._csv_container import CsvContainer
from ._errors import DataError, ReadReport
from ._files import find_files
from ._load_report import LoadReport
from ._parquet import COLUMNS_KEY
from ._reader import ClickReader, OnError


_RUN_ROWS = 16_384


class RowSource(ABC):
    """A file to convert.

    Attributes:
        path: The file.
        report: Counts rows that are left out.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.report = ReadReport(str(path))

    @abstractmethod
    def tables(self, skip: int = 0) -> Iterator[pa.Table]:
        """Streams the rows in runs; the same ones each time.

        Args:
            skip: Runs to leave out at the beginning.

        Raises:
            DataError: At what cannot be read and is not to be skipped.
        """


class ClickRows(RowSource):
    """A click log; ids are hashed, derived columns made.

    Args:
        reader: Reads it.
    """

    def __init__(self, reader: ClickReader) -> None:
        super().__init__(reader.path)
        self._reader = reader

    def tables(self, skip: int = 0) -> Iterator[pa.Table]:
        """Streams the rows in runs; see `RowSource`."""
        for block in self._reader.blocks(skip=skip, report=self.report):
            yield _block_table(block, self._reader.columns)


class CsvRows(RowSource):
    """Delimited text with a header line, with the types that Arrow infers.

    Args:
        path: The file.
        delimiter: Text between two values.
        on_error: What to do about lines with a wrong number of columns, and
            values of another type.
        types: Types of columns, such as `"float64"`, that are not to be
            inferred from the first MiB.

    Raises:
        DataError: If it cannot be read as text, or lacks such a column.
    """

    def __init__(
        self,
        path: str | Path,
        delimiter: str,
        on_error: OnError,
        types: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(path)
        self._found = LoadReport()
        declared = {name: _type(name, t) for name, t in (types or {}).items()}
        self._container = CsvContainer(
            find_files(path)[0],
            delimiter,
            declared,
            self._found if on_error == "skip" else None,
        )
        absent = sorted(set(declared) - set(self._container.schema.names))
        if absent:
            msg = (
                f"{path}: no column {', '.join(map(repr, absent))}. The file "
                f"has: {', '.join(self._container.schema.names)}."
            )
            raise DataError(msg)
        names = self._container.schema.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            msg = (
                f"{path}: more than one column is named "
                f"{', '.join(map(repr, twice))}. Expected each name once."
            )
            raise DataError(msg)

    def tables(self, skip: int = 0) -> Iterator[pa.Table]:
        """Streams the rows in runs; see `RowSource`."""
        names = self._container.schema.names
        runs = self._container.read([0], names, _RUN_ROWS)
        try:
            for number, batch in enumerate(runs):
                # The parser counts lines of runs that are left out too.
                self.report.malformed = self._found.skipped_rows
                self.report.examples = self._found.reasons[
                    : ReadReport.MAX_EXAMPLES
                ]
                if number >= skip:
                    self.report.rows += batch.num_rows
                    yield pa.Table.from_batches([batch])
        except FAULTS as error:
            msg = (
                f"{self.path}: cannot be read: {error} (--types NAME=TYPE), or "
                'leave such rows out with on_error="skip" (--on-error skip).'
            )
            raise DataError(msg) from error


def _type(name: str, given: str) -> pa.DataType:
    try:
        dtype = tf.as_dtype(given)
        # Text is stored as such, not as bytes.
        return pa.string() if dtype == tf.string else arrow_type(dtype)
    except (TypeError, ValueError) as error:
        msg = (
            f"Column {name!r}: there is no type {given!r}. Expected one as "
            "int64, float64, bool or string."
        )
        raise DataError(msg) from error


class TFRecordRows(RowSource):
    """Examples of a TFRecord file.

    What the first run has decides on columns: a feature with one value in all
    of it is a scalar, others are lists.

    Args:
        path: The file.
        on_error: What to do about examples that do not fit.
    """

    _KINDS = {
        "int64_list": pa.int64(),
        "float_list": pa.float32(),
        "bytes_list": pa.binary(),
    }

    def __init__(self, path: str | Path, on_error: OnError) -> None:
        super().__init__(path)
        find_files(path)  # Says what is wrong with the name.
        self._on_error = on_error
        self._kinds: dict[str, tuple[str, bool]] = {}

    def tables(self, skip: int = 0) -> Iterator[pa.Table]:
        """Streams the rows in runs; see `RowSource`."""
        packed = "GZIP" if self.path.suffix == ".gz" else ""
        data = tf.data.TFRecordDataset(str(self.path), packed)
        records = data.batch(_RUN_ROWS).as_numpy_iterator()
        start = 0
        try:
            for number, run in enumerate(records):
                if not number:
                    self._kinds = self._infer(run)
                if number >= skip:
                    yield self._table(run, start)
                start += len(run)
        except tf.errors.OpError as error:
            msg = f"{self.path}: damaged after record {start}: {error.message}"
            raise DataError(msg) from error

    def _infer(self, run: Sequence[bytes]) -> dict[str, tuple[str, bool]]:
        kinds: dict[str, tuple[str, bool]] = {}
        for record in run:
            for name, feature in _features(record).items():
                kind = feature.WhichOneof("kind")
                if kind is None:
                    continue
                many = len(getattr(feature, kind).value) != 1
                known, before = kinds.get(name, (kind, False))
                kinds[name] = (known, before or many)
        if not kinds:
            msg = f"{self.path}: no example with features in the first records."
            raise DataError(msg)
        return dict(sorted(kinds.items()))

    def _table(self, run: Sequence[bytes], start: int) -> pa.Table:
        columns: dict[str, list[Any]] = {name: [] for name in self._kinds}
        for place, record in enumerate(run, start + 1):
            row = self._row(record, place)
            for name, values in columns.items() if row is not None else ():
                values.append((row or {}).get(name))
        arrays = []
        for name, (kind, many) in self._kinds.items():
            value = self._KINDS[kind]
            arrays.append(
                pa.array(columns[name], pa.list_(value) if many else value)
            )
        table = pa.Table.from_arrays(arrays, list(self._kinds))
        self.report.rows += table.num_rows
        return table

    def _row(self, record: bytes, place: int) -> dict[str, Any] | None:
        """Values by name; None for an example that does not fit."""
        row: dict[str, Any] = {}
        for name, feature in _features(record).items():
            kind = feature.WhichOneof("kind")
            if kind is None:
                continue
            values = list(getattr(feature, kind).value)
            expected, many = self._kinds.get(name, (None, False))
            if kind != expected or not (many or len(values) == 1):
                reason = (
                    f"feature {name!r} has {len(values)} values of {kind}, "
                    "unlike the first examples"
                )
                if self._on_error == "raise":
                    msg = f"{self.path}:{place}: {reason}."
                    raise DataError(msg)
                self.report.add_malformed(place, reason)
                return None
            row[name] = values if many else values[0]
        return row


def _features(record: bytes) -> dict[str, Any]:
    return dict(tf.train.Example.FromString(record).features.feature)


def _block_table(block: Block, columns: Columns) -> pa.Table:
    arrays = [pa.array(block.labels.astype(np.int8))]
    for values in block.numeric.T:
        # NaN stands for a missing number, which Parquet has a null for.
        arrays.append(pa.array(values, mask=np.isnan(values)))
    arrays += [pa.array(ids) for ids in block.categorical.T]
    names = [columns.label, *columns.features]
    stored = {
        "label": columns.label,
        "numeric": columns.numeric,
        "categorical": columns.categorical,
    }
    return pa.Table.from_arrays(arrays, names).replace_schema_metadata(
        {COLUMNS_KEY: json.dumps(stored).encode()}
    )
