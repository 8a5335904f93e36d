"""Files of a SavedModel's variables, with the records of tables streamed in.

TensorFlow saves what is in memory. The variables that records go to are empty
there; they are written here, chunk by chunk as slices of one tensor, and merged
with all other variables by renaming files.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from embedra import _ops
from embedra.table import PrefixWriter

from ._row_source import RowSource
from ._slots import other_keys, slots_of
from ._stock_table import StockTable
from ._storage import StorageError, pack, record_words, store


# Bytes of the records of a chunk.
_CHUNK_BYTES = 8 * 2**20
# How checkpoints name what is kept of a variable.
_SUFFIX = ".ATTRIBUTES/VARIABLE_VALUE"
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
        bytes: Bytes of the stored records and of the hash that finds them.
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
    """
    source = RowSource(table.tables)
    hashed = _ops.perfect_hash(source.keys())
    parameters, pilots = hashed.parameters.numpy(), hashed.pilots.numpy()
    slots = hashed.slots.numpy()
    writer.write(
        {
            f"{path}/parameters/{_SUFFIX}": hashed.parameters,
            f"{path}/pilots/{_SUFFIX}": hashed.pilots,
        }
    )
    dim, name = table.header.dim, f"{path}/records/{_SUFFIX}"
    words = record_words(dim, table.stored_dtype)
    chunk = max(1, _CHUNK_BYTES // (8 * words))
    count = 0
    error = StorageError()
    starts = range(0, len(slots), chunk)
    source.agree(len(starts))
    for start in starts:
        keys = slots[start : start + chunk]
        numbers = np.arange(start, start + len(keys))
        rows, there = source.rows(keys)
        there &= slots_of(keys, parameters, pilots) == numbers
        vacant = ~there
        stored = store(rows[there], table.quantize)
        error.add(rows[there], stored)
        records = np.zeros((len(keys), words), np.int64)
        records[there] = pack(keys[there], stored)
        records[vacant, 0] = other_keys(numbers[vacant], parameters, pilots)
        part = f"{len(slots)} {words} {start},{len(keys)}:-"
        writer.write({name: tf.constant(records)}, {name: part})
        count += len(stored.rows)
    return WrittenTable(
        table.header.name,
        count,
        dim,
        table.stored_dtype,
        8 * words * len(slots) + pilots.nbytes + parameters.nbytes,
        error.largest,
        error.root_mean_square,
    )


def answer_for(table: StockTable) -> None:
    """Sends this rank's part of a table to rank 0, which writes it.

    Args:
        table: The table. If this rank has all of it, nothing is done.
    """
    source = RowSource(table.tables)
    if source.answers:
        source.keys()
        for _ in range(source.agree(0)):
            source.rows(np.zeros(0, np.int64))


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
