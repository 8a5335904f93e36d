"""Datasets of rows of other files than Parquet, and of tables in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from ._arrow_types import arrow_type
from ._containers import (
    ArrowContainer,
    Container,
    TableContainer,
)
from ._csv_container import CsvContainer
from ._errors import DataError
from ._field import Field
from ._files import Names, SourceFile, find_files
from ._load_report import LoadReport
from ._orc_container import OrcContainer
from ._read_options import ReadOptions, dataset_of, dataset_of_files
from ._row_dataset import RowDataset


def read_csv(
    filenames: Names,
    batch_size: int = 1,
    fields: Sequence[Field | str] | None = None,
    *,
    delimiter: str = ",",
    filesystem: Any = None,
    **options: Unpack[ReadOptions],
) -> RowDataset:
    r"""Batches of rows of delimited text with a header line.

    Types that no field declares are inferred from the first MiB of each file.
    An empty value is a null. How many rows there are is known after reading
    only: the dataset has no cardinality, and each of several ranks reads all
    of the files to take every so-manyth row.

    Args:
        filenames: As for `ParquetDataset`; unpacked by their suffix (`.gz`,
            `.bz2`, `.zst`).
        batch_size: Rows of a batch.
        fields: Names or `Field`s to read; default: all columns.
        delimiter: Text between two values; `"\t"` for TSV.
        filesystem: A `pyarrow.fs` or fsspec file system of the names.
        **options: As for `ParquetDataset`. With `on_error="skip"`, lines with
            a wrong number of columns and rows with a value of another type are
            left out; values are read more slowly then.

    Raises:
        DataError: If files or columns are missing or do not fit together.
    """
    report = LoadReport()
    types = {
        field.name: arrow_type(field.dtype)
        for field in fields or ()
        if isinstance(field, Field) and field.dtype is not None
    }
    skip = options.get("on_error") == "skip"

    def opened(file: SourceFile) -> Container:
        found = report if skip else None
        return CsvContainer(file, delimiter, types, found)

    files = find_files(filenames, filesystem)
    return dataset_of_files(files, opened, batch_size, fields, report, options)


def read_arrow(
    filenames: Names,
    batch_size: int = 1,
    fields: Sequence[Field | str] | None = None,
    *,
    filesystem: Any = None,
    **options: Unpack[ReadOptions],
) -> RowDataset:
    """Batches of rows of Arrow IPC (Feather) files.

    Args:
        filenames: As for `ParquetDataset`.
        batch_size: Rows of a batch.
        fields: Names or `Field`s to read; default: all columns.
        filesystem: A `pyarrow.fs` or fsspec file system of the names.
        **options: As for `ParquetDataset`.

    Raises:
        DataError: If files or columns are missing or do not fit together.
    """
    files = find_files(filenames, filesystem)
    report = LoadReport()
    return dataset_of_files(
        files, ArrowContainer, batch_size, fields, report, options
    )


def read_orc(
    filenames: Names,
    batch_size: int = 1,
    fields: Sequence[Field | str] | None = None,
    *,
    filesystem: Any = None,
    **options: Unpack[ReadOptions],
) -> RowDataset:
    """Batches of rows of ORC files.

    Args:
        filenames: As for `ParquetDataset`.
        batch_size: Rows of a batch.
        fields: Names or `Field`s to read; default: all columns.
        filesystem: A `pyarrow.fs` or fsspec file system of the names.
        **options: As for `ParquetDataset`.

    Raises:
        DataError: If files or columns are missing or do not fit together.
    """
    files = find_files(filenames, filesystem)
    report = LoadReport()
    return dataset_of_files(
        files, OrcContainer, batch_size, fields, report, options
    )


def read_table(
    table: Any,
    batch_size: int = 1,
    fields: Sequence[Field | str] | None = None,
    **options: Unpack[ReadOptions],
) -> RowDataset:
    """Batches of rows of a table in memory.

    Args:
        table: A `pyarrow.Table`, a pandas `DataFrame`, or a dict from name to
            array or list; a NumPy array with more than one dimension is a
            column of rows of that shape.
        batch_size: Rows of a batch.
        fields: Names or `Field`s to read; default: all columns.
        **options: As for `ParquetDataset`.

    Raises:
        DataError: If columns are missing or have types without a tensor.

    Example:
        >>> data = read_table({"age": np.arange(5)}, batch_size=2)
        >>> [batch["age"].numpy().tolist() for batch in data]
        [[0, 1], [2, 3], [4]]
    """
    container = TableContainer(_as_table(table))
    return dataset_of([container], batch_size, fields, LoadReport(), options)


def _as_table(table: Any) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    try:
        if isinstance(table, Mapping):
            columns = {name: _as_array(table[name]) for name in table}
            return pa.table(columns)
        return pa.Table.from_pandas(table, preserve_index=False)
    except (pa.ArrowException, AttributeError, TypeError) as error:
        msg = (
            "Expected a pyarrow.Table, a pandas DataFrame, or a dict from name "
            f"to values. Received: {type(table).__name__}: {error}"
        )
        raise DataError(msg) from error


def _as_array(values: Any) -> Any:
    if not isinstance(values, np.ndarray) or values.ndim < 2:
        return values
    array: Any = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in values.shape[:0:-1]:
        array = pa.FixedSizeListArray.from_arrays(array, size)
    return array
