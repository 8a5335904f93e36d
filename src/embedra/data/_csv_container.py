"""Delimited text as columns, by Arrow's CSV reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.csv

from ._containers import FAULTS, Container, slices
from ._errors import DataError
from ._files import SourceFile
from ._load_report import LoadReport


class CsvContainer(Container):
    """A text file with a header line, of which Arrow infers the types.

    Args:
        file: The file; unpacked by its suffix.
        delimiter: Text between two values.
        types: Types of columns that are declared.
        report: Counts lines with a wrong number of columns, which are left
            out; None makes them an error.
    """

    unit_word = "part"

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
        self._types = types
        try:
            with self._open() as reader:
                schema = reader.schema
                found = {one.name: one.type for one in schema}
        except (*FAULTS, UnicodeDecodeError) as error:
            msg = f"{file.label}: cannot be read as text: {error}"
            raise DataError(msg) from error
        self._types = {**found, **types}
        super().__init__(file.label, schema, [None], file.partitions)

    def _open(
        self, names: Sequence[str] | None = None
    ) -> pa.csv.CSVStreamingReader:
        # Lines met when the file is opened come again when it is read.
        skip = partial(self._skip, count=names is not None)
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
                column_types=self._types,
                include_columns=list(names or []),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def read(
        self, units: Sequence[int], names: Sequence[str], chunk_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Streams some columns of the file; see `Container`."""
        del units  # There is one.
        with self._open(names) as reader:
            for batch in reader:
                yield from slices(batch, chunk_rows)

    def _skip(self, row: pa.csv.InvalidRow, *, count: bool) -> str:
        if count and self._report is not None:
            place = "" if row.number is None else f":{row.number}"
            self._report.skip_rows(
                1,
                f"{self.label}{place}: {row.actual_columns} columns, expected "
                f"{row.expected_columns}",
            )
        return "skip"
