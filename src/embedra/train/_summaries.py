"""Writes numbers for TensorBoard."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf


_V1: Any = tf.compat.v1


def write_summary(folder: str, values: Mapping[str, Any], step: int) -> None:
    """Writes the numbers among some values to the events file of a folder.

    Args:
        folder: The folder.
        values: Values by name. Others than numbers are left out.
        step: Which step they are of.
    """
    summary = _V1.Summary()
    for name, value in values.items():
        if is_number(value):
            summary.value.add(tag=name, simple_value=float(value))
    # Writers of this kind are not made where TensorFlow is eager.
    with tf.Graph().as_default():
        writer = _V1.summary.FileWriterCache.get(folder)
    writer.add_summary(summary, step)
    writer.flush()


def is_number(value: Any) -> bool:
    """Whether a value of a metric is one number.

    Args:
        value: The value.
    """
    array = np.asarray(value)
    return array.ndim == 0 and np.issubdtype(array.dtype, np.number)
