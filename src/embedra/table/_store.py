"""Tables in a Keras weights store (`.keras`, `.weights.h5`)."""

from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np

from embedra.distribute import together

from ._group import TableGroup
from ._records import Records
from ._restore import replace_state
from ._state import (
    COLUMNS,
    TableHeader,
    check_fits,
    from_file_columns,
    group_header,
    group_pending,
    to_file_columns,
)
from ._streaming import stream_state
from ._table import Table


_HEADER = "table"
_PENDING = ("pending_keys", "pending_gradients")


def save_to_store(
    tables: Table | TableGroup, store: MutableMapping[str, Any]
) -> None:
    """Writes all state of a table, or of a group as of one, chunk by chunk.

    Where ranks hold it together, all must take part, each with a store of its
    own: that of rank 0 gets all records, the others none.

    Args:
        tables: The table or tables.
        store: Takes NumPy arrays by name, as `save_own_variables` is given.

    Raises:
        RankError: On all ranks, if one of them failed.
    """
    group = _as_group(tables)
    communicator = group.communicator
    with together(communicator, f"saving table {group.first.name!r}"):
        if communicator is None:
            header, pending = group_header(group), group_pending(group)
            chunks = (c for t in group.tables for c in t.export_chunks())
            _fill(store, header, pending, chunks)
        else:
            _fill(store, *stream_state(group, communicator))


def _fill(
    store: MutableMapping[str, Any],
    header: TableHeader,
    pending: tuple[Any, Any],
    chunks: Iterator[Records],
) -> None:
    store[_HEADER] = np.frombuffer(header.to_json().encode(), np.uint8)
    for name, array in zip(_PENDING, pending, strict=True):
        store[name] = array
    count = 0
    for records in chunks:
        for name, column in to_file_columns(records).items():
            store[f"{name}_{count:06d}"] = column
        count += 1
    store["chunks"] = np.int64(count)


def read_header(store: MutableMapping[str, Any], table: Table) -> TableHeader:
    """Reads the header of the state in a store, and checks that it fits.

    Args:
        store: Where the state is.
        table: Where it is to go.

    Returns:
        The header.

    Raises:
        ValueError: If there is no state, or it does not fit.
    """
    if _HEADER not in set(store.keys()):
        msg = (
            f"There is no table state for table {table.name!r} in the file. "
            "Nothing was restored into it: load the file into the model that "
            "it was saved from."
        )
        raise ValueError(msg)
    header = TableHeader.from_json(np.asarray(store[_HEADER]).tobytes())
    check_fits(table, header, "the file")
    return header


def load_from_store(
    tables: Table | TableGroup, store: MutableMapping[str, Any]
) -> None:
    """Replaces a table, or those of a group, by the state in a store.

    Args:
        tables: The table or tables; left alone if the state does not fit.
        store: As `save_to_store` filled it, from any number of tables.

    Raises:
        ValueError: If there is no state, or it does not fit.
    """
    group = _as_group(tables)
    header = read_header(store, group.first)
    chunks = int(np.asarray(store["chunks"]))
    if chunks < 0:
        msg = (
            f"The saved state of table {header.name!r} is damaged: it counts "
            f"{chunks} chunks. The table is left as it was."
        )
        raise ValueError(msg)
    keys, gradients = (np.asarray(store[name]) for name in _PENDING)

    def read_chunks() -> Iterator[Records]:
        return (
            _chunk(store, chunk, group.first.dtype) for chunk in range(chunks)
        )

    replace_state(group, header, read_chunks, (keys, gradients))


def _as_group(tables: Table | TableGroup) -> TableGroup:
    return TableGroup([tables]) if isinstance(tables, Table) else tables


def _chunk(store: MutableMapping[str, Any], chunk: int, dtype: str) -> Records:
    columns = {
        name: np.asarray(store[f"{name}_{chunk:06d}"]) for name in COLUMNS
    }
    return from_file_columns(columns, dtype)
