"""What is in a set of files: counts, nulls, distinct values, some rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ._arrow_types import TypeMismatchError, take_apart, tensor_dtype
from ._containers import FAULTS, ArrowContainer, Container, ParquetContainer
from ._csv_container import CsvContainer
from ._errors import DataError
from ._files import SourceFile, find_files
from ._orc_container import OrcContainer
from ._schema import partition_types
from ._string_ids import string_ids


_CHUNK_ROWS = 65_536
_PACKED = (".gz", ".bz2", ".zst")


class DistinctCounter:
    """Estimates how many different values there are, in fixed memory.

    It keeps the smallest hashes of all values: the closer together they lie,
    the more values there are (the "k minimum values" sketch of Bar-Yossef et
    al., 2002). Up to `size` values are counted exactly, above that with a
    standard error of about `1 / sqrt(size)`.

    Args:
        size: Hashes to keep.

    Example:
        >>> import pyarrow as pa
        >>> counter = DistinctCounter()
        >>> counter.add(pa.array([1, 2, 2, None]))
        >>> counter.estimate()
        2
    """

    def __init__(self, size: int = 4096) -> None:
        self._size = size
        self._least = np.empty(0, np.uint64)

    @property
    def exact(self) -> bool:
        """Whether all values could be kept."""
        return len(self._least) < self._size

    def add(self, values: pa.Array) -> None:
        """Adds plain values; nulls do not count."""
        hashes = _hashes(values.drop_null())
        self._least = np.union1d(self._least, hashes)[: self._size]

    def estimate(self) -> int:
        """The number of different values."""
        if self.exact:
            return len(self._least)
        return round((self._size - 1) / (float(self._least[-1]) / 2.0**64))


def _hashes(values: pa.Array) -> npt.NDArray[np.uint64]:
    values = values.unique()
    if pa.types.is_binary(values.type):
        bits = string_ids(values.to_pylist()).view(np.uint64)
    elif pa.types.is_floating(values.type):
        bits = np.asarray(values.cast(pa.float64())).view(np.uint64)
    elif pa.types.is_uint64(values.type):
        bits = np.asarray(values)
    else:
        bits = np.asarray(values.cast(pa.int64())).view(np.uint64)
    # The finaliser of SplitMix64.
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@dataclass
class ColumnProfile:
    """What a column holds.

    Attributes:
        name: Its name.
        kind: Its type in the file.
        tensor: The type of its tensor; empty if there is none.
        nulls: Missing values and lists.
        values: Values, those of all lists together.
        distinct: Counts different values; None where they are not read.
    """

    name: str
    kind: str
    tensor: str
    nulls: int = 0
    values: int = 0
    distinct: DistinctCounter | None = None


@dataclass
class DataProfile:
    """What a set of files holds.

    Attributes:
        files: How many.
        units: Row groups or the like of all files.
        unit_word: What those are called.
        rows: Rows of all files.
        columns: Its columns.
        sample: The first rows.
    """

    files: int
    units: int
    unit_word: str
    rows: int = 0
    columns: list[ColumnProfile] = field(default_factory=list)
    sample: list[dict[str, Any]] = field(default_factory=list)


def profile(
    filenames: str,
    *,
    sample: int = 3,
    progress: Callable[[int, int | None], None] | None = None,
) -> DataProfile:
    """Reads all rows of files and tells what they hold.

    Args:
        filenames: As for `ParquetDataset`. Files that end in `.csv`, `.tsv`
            (also packed, as `.csv.gz`, `.bz2` or `.zst`), `.arrow`, `.feather`
            or `.orc` are read as such, others as Parquet.
        sample: How many of the first rows to keep.
        progress: Called with rows read and rows in all, if that is known.

    Raises:
        DataError: If files are missing or cannot be read.
    """
    containers = [_open(file) for file in find_files(filenames)]
    counts = [rows for one in containers for rows in one.unit_rows]
    known = [rows for rows in counts if rows is not None]
    total = sum(known) if len(known) == len(counts) else None
    found = DataProfile(len(containers), len(counts), containers[0].unit_word)
    by_name: dict[str, ColumnProfile] = {}
    folders = partition_types(containers)
    for one in containers:
        named = {name: folders[name] for name in one.partitions}
        for column in (*one.schema, *pa.schema(named)):
            if column.name not in by_name:
                by_name[column.name] = _column(column)
    found.columns = list(by_name.values())
    for one in containers:
        for batch in _batches(one, folders):
            _count(batch, by_name)
            missing = sample - len(found.sample)
            found.sample += _rows(batch.slice(0, max(missing, 0)))
            found.rows += batch.num_rows
            if progress is not None:
                progress(found.rows, total)
    return found


def _open(file: SourceFile) -> Container:
    path = PurePath(file.path)
    if path.suffix in _PACKED:
        path = path.with_suffix("")
    suffix = path.suffix
    if suffix in (".csv", ".tsv"):
        return CsvContainer(file, "\t" if suffix == ".tsv" else ",", {})
    if suffix in (".arrow", ".feather"):
        return ArrowContainer(file)
    if suffix == ".orc":
        return OrcContainer(file)
    return ParquetContainer(file)


def _column(column: pa.Field) -> ColumnProfile:
    try:
        shape = take_apart(column.type)
    except TypeMismatchError:
        return ColumnProfile(column.name, str(column.type), "")
    lists = "".join(f"[{size or ''}]" for size in shape.sizes)
    value = (
        ""
        if pa.types.is_null(shape.value)
        else (tensor_dtype(shape.value).name)
    )
    counter = DistinctCounter() if value else None
    return ColumnProfile(
        column.name, str(column.type), value + lists, distinct=counter
    )


def _batches(
    container: Container, folders: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    """All rows, with the columns that folders stand for behind the others."""
    names = container.schema.names
    constants = {
        name: pa.scalar(value, pa.string()).cast(folders[name])
        for name, value in container.partitions.items()
        if name not in names
    }
    for unit in range(len(container.unit_rows)):
        try:
            for batch in container.read([unit], names, _CHUNK_ROWS):
                for name, value in constants.items():
                    column = pa.repeat(value, batch.num_rows)
                    batch = batch.append_column(name, column)
                yield batch
        except FAULTS as error:
            msg = f"{container.unit_label(unit)}: cannot be read: {error}"
            raise DataError(msg) from error


def _count(batch: pa.RecordBatch, by_name: dict[str, ColumnProfile]) -> None:
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        column = by_name[name]
        column.nulls += array.null_count
        if column.distinct is None:
            continue
        try:
            shape = take_apart(array.type)
        except TypeMismatchError:
            # Of another type than in the files before.
            column.distinct = None
            continue
        while array.type != shape.value:
            if pa.types.is_nested(array.type):
                array = array.flatten()
                column.nulls += array.null_count
            elif pa.types.is_dictionary(array.type):
                array = array.dictionary_decode()
            else:
                array = array.cast(shape.value)
        column.values += len(array) - array.null_count
        column.distinct.add(array)


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    names = batch.schema.names
    values = [[_value(one) for one in column] for column in batch.columns]
    rows = zip(*values, strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _value(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (ValueError, OverflowError, LookupError):
        # A time that Python has no object for: the number that it is.
        return value.cast(pa.int64()).as_py()
