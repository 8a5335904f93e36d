"""Clipping of gradients by what optimizers cannot do themselves."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from embedra import _ops, table as table_lib


TablePart = tuple[table_lib.Table, tf.IndexedSlices]


def clip_over_tables(optimizer: Any, parts: list[TablePart]) -> list[TablePart]:
    """Applies an optimizer's `clipnorm` to the tables of a variable together.

    Each update clips the gradient of its table by itself, as far as this rank
    has it. It has nothing left to do after this.

    Args:
        optimizer: Makes the updates.
        parts: The tables of one variable and their gradients.

    Returns:
        The same, shortened if their common norm is longer than `clipnorm`.
    """
    split = any(table.communicator is not None for table, _ in parts)
    if not optimizer.clipnorm or (len(parts) == 1 and not split):
        return parts
    parts = sum_repeats(parts)
    factor = shortening(optimizer, optimizer.clipnorm, parts)
    return [(table, scaled(slices, factor)) for table, slices in parts]


def clip_jointly(
    optimizer: Any, tables: list[Any], dense: list[Any]
) -> tuple[list[Any], list[Any]]:
    """Applies an optimizer's `global_clipnorm` to all gradients of a step.

    Args:
        optimizer: Makes the step.
        tables: Gradients of tables.
        dense: Other gradients, and their variables.

    Returns:
        The same, scaled by the norm over all of them.
    """
    tables = deduplicated(tables)
    # Keras clips the dense gradients once more, by which they, now shorter
    # than the limit, are not changed.
    factor = shortening(
        optimizer,
        optimizer.global_clipnorm,
        [(g.table, g.slices) for g in tables],
        [values_of(grad) for grad, _ in dense if grad is not None],
    )
    return (
        [g._replace(slices=scaled(g.slices, factor)) for g in tables],
        [(g if g is None else scaled(g, factor), v) for g, v in dense],
    )


def shortening(
    optimizer: Any,
    limit: float,
    tables: list[TablePart],
    dense: Sequence[tf.Tensor] = (),
) -> tf.Tensor:
    """Returns the factor by which gradients together get no longer than asked.

    Args:
        optimizer: Whose gradients they are; they may be scaled with the loss.
        limit: Largest norm of all of them.
        tables: Tables and their gradients, repeated rows summed. Of a table
            that is split over ranks, all ranks' parts count.
        dense: Other gradients.

    Returns:
        A scalar, 1 at most.
    """
    whole = list(dense)
    split: list[tf.Tensor] = []
    for table, slices in tables:
        (whole if table.communicator is None else split).append(slices.values)
    norm = tf.linalg.global_norm(whole) if whole else tf.constant(0.0)
    if split:
        communicator = next(
            table.communicator for table, _ in tables if table.communicator
        )
        square = communicator.all_reduce(
            tf.square(tf.linalg.global_norm(split)), label="norm of gradients"
        )
        norm = tf.sqrt(square + tf.square(tf.cast(norm, square.dtype)))
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
    ((_, slices),) = clip_over_tables(
        optimizer, [(gradient.table, gradient.slices)]
    )
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
