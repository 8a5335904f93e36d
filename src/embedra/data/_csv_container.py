"""Delimited text as columns, by Arrow's CSV reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.csv

from ._containers import FAULTS, Container, slices
from ._errors import DataError
from ._files import SourceFile
from ._load_report import LoadReport
from ._parsed_text import parse_columns


class CsvContainer(Container):
    """A text file with a header line, of which Arrow infers the types.

    Args:
        file: The file; unpacked by its suffix.
        delimiter: Text between two values.
        types: Types of columns that are declared.
        report: Counts rows that are left out: those with a wrong number of
            columns, and those with a value of another type. None makes them
            an error.
    """

    unit_word = "part"
    has_columns = False

    def __init__(
        self,
        file: SourceFile,
        delimiter: str,
        types: Mapping[str, pa.DataType],
        report: LoadReport | None = None,
    ) -> None:
        if len(delimiter) != 1:
            msg = f"delimiter is one character. Received: {delimiter!r}."
            raise DataError(msg)
        self._file = file
        self._report = report
        self._delimiter = delimiter
        try:
            with self._open(types, []) as reader:
                schema = reader.schema
                found = {one.name: one.type for one in schema}
        except (*FAULTS, UnicodeDecodeError) as error:
            msg = f"{file.label}: cannot be read as text: {error}"
            raise DataError(msg) from error
        self._declared = frozenset(types)
        self._types = {**found, **types}
        super().__init__(file.label, schema, [None], file.partitions)

    def _open(
        self, types: Mapping[str, pa.DataType], names: Sequence[str]
    ) -> pa.csv.CSVStreamingReader:
        # Lines met when the file is opened come again when it is read.
        skip = partial(self._skip, count=bool(names))
        stream = self._file.filesystem.open_input_stream(
            self._file.path, compression="detect"
        )
        return pa.csv.open_csv(
            stream,
            parse_options=pa.csv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                invalid_row_handler=skip if self._report else None,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=types,
                include_columns=list(names),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def read(
        self, units: Sequence[int], names: Sequence[str], chunk_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Streams some columns of the file; see `Container`."""
        del units  # There is one.
        if not names:
            names = self.schema.names
        if self._report is not None:
            yield from self._read_fitting(self._report, names, chunk_rows)
            return
        try:
            with self._open(self._types, names) as reader:
                for batch in reader:
                    yield from slices(batch, chunk_rows)
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(self._named(str(error))) from error

    def _read_fitting(
        self, report: LoadReport, names: Sequence[str], chunk_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Streams the rows of which all values are of the types expected."""
        # The parser ends at the first value of another type, so it is told
        # that all are text.
        text = dict.fromkeys(self._types, pa.binary())
        types = {name: self._types[name] for name in names}
        start = 0
        with self._open(text, names) as reader:
            for batch in reader:
                fitting, faults = parse_columns(batch, types)
                for row, reason in faults:
                    where = f"{self.label}: row {start + row + 1}"
                    report.skip_rows(1, f"{where}: {reason}")
                start += batch.num_rows
                yield from slices(fitting, chunk_rows)

    def _named(self, message: str) -> str:
        """An error of the parser, with the name of the column."""
        found = re.search(r"CSV column #(\d+)", message)
        if found is None:
            return message
        name = self.schema.names[int(found[1])]
        message = message.replace(found[0], f"column {name!r}")
        if name in self._declared:
            return message
        return (
            f"{message}. Its type is that of its values in the first MiB of "
            "the file; declare another"
        )

    def _skip(self, row: pa.csv.InvalidRow, *, count: bool) -> str:
        if count and self._report is not None:
            place = "" if row.number is None else f":{row.number}"
            self._report.skip_rows(
                1,
                f"{self.label}{place}: {row.actual_columns} columns, expected "
                f"{row.expected_columns}",
            )
        return "skip"
