"""From the columns of a file to columns of one type, without nulls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from ._schema import Column


Rows = npt.NDArray[np.bool_]
_NullHint = (
    "is null. Give its Field a default, or mask=True, or write the value"
)


class RowFault(NamedTuple):
    """A value that cannot be read as asked.

    Attributes:
        row: Position in the run of rows.
        reason: Names the column, what it holds and what was expected.
    """

    row: int
    reason: str


class _Read(NamedTuple):
    """A column, and which of its rows hold something else than was asked."""

    values: pa.Array
    bad: Rows | None = None
    reason: str = ""


def normalize(
    batch: pa.RecordBatch,
    columns: Sequence[Column],
    constants: Mapping[str, pa.Scalar],
) -> tuple[pa.RecordBatch, list[RowFault]]:
    """Reads columns as they were asked for.

    Args:
        batch: Rows of a file.
        columns: What to read.
        constants: Columns that are one value in all of the file.

    Returns:
        The good rows, with masks behind the columns they belong to, and one
        fault for each other row.
    """
    rows = batch.num_rows
    names, arrays = [], []
    bad = np.zeros(rows, np.bool_)
    faults: list[RowFault] = []
    for column in columns:
        source = _source(batch, column, constants)
        if column.mask_name:
            names.append(column.mask_name)
            arrays.append(source.is_valid())
        read = _read(source, column)
        names.append(column.name)
        arrays.append(read.values)
        if read.bad is not None:
            for row in np.flatnonzero(read.bad & ~bad).tolist():
                reason = f"column {column.name!r} {read.reason}"
                faults.append(RowFault(row, reason))
            bad |= read.bad
    result = pa.RecordBatch.from_arrays(arrays, names)
    if faults:
        result = result.filter(pa.array(~bad))
    return result, sorted(faults)


def _source(
    batch: pa.RecordBatch,
    column: Column,
    constants: Mapping[str, pa.Scalar],
) -> pa.Array:
    at = batch.schema.get_field_index(column.name)
    if at >= 0:
        return batch.column(at)
    if column.name in constants:
        return pa.repeat(constants[column.name], batch.num_rows)
    if column.shape:
        default = pa.scalar([column.filler] * column.size, column.kind)
    elif column.levels:
        # A missing list is an empty one.
        default = pa.scalar([], column.kind)
    else:
        default = pa.scalar(column.filler, column.value)
    return pa.repeat(default, batch.num_rows)


def _read(source: pa.Array, column: Column) -> _Read:
    if source.type == column.value and not source.null_count:
        return _Read(source)
    if column.shape:
        return _dense(source, column)
    return _ragged(source, column, column.levels)


def _is_nested(kind: pa.DataType) -> bool:
    return bool(
        pat.is_list(kind)
        or pat.is_large_list(kind)
        or pat.is_fixed_size_list(kind)
    )


def _scalars(values: pa.Array, column: Column) -> _Read:
    """Plain values without nulls."""
    if pat.is_dictionary(values.type):
        values = values.dictionary_decode()
    bad: Rows | None = None
    reason = ""
    missing = values.is_null() if values.null_count else None
    read = _cast(values, column.value)
    if missing is not None:
        filler = pa.scalar(column.filler, column.value)
        if column.field.default is None and not column.field.mask:
            bad, reason = np.asarray(missing), _NullHint
        read = _Read(read.values.fill_null(filler), read.bad, read.reason)
    if read.bad is None:
        return _Read(read.values, bad, reason)
    return read if bad is None else _Read(read.values, read.bad | bad, reason)


def _cast(values: pa.Array, kind: pa.DataType) -> _Read:
    if values.type == kind:
        return _Read(values)
    if pat.is_temporal(values.type):
        width = values.type.bit_width
        values = values.cast(pa.int32() if width == 32 else pa.int64())
    if pat.is_fixed_size_binary(values.type):
        return _Read(values.cast(pa.binary()))
    if pat.is_boolean(values.type) and pat.is_floating(kind):
        values = values.cast(pa.uint8())
    if not pat.is_integer(kind) or not pat.is_integer(values.type):
        # Also text as bytes. Floats are rounded, as in NumPy.
        return _Read(values.cast(kind, safe=not pat.is_floating(kind)))
    try:
        return _Read(values.cast(kind))
    except pa.ArrowInvalid:
        cast = values.cast(kind, safe=False)
        bad = np.asarray(
            pc.not_equal(cast.cast(values.type, safe=False), values).fill_null(
                False
            )
        )
        # int64 and uint64 agree in their bits where the sign differs.
        if pat.is_signed_integer(values.type) != pat.is_signed_integer(kind):
            signed = values if pat.is_signed_integer(values.type) else cast
            bad = bad | np.asarray(pc.less(signed, 0).fill_null(False))
        first = values[int(np.flatnonzero(bad)[0])].as_py()
        return _Read(cast, bad, f"holds {first}, which {kind} cannot hold")


def _lists(array: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Lengths of lists, 0 where null, and their values one after another."""
    lengths = pc.list_value_length(array)
    if array.null_count:
        lengths = lengths.fill_null(0)
    return np.asarray(lengths).astype(np.int64), array.flatten()


