"""update_together: one op for the updates of many tables."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ._apply import StepInputs, fused_update, weight_decay_of
from ._fused import fused_rule
from ._support import check_supported
from ._trained_tables import TableGradient


def update_together(
    optimizer: Any, gradients: Sequence[TableGradient], inputs: StepInputs
) -> list[TableGradient]:
    """Makes a step on all tables that one op can make it on.

    Each gets what `TableVariable.update_all` would do to it; the threads that
    the op has are shared out among the tables.

    Args:
        optimizer: The model's.
        gradients: Of tables, one each.
        inputs: Its `step_inputs`.

    Returns:
        The gradients of tables that are still to be stepped.
    """
    rule = fused_rule(optimizer)
    if rule is None:
        return list(gradients)
    left = []
    batches: dict[tuple[str, float | None], list[TableGradient]] = {}
    for gradient in gradients:
        if not _is_plain(gradient, optimizer):
            left.append(gradient)
            continue
        check_supported(optimizer, gradient.table.name)
        device = gradient.table.resource_handle.device
        decay = weight_decay_of(optimizer, gradient.variable)
        batches.setdefault((device, decay), []).append(gradient)
    loss_scale = optimizer.loss_scale_factor
    for (_, decay), batch in batches.items():
        fused_update(
            [gradient.table for gradient in batch],
            optimizer,
            rule,
            [tf.cast(g.slices.indices, tf.int64) for g in batch],
            [tf.cast(g.slices.values, tf.float32) for g in batch],
            inputs,
            1.0 if loss_scale is None else 1.0 / loss_scale,
            decay,
        )
    return left


def _is_plain(gradient: TableGradient, optimizer: Any) -> bool:
    """Whether nothing but the optimizer has a say in the update."""
    variable, table = gradient.variable, gradient.table
    limits_are_own = len(variable.tables) == 1 and table.communicator is None
    return (
        variable.optimizer is None
        and variable.row_constraint is None
        and (limits_are_own or not optimizer.clipnorm)
    )
