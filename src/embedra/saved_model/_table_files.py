"""Files of a SavedModel's variables, with the records of tables streamed in.

TensorFlow saves what is in memory. The variables that rows go to are empty
there, and the hash tables too; they are written here, chunk by chunk as slices
of one tensor, and merged with all other variables by renaming files.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from embedra.table import PrefixWriter, Records

from ._stock_table import StockTable, mixed_keys
from ._storage import Array, StorageError, store


# Bytes of the rows of a chunk.
_CHUNK_BYTES = 8 * 2**20
# How checkpoints name what is kept of a hash table.
_PARTS = ("keys", "values")
_SUFFIX = ".ATTRIBUTES"
# What tables are called in the checkpoint: an attribute of the exported object.
_TABLES = "embedra_tables"
_FINGERPRINT = "fingerprint.pb"


class WrittenTable(NamedTuple):
    """A table in a SavedModel.

    Attributes:
        name: Its name.
        keys: Number of keys.
        dim: Width of a row.
        dtype: Dtype that rows are stored in.
        bytes: Bytes of the stored rows and of the hash table.
        max_error: Largest difference that storing made to an element.
        rms_error: Root of the mean square of these differences.
    """

    name: str
    keys: int
    dim: int
    dtype: str
    bytes: int
    max_error: float
    rms_error: float


def table_path(number: int) -> str:
    """Returns where a table is in the checkpoint.

    Args:
        number: Number of the table.
    """
    return f"{_TABLES}/{number}"


def write_tables(
    made: Sequence[StockTable], folder: str
) -> tuple[WrittenTable, ...]:
    """Writes the variables of a SavedModel once more, with records of tables.

    Args:
        made: The tables, in the order of their numbers.
        folder: The SavedModel.

    Returns:
        What was written.
    """
    saved = os.path.join(folder, "variables")
    parts = os.path.join(folder, "parts")
    merged = os.path.join(folder, "merged")
    paths = [table_path(number) for number in range(len(made))]
    tf.io.gfile.makedirs(parts)
    with PrefixWriter(os.path.join(parts, "part")) as writer:
        copy_variables(os.path.join(saved, "variables"), paths, writer)
        tables = [
            write_table(table, path, writer)
            for table, path in zip(made, paths, strict=True)
        ]
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=writer.prefixes,
        destination_prefix=os.path.join(merged, "variables"),
        delete_old_dirs=False,
    )
    for done in (saved, parts):
        tf.io.gfile.rmtree(done)
    tf.io.gfile.rename(merged, saved)
    # It has a hash of the files that were replaced.
    fingerprint = os.path.join(folder, _FINGERPRINT)
    if tf.io.gfile.exists(fingerprint):
        tf.io.gfile.remove(fingerprint)
    return tuple(tables)


def write_table(
    table: StockTable, path: str, writer: PrefixWriter
) -> WrittenTable:
    """Writes the records of a table.

    The table is better not changed meanwhile. If it is, the records that were
    there all along are written, and each as it was at some time.

    Args:
        table: The table.
        path: Where it is in the checkpoint.
        writer: Writes the parts.

    Returns:
        What was written.

    Raises:
        RuntimeError: If records with a reserved key were added meanwhile.
    """
    header = table.header
    first = np.array(table.first_rows.value, np.float64)
    first = first.astype(tf.as_dtype(header.dtype).as_numpy_dtype)
    size = sum(int(one.size()) for one in table.tables)
    rows = _RowWriter(table, path, len(first) + size, writer)
    rows.write(first)
    index = table.new_index(size, experimental_is_anonymous=True)
    keys = 0
    for records in _chunks(table, size):
        if np.isin(records.keys, table.reserved.value).any():
            msg = (
                f"Table {header.name!r} was changed while it was exported. "
                "Export it while it is not trained."
            )
            raise RuntimeError(msg)
        places = np.arange(rows.written, rows.written + len(records.keys))
        index.insert(
            tf.constant(mixed_keys(records.keys, table.offset)),
            tf.constant(places, table.index.value_dtype),
        )
        rows.write(records.rows)
        keys += len(records.keys)
    # Of records that were removed meanwhile.
    rows.fill_up()
    buckets = index.export()
    names = [f"{path}/index/{_SUFFIX}/table-{part}" for part in _PARTS]
    writer.write(dict(zip(names, buckets, strict=True)))
    return WrittenTable(
        header.name,
        keys,
        header.dim,
        table.stored_dtype,
        rows.bytes + sum(part.shape[0] * part.dtype.size for part in buckets),
        rows.error.largest,
        rows.error.root_mean_square,
    )


def copy_variables(
    prefix: str, table_paths: list[str], writer: PrefixWriter
) -> None:
    """Writes all variables but those of tables once more.

    Args:
        prefix: Of the variables that TensorFlow saved.
        table_paths: Where tables are among them.
        writer: Writes the parts.
    """
    saved = tf.train.load_checkpoint(prefix)
    skipped = tuple(f"{path}/" for path in table_paths)
    for name in saved.get_variable_to_shape_map():
        if not name.startswith(skipped):
            writer.write({name: tf.constant(saved.get_tensor(name))})


def _chunks(table: StockTable, size: int) -> Iterator[Records]:
    """Yields records, `size` of them at most."""
    row_bytes = table.header.dim * tf.as_dtype(table.header.dtype).size
    chunk = max(1, _CHUNK_BYTES // row_bytes)
    left = size
    for one in table.tables:
        for records in one.export_chunks(chunk):
            if left <= 0:
                return
            yield records._replace(
                keys=records.keys[:left], rows=records.rows[:left]
            )
            left -= len(records.keys)


class _RowWriter:
    """Writes the rows of a table as slices of one tensor.

    Args:
        table: The table.
        path: Where it is in the checkpoint.
        count: Number of rows of the tensor.
        writer: Writes the parts.

    Attributes:
        written: Rows written.
        bytes: Bytes written.
        error: How far stored rows are from the rows.
    """

    def __init__(
        self, table: StockTable, path: str, count: int, writer: PrefixWriter
    ) -> None:
        self.written = 0
        self.bytes = 0
        self.error = StorageError()
        self._table = table
        self._path = path
        self._count = count
        self._writer = writer

    def write(self, rows: Array) -> None:
        stored = store(rows, self._table.quantize)
        self.error.add(rows, stored)
        part = f"{self.written},{len(rows)}"
        tensors: dict[str, Any] = {}
        slices = {}
        for name, values in stored._asdict().items():
            if values is None:
                continue
            key = f"{self._path}/{name}/{_SUFFIX}/VARIABLE_VALUE"
            if values.dtype.itemsize == 2:
                values = values.view(np.int16)
            tensors[key] = tf.constant(values)
            whole = " ".join(map(str, (self._count, *values.shape[1:])))
            rest = ":-" * (values.ndim - 1)
            slices[key] = f"{whole} {part}{rest}"
            self.bytes += values.nbytes
        self._writer.write(tensors, slices)
        self.written += len(rows)

    def fill_up(self) -> None:
        while self.written < self._count:
            count = min(self._count - self.written, 2**16)
            dtype = tf.as_dtype(self._table.header.dtype).as_numpy_dtype
            self.write(np.zeros((count, self._table.header.dim), dtype))
