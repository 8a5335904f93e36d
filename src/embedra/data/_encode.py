"""Batches on their way from Arrow to tensors.

A batch crosses into the graph as NumPy arrays: numbers as they lie in Arrow's
memory, text as one run of bytes with the place of each string in it. Making a
Python object of each string would take longer than reading them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import tensorflow as tf

from ._schema import Column


Array = npt.NDArray[Any]


def encode(batch: pa.RecordBatch, columns: Sequence[Column]) -> list[Array]:
    """The arrays of a batch, as `wire_types` names them."""
    arrays = _packed(batch, columns)
    packed = set(_packs(columns))
    for column in columns:
        if column.mask_name:
            mask = batch.column(column.mask_name)
            arrays.append(mask.to_numpy(zero_copy_only=False))
        if _pack_of(column) in packed:
            continue
        values = batch.column(column.name)
        if column.shape:
            values = values.flatten()
        for _ in range(column.levels):
            splits = values.offsets.to_numpy().astype(np.int64)
            arrays.append(splits - splits[0])
            values = values.flatten()
        if pa.types.is_binary(values.type):
            arrays += _text(values)
        else:
            arrays.append(values.to_numpy(zero_copy_only=False))
    return arrays


def _pack_of(column: Column) -> tf.DType | None:
    """The dtype with which a column can be packed: one number in each row."""
    plain = not column.levels and not column.shape
    return column.dtype if plain and column.dtype != tf.string else None


def _packs(columns: Sequence[Column]) -> dict[tf.DType, list[Column]]:
    """Columns that cross into the graph as the rows of one matrix, by dtype.

    What a batch costs on its way depends on how many arrays it has.
    """
    packs: dict[tf.DType, list[Column]] = {}
    for column in columns:
        dtype = _pack_of(column)
        if dtype is not None:
            packs.setdefault(dtype, []).append(column)
    return {dtype: some for dtype, some in packs.items() if len(some) > 1}


def _packed(batch: pa.RecordBatch, columns: Sequence[Column]) -> list[Array]:
    matrices: list[Array] = []
    for dtype, some in _packs(columns).items():
        matrix = np.empty((len(some), batch.num_rows), dtype.as_numpy_dtype)
        for row, column in zip(matrix, some, strict=True):
            values = batch.column(column.name)
            row[:] = values.to_numpy(zero_copy_only=False)
        matrices.append(matrix)
    return matrices


def _text(values: pa.BinaryArray) -> list[Array]:
    _, ends, data = values.buffers()
    splits = np.zeros(1, np.int32)
    if len(values):
        splits = np.frombuffer(ends, np.int32)
        splits = splits[values.offset : values.offset + len(values) + 1]
    first, last = int(splits[0]), int(splits[-1])
    whole = data.slice(first, last - first).to_pybytes() if last else b""
    boxed = np.empty((), object)
    boxed[()] = whole
    return [boxed, splits.astype(np.int64) - first]


def wire_types(columns: Sequence[Column]) -> list[tf.DType]:
    """Types of the arrays of `encode`."""
    packs = _packs(columns)
    types: list[tf.DType] = list(packs)
    for column in columns:
        types += [tf.bool] if column.mask_name else []
        if _pack_of(column) in packs:
            continue
        types += [tf.int64] * column.levels
        text = column.dtype == tf.string
        types += [tf.string, tf.int64] if text else [column.dtype]
    return types


def decode(
    arrays: Sequence[tf.Tensor],
    columns: Sequence[Column],
    *,
    batch_size: int | None,
    to_dense: bool,
) -> dict[str, Any]:
    """The tensors of a batch by name, from the arrays of `encode`.

    Args:
        arrays: What crossed into the graph.
        columns: What they are.
        batch_size: Rows of each batch, where all have the same.
        to_dense: Whether to pad ragged tensors to the longest of the batch.
    """
    rest = iter(arrays)
    packed = {
        column.name: values
        for some in _packs(columns).values()
        for column, values in zip(
            some, _unpacked(next(rest), len(some), batch_size), strict=True
        )
    }
    tensors: dict[str, Any] = {}
    for column in columns:
        if column.mask_name:
            mask = next(rest)
            mask.set_shape([batch_size])
            tensors[column.mask_name] = mask
        tensor = packed.get(column.name)
        if tensor is None:
            tensor = _tensor(rest, column, batch_size)
        if to_dense and column.levels:
            filler = tf.constant(column.filler, column.dtype)
            tensor = tensor.to_tensor(filler)
        if column.field.transform is not None:
            tensor = column.field.transform(tensor)
        tensors[column.name] = tensor
    return tensors


def _unpacked(
    matrix: tf.Tensor, columns: int, batch_size: int | None
) -> list[tf.Tensor]:
    matrix.set_shape([columns, batch_size])
    return tf.unstack(matrix, columns)  # type: ignore[no-any-return]


def _tensor(
    rest: Iterator[tf.Tensor], column: Column, batch_size: int | None
) -> Any:
    splits = [next(rest) for _ in range(column.levels)]
    for split in splits:
        split.set_shape([None])
    values = next(rest)
    if column.dtype == tf.string:
        values = _strings(values, next(rest))
    else:
        values.set_shape([None])
    if column.levels:
        if batch_size is not None:
            splits[0].set_shape([batch_size + 1])
        return tf.RaggedTensor.from_nested_row_splits(
            values, splits, validate=False
        )
    if column.shape:
        values = tf.reshape(values, [-1, *column.shape])
    values.set_shape([batch_size, *column.shape])
    return values


def _strings(whole: tf.Tensor, splits: tf.Tensor) -> tf.Tensor:
    whole.set_shape([])
    splits.set_shape([None])
    return tf.strings.substr(whole, splits[:-1], splits[1:] - splits[:-1])
