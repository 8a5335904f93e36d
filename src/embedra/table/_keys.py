"""Keys: how ids of any kind become the `int64` keys of a table."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf


# Strings are hashed into [0, STRING_HASH_BUCKETS): a fixed, documented
# function, so that files, processes and releases agree.
STRING_HASH_BUCKETS = 2**63 - 1

KEY_DTYPES = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "string",
)


class KeyDtypeError(TypeError, NotImplementedError):
    """Ids have a dtype that cannot be used as keys.

    It is a `NotImplementedError` too, since that is how Keras is told that the
    symbolic shape inference of a layer does not apply: a `Sequential` model
    without an `Input` guesses a float input, and then waits for real data.
    """

    # By this autograph knows that it may raise it anew with a longer message;
    # in functions it would be another error otherwise.
    __init__: Any = Exception.__init__


def check_key_dtype(dtype: Any, owner: str) -> None:
    """Raises unless ids of `dtype` can be keys.

    Args:
        dtype: Dtype of the ids: a name, a NumPy or a TensorFlow dtype.
        owner: Who asks, for the message, e.g. "Table 'user'".

    Raises:
        KeyDtypeError: If `dtype` is bool, floating or complex.
    """
    name = tf.as_dtype(dtype).name
    if name in KEY_DTYPES:
        return
    if name == "bool":
        remedy = 'Cast them, e.g. with tf.cast(ids, "int64").'
    else:
        remedy = (
            "Floats lose ids above 2^24. Give the ids an integer dtype, e.g. "
            'keras.Input(shape, dtype="int64") or tf.cast(ids, "int64").'
        )
    msg = (
        f"{owner} needs integer or string ids. Received: ids of dtype "
        f"{name}. {remedy}"
    )
    raise KeyDtypeError(msg)


def to_tensor(ids: Any, owner: str = "The table") -> Any:
    """Converts ids to a tensor of their own dtype, and checks that dtype.

    Args:
        ids: Integers of any width, or strings: a tensor, a ragged or sparse
            tensor, a symbolic Keras tensor, a NumPy array, a number or a
            nested list.
        owner: Who asks, for messages.

    Returns:
        The ids; tensors are handed through.

    Raises:
        KeyDtypeError: If ids are bool, floating or complex.
        OverflowError: If an integer has no 64-bit representation.
    """
    if not hasattr(ids, "dtype"):
        ids = _array_of(ids, owner)
    if isinstance(ids, np.ndarray | np.generic):
        if ids.dtype.kind in "OSU":
            ids = tf.constant(np.asarray(ids, dtype=object), dtype=tf.string)
        else:
            check_key_dtype(ids.dtype, owner)
            ids = tf.constant(ids)
    check_key_dtype(ids.dtype, owner)
    return ids


def to_keys(ids: Any, owner: str = "The table") -> tf.Tensor:
    """Converts dense ids to keys.

    Integers are widened to `int64`. `uint64` is taken bit for bit, in two's
    complement: ids below 2^63 are the same key as their signed form, and
    2^64 - 1 is key -1. Strings become
    `tf.strings.to_hash_bucket_fast(ids, 2**63 - 1)`.

    Args:
        ids: See `to_tensor`; not ragged or sparse.
        owner: Who asks, for messages.

    Returns:
        Keys, `int64`, with the shape of `ids`.

    Raises:
        KeyDtypeError: If ids are bool, floating or complex.

    Example:
        >>> import numpy as np
        >>> to_keys(np.array([5, 2**64 - 1], np.uint64)).numpy().tolist()
        [5, -1]
    """
    ids = to_tensor(ids, owner)
    if ids.dtype == tf.int64:
        return ids
    if ids.dtype == tf.string:
        return tf.strings.to_hash_bucket_fast(ids, STRING_HASH_BUCKETS)
    if ids.dtype == tf.uint64:
        return tf.bitcast(ids, tf.int64)
    return tf.cast(ids, tf.int64)


def _array_of(ids: Any, owner: str) -> Any:
    """Returns numbers and nested lists as an array that loses nothing."""
    if not isinstance(ids, list | tuple | int | str | bytes | float | bool):
        return tf.convert_to_tensor(ids)
    leaves = list(_leaves(ids))
    if any(hasattr(leaf, "dtype") for leaf in leaves):
        return tf.convert_to_tensor(ids)
    if not leaves:
        return np.asarray(ids).astype(np.int64)
    if all(isinstance(leaf, str | bytes) for leaf in leaves):
        return np.asarray(ids, dtype=object)
    if not all(type(leaf) is int for leaf in leaves):
        return np.asarray(ids)
    low, high = min(leaves), max(leaves)
    if low >= -(2**63) and high < 2**63:
        return np.asarray(ids, dtype=np.int64)
    if low >= 0 and high < 2**64:
        return np.asarray(ids, dtype=np.uint64)
    msg = (
        f"{owner} needs ids that fit in 64 bits, all signed or all unsigned. "
        f"Received: integers from {low} to {high}."
    )
    raise OverflowError(msg)


def _leaves(nested: Any) -> Iterator[Any]:
    """Yields the leaves of a nested list."""
    if isinstance(nested, list | tuple):
        for item in nested:
            yield from _leaves(item)
    else:
        yield nested
