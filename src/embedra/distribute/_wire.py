"""How tensors of any dtype travel in one of the dtypes of collectives."""

import tensorflow as tf

from embedra._typing import Tensor

from ._flat_exchanges import WIRE_DTYPES


def to_wire(values: Tensor) -> Tensor:
    """Converts values to a dtype of collectives, so that they can be moved.

    Args:
        values: Numbers or booleans.
    """
    dtype = values.dtype
    if dtype in WIRE_DTYPES:
        return values
    if dtype == tf.uint64:
        return tf.bitcast(values, tf.int64)
    if dtype == tf.uint32:
        return tf.cast(values, tf.int64)
    return tf.cast(values, tf.float32 if dtype.is_floating else tf.int32)


def from_wire(values: Tensor, dtype: tf.DType) -> Tensor:
    """Undoes `to_wire`.

    Args:
        values: What came.
        dtype: Of what was sent.
    """
    if dtype == tf.uint64:
        return tf.bitcast(values, tf.uint64)
    return tf.cast(values, dtype)


def to_bits(values: Tensor) -> Tensor:
    """Converts values to integers whose sum with zeros keeps their bits.

    Args:
        values: Numbers or booleans.
    """
    wire = to_wire(values)
    if not wire.dtype.is_floating:
        return wire
    return tf.bitcast(wire, tf.int64 if wire.dtype.size == 8 else tf.int32)


def from_bits(bits: Tensor, dtype: tf.DType) -> Tensor:
    """Undoes `to_bits`.

    Args:
        bits: What came.
        dtype: Of what was sent.
    """
    if dtype.is_floating:
        bits = tf.bitcast(bits, tf.float64 if dtype.size == 8 else tf.float32)
    return from_wire(bits, dtype)
