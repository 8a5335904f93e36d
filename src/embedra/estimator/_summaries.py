"""Writes and reads numbers in events files."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf


v1: Any = tf.compat.v1


def write_summary(folder: str, values: Mapping[str, Any], step: int) -> None:
    """Writes the numbers among some values for TensorBoard.

    Args:
        folder: Folder of the events file.
        values: Values by name. Others than numbers are left out.
        step: Which step they are of.
    """
    summary = v1.Summary()
    for name, value in values.items():
        if is_number(value):
            summary.value.add(tag=name, simple_value=float(value))
    # Writers of this kind are not made where TensorFlow is eager.
    with tf.Graph().as_default():
        writer = v1.summary.FileWriterCache.get(folder)
    writer.add_summary(summary, step)
    writer.flush()


def is_number(value: Any) -> bool:
    """Whether a value of a metric is one number.

    Args:
        value: The value.
    """
    array = np.asarray(value)
    return array.ndim == 0 and np.issubdtype(array.dtype, np.number)


def read_summaries(folder: str) -> dict[int, dict[str, float]]:
    """Reads all numbers from the events files of a folder.

    Args:
        folder: The folder. It need not exist.

    Returns:
        Numbers by name, by step, in the order of steps.
    """
    found: dict[int, dict[str, float]] = {}
    pattern = f"{folder}/*.tfevents.*"
    for path in sorted(tf.io.gfile.glob(pattern)):
        for event in v1.train.summary_iterator(path):
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    values = found.setdefault(event.step, {})
                    values[value.tag] = value.simple_value
    return dict(sorted(found.items()))
