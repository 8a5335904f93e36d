"""Files of columns, seen as units that can be read alone.

A unit is a row group of a Parquet file, a record batch of an Arrow file, a
whole text file, or a run of rows of a table in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.fs
import pyarrow.ipc
import pyarrow.parquet

from ._errors import DataError
from ._files import SourceFile


_UNIT_ROWS = 65_536
# Errors by which Arrow says that bytes are not what they should be.
FAULTS = (pa.ArrowException, OSError)


class Container(ABC):
    """Columns in units.

    Attributes:
        label: What messages call it.
        schema: The columns, those of its folders not among them.
        unit_rows: Rows of each unit; None where only reading tells.
        unit_word: What a unit is called.
        joins: Whether units that follow one another can be read in one go.
        has_columns: Whether columns lie apart, so that one of them can be
            damaged alone.
        partitions: Columns that its folders stand for.
    """

    unit_word = "rows"
    joins = False
    has_columns = True

    def __init__(
        self,
        label: str,
        schema: pa.Schema,
        unit_rows: Sequence[int | None],
        partitions: Mapping[str, str | None] | None = None,
    ) -> None:
        self.label = label
        self.schema = schema
        self.unit_rows = tuple(unit_rows)
        self.partitions = partitions or {}

    @abstractmethod
    def read(
        self, units: Sequence[int], names: Sequence[str], chunk_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Streams some columns of units, `chunk_rows` rows at most at a time.

        Raises:
            pyarrow.ArrowException: If its bytes are damaged.
            OSError: If they cannot be read.
        """

    def row_bytes(self, unit: int, names: Sequence[str]) -> float:
        """About how many bytes some columns of a row take in memory.

        Args:
            unit: Where the row is.
            names: The columns.
        """
        del unit
        return 8.0 * max(len(names), 1)

    def unit_label(self, unit: int) -> str:
        """What messages call a unit."""
        return f"{self.label}: {self.unit_word} {unit}"


class ParquetContainer(Container):
    """A Parquet file; its footer is read once and kept."""

    unit_word = "row group"

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        try:
            with file.open() as stream:
                parquet = pa.parquet.ParquetFile(stream)
                self._metadata = parquet.metadata
                schema = parquet.schema_arrow
        except FAULTS as error:
            msg = f"{file.label}: not a Parquet file, or damaged: {error}"
            raise DataError(msg) from error
        groups = range(self._metadata.num_row_groups)
        rows = [self._metadata.row_group(group).num_rows for group in groups]
        super().__init__(file.label, schema, rows, file.partitions)
        # Of a remote file a whole row group is fetched before it is decoded;
        # that must not become several.
        self.joins = isinstance(file.filesystem, pa.fs.LocalFileSystem)

    def read(
        self, units: Sequence[int], names: Sequence[str], chunk_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Streams some columns of row groups; see `Container`."""
        with self._file.open() as stream:
            parquet = pa.parquet.ParquetFile(
                stream, metadata=self._metadata, pre_buffer=not self.joins
            )
            yield from parquet.iter_batches(
                chunk_rows, row_groups=list(units), columns=list(names)
            )

    def row_bytes(self, unit: int, names: Sequence[str]) -> float:
        """By the sizes that the file states for its row group."""
        group = self._metadata.row_group(unit)
        columns = [group.column(i) for i in range(group.num_columns)]
        wanted = set(names)
        total = sum(
            column.total_uncompressed_size
            for column in columns
            if column.path_in_schema.split(".")[0] in wanted
        )
        # Dictionaries and run lengths are undone in memory.
        stated = float(total / max(group.num_rows, 1))
        return max(stated, super().row_bytes(unit, names))


class ArrowContainer(Container):
    """An Arrow IPC (Feather) file."""

    unit_word = "record batch"

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        try:
            with file.open() as stream:
                reader = pa.ipc.open_file(stream)
                schema = reader.schema
            rows = self._count(len(schema))
        except FAULTS as error:
            msg = f"{file.label}: not an Arrow IPC file, or damaged: {error}"
            raise DataError(msg) from error
        super().__init__(file.label, schema, rows, file.partitions)

    def _count(self, width: int) -> list[int]:
        # One column is enough to count rows by.
        one = pa.ipc.IpcReadOptions(included_fields=[0] if width else [])
        with self._file.open() as stream:
            reader = pa.ipc.open_file(stream, options=one)
            batches = range(reader.num_record_batches)
            return [reader.get_batch(i).num_rows for i in batches]

    def read(
        self, units: Sequence[int], names: Sequence[str], chunk_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Streams some columns of record batches; see `Container`."""
        places = [self.schema.get_field_index(name) for name in names]
        options = pa.ipc.IpcReadOptions(included_fields=places)
        with self._file.open() as stream:
            reader = pa.ipc.open_file(stream, options=options)
            for unit in units:
                yield from slices(reader.get_batch(unit), chunk_rows)


class TableContainer(Container):
    """A table in memory, in units of some thousand rows."""

    def __init__(self, table: pa.Table, label: str = "table") -> None:
        self._table = table
        full, rest = divmod(table.num_rows, _UNIT_ROWS)
        rows = [_UNIT_ROWS] * full + ([rest] if rest else [])
        super().__init__(label, table.schema, rows)

    def read(
        self, units: Sequence[int], names: Sequence[str], chunk_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Streams some columns of runs of rows; see `Container`."""
        table = self._table.select(list(names))
        for unit in units:
            part = table.slice(unit * _UNIT_ROWS, _UNIT_ROWS)
            yield from part.to_batches(max_chunksize=chunk_rows)

    def row_bytes(self, unit: int, names: Sequence[str]) -> float:
        """By what the columns take."""
        del unit
        size = self._table.select(list(names)).nbytes
        return float(size / max(self._table.num_rows, 1))


def slices(batch: pa.RecordBatch, chunk_rows: int) -> Iterator[pa.RecordBatch]:
    """Cuts a run of rows into smaller ones."""
    for start in range(0, batch.num_rows, chunk_rows):
        yield batch.slice(start, chunk_rows)
