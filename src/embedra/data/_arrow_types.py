"""From the types of Arrow to those of TensorFlow, and between files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pat
import tensorflow as tf


class Shape(NamedTuple):
    """A column type taken apart.

    Attributes:
        value: Type of the innermost values, plain: no dictionary.
        sizes: One entry for each level of lists, outermost first: the size of
            lists of fixed size, None for others.
        time: For times, what their numbers count: two that differ cannot be
            told apart by the values.
    """

    value: pa.DataType
    sizes: tuple[int | None, ...]
    time: str = ""


class TypeMismatchError(ValueError):
    """A type that cannot be read; the message goes behind a column name."""


def take_apart(kind: pa.DataType) -> Shape:
    """Splits a column type into its levels of lists and its values.

    Raises:
        TypeMismatchError: If TensorFlow has nothing for the values.
    """
    sizes: list[int | None] = []
    while True:
        if pat.is_dictionary(kind):
            kind = kind.value_type
        elif pat.is_fixed_size_list(kind):
            sizes.append(kind.list_size)
            kind = kind.value_type
        elif pat.is_list(kind) or pat.is_large_list(kind):
            sizes.append(None)
            kind = kind.value_type
        else:
            return Shape(_plain(kind), tuple(sizes), _time(kind))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type that values come in: times as integers, text as bytes."""
    if (
        pat.is_string(kind)
        or pat.is_large_string(kind)
        or pat.is_binary(kind)
        or pat.is_large_binary(kind)
        or pat.is_fixed_size_binary(kind)
        or pat.is_string_view(kind)
        or pat.is_binary_view(kind)
    ) and not pat.is_decimal(kind):
        return pa.binary()
    if pat.is_date32(kind) or pat.is_time32(kind):
        return pa.int32()
    if pat.is_temporal(kind) and not pat.is_interval(kind):
        return pa.int64()
    if (
        pat.is_integer(kind)
        or pat.is_floating(kind)
        or pat.is_boolean(kind)
        or pat.is_null(kind)
    ):
        return kind
    hint = (
        "Write it as float64 or as an integer of the smallest unit"
        if pat.is_decimal(kind)
        else "Write it as columns or lists of numbers or strings"
    )
    msg = f"has type {kind}, for which there is no tensor. {hint}."
    raise TypeMismatchError(msg)


def _time(kind: pa.DataType) -> str:
    if not pat.is_temporal(kind):
        return ""
    if pat.is_timestamp(kind):
        # With a zone, whichever, these are instants; else they are local.
        return f"timestamp[{kind.unit}{', tz' if kind.tz else ''}]"
    return str(kind)


def check_times(shapes: Sequence[Shape]) -> None:
    """Looks whether numbers mean the same in all files.

    Raises:
        TypeMismatchError: If they are times of several units, or times in one
            file and plain numbers in another.
    """
    times = {
        shape.time or str(shape.value): shape.time
        for shape in shapes
        if not pat.is_null(shape.value)
    }
    if len(set(times.values())) > 1:
        msg = (
            f"has type {' in one file and '.join(times)} in another, of which "
            "the numbers differ in what they count. Write one unit to all files"
        )
        raise TypeMismatchError(msg)


def widest(kinds: list[pa.DataType]) -> pa.DataType:
    """The smallest plain type that holds the values of all, without loss.

    Raises:
        TypeMismatchError: If there is none.
    """
    return reduce(_wider, kinds)


def _wider(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    if first == second or pat.is_null(second):
        return first
    if pat.is_null(first):
        return second
    if not all(
        pat.is_integer(k) or pat.is_floating(k) for k in (first, second)
    ):
        msg = f"has type {first} in one file and {second} in another"
        raise TypeMismatchError(msg)
    wide = np.promote_types(first.to_pandas_dtype(), second.to_pandas_dtype())
    for kind in (first, second):
        # NumPy makes float64 of int64 and of int64 with uint64: with loss.
        if pat.is_integer(kind) and wide == np.float64 and kind.bit_width == 64:
            msg = (
                f"has type {first} in one file and {second} in another, and "
                "no type holds the values of both"
            )
            raise TypeMismatchError(msg)
    return pa.from_numpy_dtype(wide)


def tensor_dtype(kind: pa.DataType) -> tf.DType:
    """The TensorFlow type of plain values."""
    if pat.is_binary(kind):
        return tf.string
    return tf.as_dtype(np.dtype(kind.to_pandas_dtype()))


def arrow_type(dtype: tf.DType) -> pa.DataType:
    """The plain Arrow type of a TensorFlow type.

    Raises:
        TypeMismatchError: If Arrow has none.
    """
    if dtype == tf.string:
        return pa.binary()
    try:
        return pa.from_numpy_dtype(np.dtype(dtype.as_numpy_dtype))
    except (pa.ArrowNotImplementedError, TypeError) as error:
        msg = (
            f"is asked for as {dtype.name}, which cannot be read. Read a wider "
            "type and cast it in a transform"
        )
        raise TypeMismatchError(msg) from error


def check_readable(source: pa.DataType, wanted: pa.DataType) -> None:
    """Looks whether plain values may be read as another type.

    Raises:
        TypeMismatchError: If they may not.
    """
    numbers = pat.is_integer, pat.is_floating, pat.is_boolean
    if source == wanted or pat.is_null(source):
        return
    both_numbers = any(is_(source) for is_ in numbers) and any(
        is_(wanted) for is_ in numbers
    )
    narrows = pat.is_floating(source) and not pat.is_floating(wanted)
    if not both_numbers or narrows or pat.is_boolean(wanted):
        msg = f"has type {source}, which is not read as {wanted}"
        raise TypeMismatchError(msg)
