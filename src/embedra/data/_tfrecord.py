"""Batches of `tf.train.Example`s of TFRecord files, under the same fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ._errors import DataError
from ._field import Field
from ._files import Names, find_files
from ._plan import Share


_STORED = {tf.int64, tf.float32, tf.string}


def read_tfrecord(
    filenames: Names,
    batch_size: int = 1,
    fields: Sequence[Field] = (),
    partition_count: int = 1,
    partition_index: int = 0,
    *,
    shuffle: bool | int = False,
    seed: int = 0,
    drop_remainder: bool = False,
    num_parallel_reads: int | None = None,
    prefetch: int = 2,
    to_dense: bool = False,
    compression: str = "",
) -> tf.data.Dataset:
    """Batches of the examples of TFRecord files, read by TensorFlow itself.

    Args:
        filenames: As for `ParquetDataset`.
        batch_size: Rows of a batch.
        fields: What to read: the records do not say. A field without shape and
            ragged rank is a scalar; `ragged_rank` is 0 or 1.
        partition_count: Number of ranks that share the rows; each takes every
            so-manyth.
        partition_index: This rank, from 0.
        shuffle: Whether to shuffle rows within a buffer of 65,536; or the size
            of the buffer.
        seed: Seed of the order.
        drop_remainder: Whether to leave out a last, smaller batch.
        num_parallel_reads: Files read at the same time, their rows mixed;
            default: one after another.
        prefetch: Batches made ahead.
        to_dense: Whether to pad ragged columns to the longest of the batch.
        compression: `""`, `"GZIP"` or `"ZLIB"`.

    Returns:
        Dicts from name to tensor.

    Raises:
        DataError: If no field is named, or a file is missing.
        ValueError: If a field cannot be had of examples.
    """
    if not fields:
        msg = (
            "TFRecord files do not say what is in them: name the fields, with "
            "a dtype each."
        )
        raise DataError(msg)
    specs = {field.name: feature_spec(field) for field in fields}
    share = Share(partition_count, partition_index)
    paths = [
        file.label if "://" in file.label else file.path
        for file in find_files(filenames)
    ]
    data = tf.data.TFRecordDataset(
        paths, compression, num_parallel_reads=num_parallel_reads
    ).shard(share.count, share.index)
    if shuffle:
        window = 65_536 if shuffle is True else int(shuffle)
        data = data.shuffle(window, seed)

    def parse(records: tf.Tensor) -> dict[str, Any]:
        parsed = tf.io.parse_example(records, specs)
        return {
            field.name: _finished(parsed[field.name], field, to_dense)
            for field in fields
        }

    data = data.batch(batch_size, drop_remainder=drop_remainder).map(parse)
    return data.prefetch(prefetch)


def feature_spec(field: Field) -> Any:
    """The `tf.io` feature that reads a field.

    Raises:
        ValueError: If the field has no dtype, or asks for what examples cannot
            tell.

    Example:
        >>> feature_spec(Field("age", "float32", default=0.0))
        FixedLenFeature(shape=[], dtype=tf.float32, default_value=0.0)
    """
    if field.dtype is None or field.mask or (field.ragged_rank or 0) > 1:
        msg = (
            f"Field {field.name!r}: a field of a TFRecord has a dtype, no mask "
            "and a ragged_rank of 0 or 1."
        )
        raise ValueError(msg)
    stored = _stored(field)
    if field.ragged_rank or field.length != "exact":
        return tf.io.RaggedFeature(stored, row_splits_dtype=tf.int64)
    shape = list(field.shape or ())
    default = field.default
    if default is not None and shape:
        default = tf.fill(shape, tf.constant(default, stored))
    return tf.io.FixedLenFeature(shape, stored, default)


def _stored(field: Field) -> tf.DType:
    dtype = field.dtype
    if dtype in _STORED:
        return dtype
    if dtype.is_integer or dtype.is_bool:
        return tf.int64
    if dtype.is_floating:
        return tf.float32
    msg = f"Field {field.name!r}: no example holds {dtype.name}."
    raise ValueError(msg)


def _finished(tensor: Any, field: Field, to_dense: bool) -> Any:
    if field.dtype != tensor.dtype:
        tensor = tf.cast(tensor, field.dtype)
    filler = None
    if field.default is not None:
        filler = tf.constant(field.default, field.dtype)
    if field.shape and field.length != "exact":
        tensor = _fitted(tensor, field, filler)
    elif to_dense and isinstance(tensor, tf.RaggedTensor):
        tensor = tensor.to_tensor(filler)
    return tensor if field.transform is None else field.transform(tensor)


def _fitted(
    tensor: tf.RaggedTensor, field: Field, filler: tf.Tensor | None
) -> tf.Tensor:
    """Lists padded and cut to the size of a row."""
    size = int(tf.TensorShape(field.shape).num_elements())
    left = field.length == "left"
    if left:
        tensor = tensor[:, ::-1]
    dense = tensor.to_tensor(filler, shape=[None, size])
    dense = dense[:, ::-1] if left else dense
    return tf.reshape(dense, [-1, *(field.shape or ())])
