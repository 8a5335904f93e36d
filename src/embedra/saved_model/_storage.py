"""How rows are stored in a SavedModel: as they are, or smaller."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import tensorflow as tf


Array = npt.NDArray[Any]

QUANTIZATIONS = (None, "float16", "int8")

# Records are stored as 64-bit integers, of which the first is the key.
_WORD = 8


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


def record_words(dim: int, stored_as: str) -> int:
    """Returns how many 64-bit words a record has.

    Args:
        dim: Width of a row.
        stored_as: Dtype that rows are stored in.
    """
    size: int = dim * tf.as_dtype(stored_as).size + _scale_bytes(stored_as)
    return 1 - -size // _WORD


def _scale_bytes(stored_as: str) -> int:
    return 4 if stored_as == "int8" else 0


def store(rows: Array, quantize: str | None) -> StoredRows:
    """Converts rows to what is stored.

    Args:
        rows: Rows, shape `(n, dim)`.
        quantize: None; "float16", in which larger numbers become the largest
            one; or "int8", with a scale for each row, where a row with numbers
            that are not finite reads as NaN.

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
    usable = (scales > 0) & np.isfinite(scales)
    divisors = np.where(usable, scales, np.inf)[:, np.newaxis]
    with np.errstate(invalid="ignore"):
        steps = np.nan_to_num(np.rint(rows / divisors)).clip(-127, 127)
    return StoredRows(steps.astype(np.int8), scales)


def pack(keys: Array, stored: StoredRows) -> Array:
    """Puts keys and stored rows together.

    Args:
        keys: Keys, shape `(n,)`.
        stored: What is stored, of as many rows.

    Returns:
        Records, `int64`, shape `(n, record_words(...))`: the key, then the
        bytes of the scale if there are scales, then those of the row, then
        zeros up to a whole word.
    """
    count, dim = stored.rows.shape
    words = record_words(dim, stored.rows.dtype.name)
    records = np.zeros((count, words), np.int64)
    records[:, 0] = keys
    parts = [stored.rows.view(np.uint8)]
    if stored.scales is not None:
        parts.insert(0, stored.scales[:, np.newaxis].view(np.uint8))
    content = records.view(np.uint8)
    start = _WORD
    for part in parts:
        content[:, start : start + part.shape[1]] = part
        start += part.shape[1]
    return records


def unpack(records: tf.Tensor, dim: int, stored_as: str, dtype: str) -> Any:
    """Takes the rows out of records.

    Args:
        records: Records, shape `(n, record_words(dim, stored_as))`.
        dim: Width of a row.
        stored_as: Dtype that rows are stored in.
        dtype: Dtype of the rows.

    Returns:
        Rows, shape `(n, dim)`.
    """
    skipped = _scale_bytes(stored_as)
    per_word = _WORD // tf.as_dtype(stored_as).size
    width = (record_words(dim, stored_as) - 1) * per_word
    # tf.slice is faster than brackets, which make a strided slice.
    words = tf.slice(records, (0, 1), (-1, -1))
    stored = tf.reshape(tf.bitcast(words, stored_as), (-1, width))
    if width > dim:
        stored = tf.slice(stored, (0, skipped), (-1, dim))
    if not skipped:
        return tf.cast(stored, dtype)
    scales = tf.bitcast(words[:, 0], tf.float32)[:, :1]
    return tf.cast(tf.cast(stored, tf.float32) * scales, dtype)


class StorageError:
    """Sums up how far stored rows are from the rows, where both are finite.

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
        with np.errstate(invalid="ignore"):
            if stored.scales is not None:
                back *= stored.scales[:, np.newaxis]
            differences = np.abs(rows.astype(np.float32) - back)
        differences = differences[np.isfinite(differences)]
        if not differences.size:
            return
        self.largest = max(self.largest, float(differences.max()))
        self._squares += float(np.square(differences, dtype=np.float64).sum())
        self._count += differences.size

    @property
    def root_mean_square(self) -> float:
        """The root of the mean of the squared differences."""
        return float(np.sqrt(self._squares / max(self._count, 1)))
