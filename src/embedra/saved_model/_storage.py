"""How rows are stored in a SavedModel: as they are, or smaller."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf


Array = npt.NDArray[Any]

QUANTIZATIONS = (None, "float16", "int8")


class StoredRows(NamedTuple):
    """Rows as they are stored.

    Attributes:
        rows: Shape `(n, dim)`.
        scales: What the rows are to be multiplied by, `float32`, shape `(n,)`;
            None where they are not scaled.
    """

    rows: Array
    scales: Array | None


def stored_dtype(dtype: str, quantize: str | None) -> str:
    """Returns the dtype that rows are stored in.

    Args:
        dtype: Dtype of the rows.
        quantize: None, "float16" or "int8".
    """
    return dtype if quantize is None else quantize


def file_dtype(dtype: str) -> str:
    """Returns the dtype that stored rows have in files.

    TensorFlow does not read slices of 16-bit floats: their bits are kept.

    Args:
        dtype: Dtype that rows are stored in.
    """
    return "int16" if dtype in ("float16", "bfloat16") else dtype


def store(rows: Array, quantize: str | None) -> StoredRows:
    """Converts rows to what is stored.

    Args:
        rows: Rows, shape `(n, dim)`.
        quantize: None; "float16", in which larger numbers become the largest
            one; or "int8", with a scale for each row.

    Returns:
        What is stored.
    """
    if quantize is None:
        return StoredRows(rows, None)
    rows = rows.astype(np.float32)
    if quantize == "float16":
        most = np.finfo(np.float16).max
        return StoredRows(rows.clip(-most, most).astype(np.float16), None)
    scales = np.abs(rows).max(axis=1) / np.float32(127)
    divisors = np.where(scales > 0, scales, 1)[:, np.newaxis]
    return StoredRows(np.rint(rows / divisors).astype(np.int8), scales)


def as_rows(
    stored: tf.Tensor, scales: tf.Tensor | None, dtype: str, stored_as: str
) -> Any:
    """Converts what is stored back to rows.

    Args:
        stored: Stored rows as in files, shape `(n, dim)`.
        scales: Their scales, or None.
        dtype: Dtype of the rows.
        stored_as: Dtype that they are stored in.

    Returns:
        Rows.
    """
    if scales is None:
        return tf.cast(tf.bitcast(stored, stored_as), dtype)
    scaled = tf.cast(stored, tf.float32) * scales[:, tf.newaxis]
    return tf.cast(scaled, dtype)


class StorageError:
    """Sums up how far stored rows are from the rows.

    Attributes:
        largest: The largest difference of an element.
    """

    def __init__(self) -> None:
        self.largest = 0.0
        self._squares = 0.0
        self._count = 0

    def add(self, rows: Array, stored: StoredRows) -> None:
        """Takes in a chunk of rows.

        Args:
            rows: The rows.
            stored: The same as stored.
        """
        if rows is stored.rows or not rows.size:
            return
        back = stored.rows.astype(np.float32)
        if stored.scales is not None:
            back *= stored.scales[:, np.newaxis]
        differences = np.abs(rows.astype(np.float32) - back)
        self.largest = max(self.largest, float(differences.max()))
        self._squares += float(np.square(differences, dtype=np.float64).sum())
        self._count += differences.size

    @property
    def root_mean_square(self) -> float:
        """The root of the mean of the squared differences."""
        return float(np.sqrt(self._squares / max(self._count, 1)))
