"""Clipping of the gradient of a variable that is spread over several tables."""

from typing import Any

import tensorflow as tf

from embedra import _ops, table as table_lib


TablePart = tuple[table_lib.Table, tf.IndexedSlices]


def clip_over_tables(optimizer: Any, parts: list[TablePart]) -> list[TablePart]:
    """Applies an optimizer's `clipnorm` to the tables of a variable together.

    Each update clips the gradient of its table by itself. It has nothing left
    to do after this.

    Args:
        optimizer: Makes the updates.
        parts: The tables of one variable and their gradients.

    Returns:
        The same, shortened if their common norm is longer than `clipnorm`.
    """
    if not optimizer.clipnorm or len(parts) == 1:
        return parts
    unique, sums = _ops.table_deduplicate(
        [table.resource_handle for table, _ in parts],
        [slices.indices for _, slices in parts],
        [tf.cast(slices.values, tf.float32) for _, slices in parts],
        dims=[table.dim for table, _ in parts],
    )
    norm = tf.linalg.global_norm(sums)
    if optimizer.loss_scale_factor is not None:
        norm /= optimizer.loss_scale_factor
    factor = optimizer.clipnorm / tf.maximum(norm, optimizer.clipnorm)
    return [
        (table, tf.IndexedSlices(values * factor, indices))
        for (table, _), indices, values in zip(parts, unique, sums, strict=True)
    ]
