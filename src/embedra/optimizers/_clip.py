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
    parts = sum_repeats(parts)
    sums = [slices.values for _, slices in parts]
    factor = shortening(optimizer, optimizer.clipnorm, sums)
    return [(table, scaled(slices, factor)) for table, slices in parts]


def shortening(optimizer: Any, limit: float, values: list[Any]) -> tf.Tensor:
    """Returns the factor by which gradients together get no longer than asked.

    Args:
        optimizer: Whose gradients they are; they may be scaled with the loss.
        limit: Largest norm of all of them.
        values: The gradients, repeated rows summed.

    Returns:
        A scalar, 1 at most.
    """
    norm = tf.linalg.global_norm(values)
    if optimizer.loss_scale_factor is not None:
        norm /= optimizer.loss_scale_factor
    return limit / tf.maximum(norm, limit)


def clip(optimizer: Any, sums: tf.Tensor, scale: float = 1.0) -> tf.Tensor:
    """Applies an optimizer's limits to a gradient: by norm, then by value.

    Args:
        optimizer: Has the limits.
        sums: The gradient, repeated rows summed.
        scale: Factor that the gradient still has.

    Returns:
        The same, clipped.
    """
    if optimizer.clipnorm:
        sums = tf.clip_by_norm(sums, optimizer.clipnorm * scale)
    if optimizer.clipvalue:
        limit = optimizer.clipvalue * scale
        sums = tf.clip_by_value(sums, -limit, limit)
    return sums


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
    scale = optimizer.loss_scale_factor or 1.0
    values = clip(optimizer, slices.values, scale)
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
    parts = sum_repeats([(g.table, g.slices) for g in gradients])
    return [
        g._replace(slices=slices)
        for g, (_, slices) in zip(gradients, parts, strict=True)
    ]


def sum_repeats(parts: list[TablePart]) -> list[TablePart]:
    """Sums the gradients of equal rows, for all tables in one op.

    Args:
        parts: Tables, at least one, and their gradients.

    Returns:
        The same, each row once.
    """
    unique, sums = _ops.table_deduplicate(
        [table.resource_handle for table, _ in parts],
        [slices.indices for _, slices in parts],
        [tf.cast(slices.values, tf.float32) for _, slices in parts],
        dims=[table.dim for table, _ in parts],
    )
    return [
        (table, tf.IndexedSlices(values, indices))
        for (table, _), indices, values in zip(parts, unique, sums, strict=True)
    ]
