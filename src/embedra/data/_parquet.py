"""Rows of Parquet files, streamed in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from ._columns import Columns
from ._errors import DataError
from ._raw import RawRows


_BATCH_ROWS = 16_384
# Key of the metadata under which a converted click log names its columns.
COLUMNS_KEY = b"embedra.columns"


def parquet_names(path: Path) -> list[str]:
    """Names of the columns of a Parquet file.

    Raises:
        DataError: If the file is not Parquet.
    """
    with _open(path) as file:
        return list(file.schema_arrow.names)


def parquet_columns(path: Path) -> Columns | None:
    """What the columns are, where the file was converted from a click log.

    Raises:
        DataError: If the file is not Parquet.
    """
    with _open(path) as file:
        stored = (file.schema_arrow.metadata or {}).get(COLUMNS_KEY)
    if stored is None:
        return None
    named = json.loads(stored)
    return Columns(
        named["label"], tuple(named["numeric"]), tuple(named["categorical"])
    )


def parquet_rows(path: Path, names: Sequence[str]) -> Iterator[RawRows]:
    """Streams some columns of a Parquet file.

    Args:
        path: The file.
        names: The columns to read.

    Yields:
        Runs of rows with the types of the file.

    Raises:
        DataError: If the file is not Parquet or is damaged.
    """
    start = 0
    with _open(path) as file:
        try:
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(names)):
                columns = {name: batch.column(name) for name in names}
                line_of = partial(_row_number, start)
                yield RawRows(columns, batch.num_rows, line_of)
                start += batch.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            msg = f"{path}: cannot be read after row {start}: {error}"
            raise DataError(msg) from error


def _row_number(start: int, position: int) -> int:
    return start + position + 1


def _open(path: Path) -> pyarrow.parquet.ParquetFile:
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        msg = f"{path}: not a Parquet file: {error}"
        raise DataError(msg) from error
