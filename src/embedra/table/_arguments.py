"""Checks of what people pass to a table."""

from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from ._keys import KEY_DTYPES, KeyDtypeError, check_key_dtype


_ROW_DTYPES = ("float32", "bfloat16", "float16")


class _Named(Protocol):
    """What messages tell of a table."""

    name: str
    dim: int


def check_ids(key_dtype: str, ids: Any, owner: str) -> None:
    """Raises unless ids suit a table's `key_dtype`.

    Args:
        key_dtype: The table's.
        ids: Ids with a `dtype`.
        owner: Who asks, for the message.

    Raises:
        KeyDtypeError: If they do not.
    """
    check_key_dtype(ids.dtype, owner)
    if key_dtype == "string" and tf.as_dtype(ids.dtype) != tf.string:
        msg = (
            f"{owner} has key_dtype='string'. Received: ids of dtype "
            f"{tf.as_dtype(ids.dtype).name}. Hashed strings and integers would "
            "share keys: pass strings, or use an integer `key_dtype`."
        )
        raise KeyDtypeError(msg)


def checked_dim(dim: Any, name: str) -> int:
    """Returns the width of a row, or raises ValueError."""
    if (
        isinstance(dim, bool)
        or not isinstance(dim, int | np.integer)
        or dim < 1
    ):
        msg = (
            f"`dim` of table {name!r} must be a positive integer. Received: "
            f"{dim!r}"
        )
        raise ValueError(msg)
    return int(dim)


def checked_dtype(dtype: Any, name: str) -> str:
    """Returns the name of a row dtype, or raises ValueError."""
    if tf.as_dtype(dtype).name not in _ROW_DTYPES:
        msg = (
            f"`dtype` of table {name!r} must be one of {_ROW_DTYPES}. "
            f"Received: {dtype!r}"
        )
        raise ValueError(msg)
    return str(tf.as_dtype(dtype).name)


def checked_key_dtype(key_dtype: Any, name: str) -> str:
    """Returns the name of a key dtype, or raises ValueError."""
    dtype = tf.as_dtype(key_dtype).name
    if dtype not in KEY_DTYPES:
        msg = (
            f"`key_dtype` of table {name!r} must be one of {KEY_DTYPES}. "
            f"Received: {key_dtype!r}"
        )
        raise ValueError(msg)
    return str(dtype)


def checked_rows(
    table: _Named, keys: tf.Tensor, rows: tf.Tensor, what: str
) -> tf.Tensor:
    """Returns rows for flat keys, or raises ValueError.

    Args:
        table: Where they go.
        keys: Keys, any shape.
        rows: Rows, shape `keys.shape + (dim,)`.
        what: Name of the argument.

    Returns:
        Rows, shape `(n, dim)`.
    """
    expected = keys.shape.concatenate([table.dim])
    if not rows.shape.is_compatible_with(expected):
        msg = (
            f"`{what}` of table {table.name!r} must have shape "
            f"{tuple(expected)}, the keys' shape and the width of a row. "
            f"Received: {tuple(rows.shape)}."
        )
        raise ValueError(msg)
    return tf.reshape(rows, (-1, table.dim))
