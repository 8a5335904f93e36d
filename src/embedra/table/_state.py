"""State: what a table is saved as, the same through every door.

A table is a header and chunks of records. The header says everything that the
records do not: layout, clock, and what new rows are drawn from. Files hold
global records, never a memory layout.
"""

import dataclasses
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from embedra import _ops

from ._group import TableGroup
from ._records import Records, Slot
from ._table import Table


FORMAT = 1

# Of a table of which only what changed is there.
DELTA_FORMAT = "1, changes"

# Columns of a chunk, in the order of `Records`.
COLUMNS = ("keys", "rows", "slots", "frequencies", "last_steps")


@dataclasses.dataclass(frozen=True)
class TableHeader:
    """Everything about a table but its records.

    Attributes:
        name: The table's name when it was saved.
        stream_name: The name that initial rows are drawn with.
        dim: Width of a row.
        dtype: Dtype of the rows.
        key_dtype: What ids are meant to be.
        seed: Seed of the initial rows.
        initializer: Native kind of the initializer.
        parameters: Its parameters.
        slots: What optimizers keep beside rows.
        step: Number of optimizer steps seen.
        scalars: What optimizers keep once per table.
    """

    name: str
    stream_name: str
    dim: int
    dtype: str
    key_dtype: str
    seed: int
    initializer: str
    parameters: tuple[float, ...]
    slots: tuple[Slot, ...]
    step: int
    scalars: dict[str, float]

    def to_json(self, form: int | str = FORMAT) -> str:
        """Returns the header as JSON.

        Args:
            form: FORMAT or DELTA_FORMAT.
        """
        return json.dumps({"format": form, **dataclasses.asdict(self)})

    @classmethod
    def from_json(
        cls, text: str | bytes, form: int | str = FORMAT
    ) -> "TableHeader":
        """Reads a header.

        Args:
            text: What `to_json` gave.
            form: FORMAT or DELTA_FORMAT: what the reader is made for.

        Returns:
            The header.

        Raises:
            ValueError: If it was written by a later release, or its table
                is a delta and the reader is not for them.
        """
        fields = json.loads(text)
        found = fields.pop("format")
        if found != form:
            msg = (
                f"The table state has format {found!r}; this release of "
                f"Embedra reads format {form!r} here. Use a release that "
                "matches the file."
            )
            raise ValueError(msg)
        fields["parameters"] = tuple(fields["parameters"])
        fields["slots"] = tuple(Slot(*slot) for slot in fields["slots"])
        return cls(**fields)


def is_delta(text: str | bytes) -> bool:
    """Whether a header is of a table of which only what changed is there.

    Args:
        text: What `TableHeader.to_json` gave.
    """
    return bool(json.loads(text)["format"] == DELTA_FORMAT)


def header_of(table: Table) -> TableHeader:
    """Describes a table (not inside a `tf.function`).

    Args:
        table: The table.

    Returns:
        Its header.
    """
    with tf.init_scope():
        return TableHeader(
            name=table.name,
            stream_name=table.stream_name,
            dim=table.dim,
            dtype=table.dtype,
            key_dtype=table.key_dtype,
            seed=table.seed,
            initializer=table.initializer.kind,
            parameters=table.initializer.parameters,
            slots=table.slots,
            step=int(table.step),
            scalars=table.scalars.values(),
        )


def group_header(group: TableGroup) -> TableHeader:
    """Describes a group of tables as one (not inside a `tf.function`).

    Args:
        group: The tables.

    Returns:
        Its header.
    """
    with tf.init_scope():
        slots = group.agree_on_slots()
        step = max(int(table.step) for table in group.tables)
    header = header_of(group.first)
    return dataclasses.replace(header, slots=slots, step=step)


def group_pending(group: TableGroup) -> tuple[Any, Any]:
    """Reads gradients that are accumulated for a step still to come.

    Args:
        group: The tables; their pending gradients stay.

    Returns:
        Keys, `int64`, shape `(n,)`, and gradients, `float32`, `(n, dim)`.
    """
    with tf.init_scope():
        parts = [pending_gradients(table) for table in group.tables]
    keys, gradients = zip(*parts, strict=True)
    return np.concatenate(keys), np.concatenate(gradients)


def check_fits(table: Table, header: TableHeader, source: str) -> None:
    """Raises unless state can be restored into a table.

    Args:
        table: The table.
        header: Header of the state.
        source: Where the state comes from, for the message.

    Raises:
        ValueError: If width or dtypes differ; it names both sides.
    """
    differing = [
        f"{field}={getattr(header, field)!r} in the file, "
        f"{getattr(table, field)!r} in the table"
        for field in ("dim", "dtype", "key_dtype")
        if getattr(header, field) != getattr(table, field)
    ]
    if differing:
        msg = (
            f"State of table {header.name!r} from {source} does not fit table "
            f"{table.name!r}: {'; '.join(differing)}. The table is left as "
            "it was: build it as it was when the state was saved."
        )
        raise ValueError(msg)


def pending_gradients(table: Table) -> tuple[Any, Any]:
    """Reads gradients that are accumulated for a step still to come.

    Args:
        table: The table; its pending gradients stay.

    Returns:
        Keys, `int64`, shape `(n,)`, and gradients, `float32`, `(n, dim)`.
    """
    positions, gradients = _ops.table_take_gradients(
        table.resource_handle, dim=table.dim
    )
    _ops.table_accumulate_gradients(table.resource_handle, positions, gradients)
    keys, alive = _ops.table_keys(table.resource_handle, positions)
    return (
        tf.boolean_mask(keys, alive).numpy(),
        tf.boolean_mask(gradients, alive).numpy(),
    )


def to_file_columns(records: Records) -> dict[str, npt.NDArray[Any]]:
    """Returns the columns of a chunk in dtypes that any file format holds.

    Args:
        records: A chunk.

    Returns:
        Columns by name; bfloat16 rows as `uint16` of the same bits.
    """
    columns: dict[str, Any] = dict(zip(COLUMNS, records, strict=True))
    if columns["rows"].dtype.name == "bfloat16":
        columns["rows"] = columns["rows"].view(np.uint16)
    return columns


def from_file_columns(
    columns: dict[str, npt.NDArray[Any]], dtype: str
) -> Records:
    """Does the reverse of `to_file_columns`.

    Args:
        columns: Columns by name.
        dtype: Dtype of the rows.

    Returns:
        The chunk.
    """
    rows = np.asarray(columns["rows"])
    if dtype == "bfloat16":
        rows = rows.view(tf.bfloat16.as_numpy_dtype)
    rest = (np.asarray(columns[name]) for name in COLUMNS[2:])
    return Records(np.asarray(columns["keys"]), rows, *rest)
