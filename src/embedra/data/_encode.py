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
    arrays: list[Array] = []
    # All at once takes a fraction of what each by its name does.
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    for column in columns:
        if column.mask_name:
            mask = given[column.mask_name]
            arrays.append(mask.to_numpy(zero_copy_only=False))
        values = given[column.name]
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
    types: list[tf.DType] = []
    for column in columns:
        types += [tf.bool] if column.mask_name else []
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
    tensors: dict[str, Any] = {}
    for column in columns:
        if column.mask_name:
            mask = next(rest)
            mask.set_shape([batch_size])
            tensors[column.mask_name] = mask
        tensor = _tensor(rest, column, batch_size)
        if to_dense and column.levels:
            filler = tf.constant(column.filler, column.dtype)
            tensor = tensor.to_tensor(filler)
        if column.field.transform is not None:
            tensor = column.field.transform(tensor)
        tensors[column.name] = tensor
    return tensors


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
