"""Clipping of gradients by what optimizers cannot do themselves."""

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


def set_clip_limits(
    optimizer: Any, clipnorm: float | None, clipvalue: float | None
) -> None:
    """Has an optimizer that knows of tables clip all gradients.

    The gradient of each variable, and of each table with repeated rows summed,
    is clipped by its norm and then by value; also where a table has an
    optimizer of its own.

    Args:
        optimizer: Of `DynamicEmbeddingOptimizer`; it is changed.
        clipnorm: Largest norm, or None.
        clipvalue: Largest absolute value of an element, or None.
    """
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    # Past the tracking of attributes.
    optimizer.__dict__.update(
        clipnorm=clipnorm, clipvalue=clipvalue, clips_all=True
    )


def clip_limits(optimizer: Any) -> list[float | None] | None:
    """Returns what `set_clip_limits` set, or None.

    Args:
        optimizer: The optimizer.
    """
    if not vars(optimizer).get("clips_all"):
        return None
    return [optimizer.clipnorm, optimizer.clipvalue]


def clipped_before(optimizer: Any, gradients: list[Any]) -> list[Any]:
    """Clips gradients that another optimizer makes steps by.

    Args:
        optimizer: The model's.
        gradients: Of tables. Those that the optimizer itself makes steps by
            are clipped by the kernel, and left as they are.

    Returns:
        The same, clipped where it needs to be.
    """
    return [
        g if g.variable.optimizer is None else _clipped(optimizer, g)
        for g in gradients
    ]


def _clipped(optimizer: Any, gradient: Any) -> Any:
    (gradient,) = deduplicated([gradient])
    slices = gradient.slices
    values = slices.values
    scale = optimizer.loss_scale_factor or 1.0
    if optimizer.clipnorm:
        values = tf.clip_by_norm(values, optimizer.clipnorm * scale)
    if optimizer.clipvalue:
        limit = optimizer.clipvalue * scale
        values = tf.clip_by_value(values, -limit, limit)
    return gradient._replace(slices=tf.IndexedSlices(values, slices.indices))


def values_of(grad: Any) -> Any:
    """Returns the values of a gradient, of slices or dense."""
    return grad.values if isinstance(grad, tf.IndexedSlices) else grad


def scaled(grad: Any, factor: tf.Tensor) -> Any:
    """Returns a gradient, of slices or dense, times a factor."""
    values = values_of(grad) * tf.cast(factor, grad.dtype)
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(values, grad.indices, grad.dense_shape)
    return values


def deduplicated(gradients: list[Any]) -> list[Any]:
    """Sums the gradients of equal rows, for all tables in one op."""
    if not gradients:
        return []
    unique, sums = _ops.table_deduplicate(
        [g.table.resource_handle for g in gradients],
        [g.slices.indices for g in gradients],
        [tf.cast(g.slices.values, tf.float32) for g in gradients],
        dims=[g.table.dim for g in gradients],
    )
    return [
        g._replace(slices=tf.IndexedSlices(values, indices))
        for g, indices, values in zip(gradients, unique, sums, strict=True)
    ]
