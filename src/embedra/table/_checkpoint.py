"""Tables in TensorFlow checkpoints and SavedModels.

A table is written as one small checkpoint ("prefix") per chunk of records;
TensorFlow then merges all prefixes by renaming files. No tensor is larger than
a chunk, on the way out or in.

Executed eagerly, chunks are written until the table is exhausted. A SavedModel
also carries a traced form for loaders without Python; there the number of
chunks is that of the table when it is exported.
"""

import functools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from embedra import _ops
from embedra.distribute import Communicator, gather_values

from ._chain import read_header, read_records
from ._delta import TablePart
from ._group import TableGroup
from ._joint_checkpoint import save_jointly
from ._planned_export import chunk_count
from ._prefix_writer import PrefixWriter
from ._resource import CHUNK_SIZE
from ._restore import replace_state, set_layout
from ._saved_chunks import named, read, read_chunks
from ._state import (
    check_fits,
    group_header,
    group_pending,
    header_of,
)
from ._table import Table


def save_tables(tables: dict[str, Table], file_prefix: Any) -> list[tf.Tensor]:
    """Writes tables as checkpoints that are to be merged.

    Args:
        tables: Tables by unique path.
        file_prefix: Where to write, a string tensor.

    Returns:
        The prefixes written.
    """
    return save_groups(_as_groups(tables), file_prefix)


def restore_tables(tables: dict[str, Table], merged_prefix: Any) -> None:
    """Replaces tables by their state in a checkpoint.

    Args:
        tables: Tables by the path that they were saved under.
        merged_prefix: Prefix of the merged checkpoint, a string tensor.
    """
    restore_groups(_as_groups(tables), merged_prefix)


def save_groups(
    groups: dict[str, TableGroup], file_prefix: Any
) -> list[tf.Tensor]:
    """Writes groups of tables as checkpoints that are to be merged.

    Those that ranks hold together are written by all ranks, see `save_jointly`.

    Args:
        groups: Groups by unique path; each is written as one table.
        file_prefix: Where to write, a string tensor.

    Returns:
        The prefixes written.
    """
    prefixes: list[tf.Tensor] = []
    for communicator, parts in _by_communicator(groups).items():
        if communicator is None:
            prefixes += _save_whole(parts, file_prefix)
        else:
            prefixes += save_jointly(parts, communicator, file_prefix)
    return prefixes


def _save_whole(
    groups: dict[str, TableGroup], file_prefix: Any
) -> list[tf.Tensor]:
    """Writes groups of tables by this process alone."""
    with PrefixWriter(file_prefix) as writer:
        for path, group in groups.items():
            part = TablePart(path, group_header(group))
            exported = (c for table in group.tables for c in _export(table))
            chunk = 0
            for columns in part.chunks(exported):
                writer.write(named(path, chunk, columns))
                chunk += 1
            keys, gradients = group_pending(group)
            writer.write(
                {
                    **part.description(),
                    f"{path}/chunks": tf.constant(chunk, tf.int64),
                    f"{path}/pending_keys": tf.constant(keys),
                    f"{path}/pending_gradients": tf.constant(gradients),
                }
            )
    return writer.prefixes


def restore_groups(groups: dict[str, TableGroup], merged_prefix: Any) -> None:
    """Replaces groups of tables by their state in a checkpoint.

    All headers are read and checked before any table is changed.

    Args:
        groups: Groups by the path that they were saved under; the number of
            tables may be another one now.
        merged_prefix: Prefix of the merged checkpoint, a string tensor.

    Raises:
        ValueError: If a table's width or dtypes differ from the saved ones, or
            the checkpoint is a delta, see `restoring_chain`.
    """
    groups = {path: group.origin for path, group in groups.items()}
    if not tf.executing_eagerly():
        for path, group in groups.items():
            _restore_traced(group, path, merged_prefix)
        return
    headers = {}
    for path, group in groups.items():
        headers[path] = read_header(path, merged_prefix)
        source = f"checkpoint {merged_prefix.numpy().decode()}"
        check_fits(group.first, headers[path], source)
    for path, group in groups.items():
        keys, gradients = read(
            merged_prefix,
            {
                f"{path}/pending_keys": tf.int64,
                f"{path}/pending_gradients": tf.float32,
            },
        )
        replace_state(
            group,
            headers[path],
            functools.partial(read_records, group.first, path, merged_prefix),
            (keys, gradients),
        )


def _as_groups(tables: dict[str, Table]) -> dict[str, TableGroup]:
    return {path: TableGroup([table]) for path, table in tables.items()}


def _by_communicator(
    groups: dict[str, TableGroup],
) -> dict[Communicator | None, dict[str, TableGroup]]:
    """Sorts groups by the ranks that hold them; None for this one alone."""
    found: dict[Communicator | None, dict[str, TableGroup]] = {}
    for path, given in groups.items():
        group = given.origin
        # What a SavedModel traces is for tables that one process has.
        held_by = group.communicator if tf.executing_eagerly() else None
        found.setdefault(held_by, {})[path] = group
    return found


def _export(table: Table) -> Iterator[list[tf.Tensor]]:
    """Reads a table in chunks, also when a SavedModel traces it."""
    cursor = tf.constant(0, tf.int64)
    chunk = 0
    while True:
        *columns, cursor = _ops.table_export(
            table.resource_handle,
            cursor,
            CHUNK_SIZE,
            dtype=table.dtype,
            dim=table.dim,
        )
        if _is_past_the_end(table, columns[0], chunk):
            return
        yield columns
        chunk += 1


def _restore_traced(group: TableGroup, path: str, prefix: tf.Tensor) -> None:
    for table in group.tables:
        set_layout(table, header_of(table))
    chunks = sum(_chunk_count(table) for table in group.tables)
    for records in read_chunks(group.first.dtype, path, prefix, chunks):
        rows = tf.ensure_shape(records.rows, (None, group.first.dim))
        for table, part in group.split(records._replace(rows=rows)):
            table.import_records(part)


def _is_past_the_end(table: Table, keys: tf.Tensor, chunk: int) -> bool:
    if tf.executing_eagerly():
        return int(tf.size(keys)) == 0
    return chunk >= _chunk_count(table)


def _chunk_count(table: Table) -> int:
    """Number of chunks that the table has now, on all ranks, when tracing."""
    own = chunk_count(table)
    with tf.init_scope():
        return sum(gather_values(table.communicator, own, label="chunks"))
