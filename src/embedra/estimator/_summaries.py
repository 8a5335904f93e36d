"""Reads numbers from events files."""

from typing import Any

import tensorflow as tf


v1: Any = tf.compat.v1


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