def _splits(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    splits = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=splits[1:])
    return splits


def _of_rows(bad: Rows | None, lengths: npt.NDArray[np.int64]) -> Rows | None:
    """Which lists hold a bad value."""
    if bad is None:
        return None
    return _any_of(bad, lengths)


def _any_of(bad: Rows, lengths: npt.NDArray[np.int64]) -> Rows:
    rows = np.zeros(len(lengths), np.bool_)
    rows[np.repeat(np.arange(len(lengths)), lengths)[bad]] = True
    return rows


def _ragged(source: pa.Array, column: Column, levels: int) -> _Read:
    if not levels:
        return _scalars(source, column)
    if pat.is_null(source.type):
        lengths, values = np.zeros(len(source), np.int64), source.slice(0, 0)
    elif pat.is_list(source.type) and not source.null_count:
        # As they lie: nothing but the values may need work.
        inner = _ragged(source.values, column, levels - 1)
        if inner.bad is None:
            offsets = source.offsets
            return _Read(pa.ListArray.from_arrays(offsets, inner.values))
        lengths, values = _lists(source)
    else:
        lengths, values = _lists(source)
    inner = _ragged(values, column, levels - 1)
    array = pa.ListArray.from_arrays(pa.array(_splits(lengths)), inner.values)
    return _Read(array, _of_rows(inner.bad, lengths), inner.reason)


def _dense(source: pa.Array, column: Column) -> _Read:
    """Lists of a fixed size, padded and cut to it where the field says so."""
    if pat.is_null(source.type):
        source = source.cast(pa.list_(column.value))
    lengths, values = _lists(source)
    size = column.size
    # Lists in lists lie one after another already: count their values.
    uneven = np.zeros(len(source), np.bool_)
    depth = 0
    while _is_nested(values.type):
        depth += 1
        inner, values = _lists(values)
        other = inner != prod(column.shape[depth:])
        uneven |= _any_of(other, lengths)
        ends = np.concatenate([[0], np.cumsum(inner)])
        lengths = np.diff(ends[np.concatenate([[0], np.cumsum(lengths)])])
    read = _scalars(values, column)
    bad, reason = _of_rows(read.bad, lengths), read.reason
    wrong = uneven | (lengths != size)
    null = np.asarray(source.is_null())
    if column.field.default is not None:
        wrong &= ~null
    if not (wrong | null).any():
        array = pa.FixedSizeListArray.from_arrays(read.values, size)
        return _Read(array, bad, reason)
    array = _fitted(read.values, lengths, column)
    if column.field.length == "exact" and wrong.any():
        found = int(lengths[np.flatnonzero(wrong)[0]])
        reason = (
            _NullHint
            if null[wrong].all()
            else f"has {found} values, expected {list(column.shape)}. Give its "
            "Field length='right' or 'left' to pad and cut a list, or a "
            "ragged_rank"
        )
        bad = wrong if bad is None else wrong | bad
    return _Read(array, bad, reason)


def _fitted(
    values: pa.Array, lengths: npt.NDArray[np.int64], column: Column
) -> pa.Array:
    size = column.size
    starts = _splits(lengths)[:-1, None].astype(np.int64)
    places = np.broadcast_to(np.arange(size), (len(lengths), size))
    if column.field.length == "left":
        places = places + (lengths[:, None] - size)
    inside = (places >= 0) & (places < lengths[:, None])
    chosen = pa.array((starts + places).ravel(), mask=~inside.ravel())
    filler = pa.scalar(column.filler, column.value)
    return pa.FixedSizeListArray.from_arrays(
        values.take(chosen).fill_null(filler), size
    )
