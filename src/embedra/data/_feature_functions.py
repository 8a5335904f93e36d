"""What is often made of raw columns, as functions of tensors.

They go into `Field(transform=...)`, or into `tf.data.Dataset.map`. None needs
a vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ._string_ids import hash_tensor


# Between two parts of a cross; in no UTF-8 text.
_BETWEEN = b"\xff"


def hash_strings(values: Any) -> Any:
    """Hashes strings to ids, by the function of `string_ids`.

    A table hashes strings in the same way, so a string and its id find the
    same row.

    Args:
        values: Strings: dense, ragged or sparse.

    Returns:
        Ids in `[0, 2**63 - 1)`, int64, of the same shape.

    Example:
        >>> hash_strings(tf.constant(["68fd1e64"])).numpy().tolist()
        [7920289447977470598]
    """
    return _on_values(hash_tensor, values)


def log_scale(values: Any) -> Any:
    """Logarithm of 1 plus the size of numbers, with their sign, as float32.

    Args:
        values: Numbers: dense, ragged or sparse.

    Example:
        >>> log_scale(tf.constant([0.0, 1.0, -1.0])).numpy().tolist()
        [0.0, 0.693..., -0.693...]
    """

    def scale(numbers: tf.Tensor) -> tf.Tensor:
        numbers = tf.cast(numbers, tf.float32)
        return tf.sign(numbers) * tf.math.log1p(tf.abs(numbers))

    return _on_values(scale, values)


def standard_scale(mean: float, deviation: float) -> Callable[[Any], Any]:
    """A function that takes numbers to `(x - mean) / deviation`, as float32.

    Args:
        mean: Mean of the column.
        deviation: Its standard deviation, above 0.

    Raises:
        ValueError: If the deviation is not positive.

    Example:
        >>> standard_scale(2.0, 4.0)(tf.constant([4])).numpy().tolist()
        [0.5]
    """
    if not deviation > 0:
        msg = f"A standard deviation is above 0. Received: {deviation}."
        raise ValueError(msg)

    def scale(numbers: tf.Tensor) -> tf.Tensor:
        return (tf.cast(numbers, tf.float32) - mean) / deviation

    return lambda values: _on_values(scale, values)


def bucket(boundaries: Sequence[float]) -> Callable[[Any], Any]:
    """A function that takes numbers to the place of their bucket, as int64.

    Args:
        boundaries: Where buckets meet, in rising order; `n` of them make
            `n + 1` buckets. A boundary belongs to the bucket above it.

    Raises:
        ValueError: If they do not rise.

    Example:
        >>> bucket([0, 10])(tf.constant([-1, 0, 9, 10])).numpy().tolist()
        [0, 1, 1, 2]
    """
    edges = [float(edge) for edge in boundaries]
    if not edges or any(a >= b for a, b in zip(edges, edges[1:], strict=False)):
        msg = f"Boundaries rise. Received: {list(boundaries)}."
        raise ValueError(msg)

    def place(numbers: tf.Tensor) -> tf.Tensor:
        flat = tf.reshape(tf.cast(numbers, tf.float64), [-1])
        found = tf.searchsorted(
            tf.constant(edges, tf.float64), flat, "right", tf.int64
        )
        return tf.reshape(found, tf.shape(numbers))

    return lambda values: _on_values(place, values)


def cross(*columns: tf.Tensor) -> tf.Tensor:
    """One id for each combination of values, the order of columns counts.

    Args:
        *columns: Two or more dense tensors of one shape, integers or strings.

    Returns:
        Ids in `[0, 2**63 - 1)`, int64: the hash, as of `hash_strings`, of the
        values written as text and joined by the byte `0xFF`.

    Raises:
        ValueError: If there are fewer than two columns.

    Example:
        >>> ids = cross(tf.constant([1, 1]), tf.constant(["a", "b"]))
        >>> ids.shape
        TensorShape([2])
    """
    if len(columns) < 2:
        msg = f"A cross is of two or more columns. Received: {len(columns)}."
        raise ValueError(msg)
    texts = [
        one if one.dtype == tf.string else tf.strings.as_string(one)
        for one in map(tf.convert_to_tensor, columns)
    ]
    return hash_tensor(tf.strings.join(texts, _BETWEEN))


def _on_values(change: Callable[[tf.Tensor], tf.Tensor], values: Any) -> Any:
    if isinstance(values, tf.RaggedTensor):
        return values.with_flat_values(change(values.flat_values))
    if isinstance(values, tf.SparseTensor):
        return values.with_values(change(values.values))
    return change(tf.convert_to_tensor(values))
