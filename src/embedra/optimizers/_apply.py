"""One step of an optimizer on the rows of a table."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from embedra import _ops, table as table_lib

from ._clip import clip
from ._fused import FusedRule, fused_rule
from ._generic import row_updater
from ._support import check_supported


class StepInputs(NamedTuple):
    """What all tables of a step read from their optimizer.

    Attributes:
        number: The step's, from 1, `int64`, scalar.
        learning_rate: As it is at this step, `float32`, scalar.
    """

    number: tf.Tensor
    learning_rate: tf.Tensor


def step_inputs(optimizer: keras.optimizers.Optimizer) -> StepInputs:
    """Reads what a step on tables needs.

    Args:
        optimizer: The one that makes the step.
    """
    return StepInputs(
        tf.cast(optimizer.iterations, tf.int64) + 1,
        tf.cast(optimizer.learning_rate, tf.float32),
    )


def apply_gradients(
    table: table_lib.Table,
    optimizer: keras.optimizers.Optimizer,
    gradients: tf.IndexedSlices,
    *,
    variable: Any = None,
    scale: Any = None,
    constraint: Any = None,
    inputs: StepInputs | None = None,
) -> None:
    """Makes one step on the touched rows of a table.

    Gradients of a row that is looked up several times are summed first; then
    they are scaled and clipped, and the row and its slots move once. Rows that
    are not touched do not move, not even by weight decay or momentum.

    Hyper-parameters, the learning rate and the iteration are read from the
    optimizer. Its `iterations` are left as they are: `optimizer.apply` counts,
    and so must who calls this directly.

    Args:
        table: The table.
        optimizer: A Keras optimizer, not a `LossScaleOptimizer`.
        gradients: As a tape gives them for a layer's variable: rows of
            gradients, and positions of records in the table.
        variable: The variable whose gradients these are, by which
            `exclude_from_weight_decay` may leave it out.
        scale: Factor of the gradients, or None.
        constraint: Applied to the touched rows afterwards, or None.
        inputs: The optimizer's `step_inputs`, where many tables share them;
            they are read if None.

    Raises:
        UnsupportedOptimizerError: If the optimizer cannot update tables.
    """
    check_supported(optimizer, table.name)
    positions, values = gradients.indices, gradients.values
    if positions.dtype != tf.int64 or values.dtype != tf.float32:
        positions = tf.cast(positions, tf.int64)
        values = tf.cast(values, tf.float32)
    scale = 1.0 if scale is None else scale
    inputs = inputs or step_inputs(optimizer)
    decay = weight_decay_of(optimizer, variable)
    rule = fused_rule(optimizer)
    if rule is not None:
        fused_update(
            [table],
            optimizer,
            rule,
            [positions],
            [values],
            inputs,
            scale,
            decay,
        )
    else:
        unique, sums = _ops.table_deduplicate(
            [table.resource_handle], [positions], [values], dims=[table.dim]
        )
        sums = clip(optimizer, sums[0] * scale)
        row_updater(table, optimizer).update(unique[0], sums, decay)
        _ops.table_set_step(table.resource_handle, inputs.number)
    if constraint is not None:
        touched = tf.unique(positions)[0]
        touched = tf.boolean_mask(touched, touched >= 0)
        constrain_rows(table, touched, constraint)


def fused_update(
    tables: Sequence[table_lib.Table],
    optimizer: keras.optimizers.Optimizer,
    rule: FusedRule,
    positions: Sequence[tf.Tensor],
    values: Sequence[tf.Tensor],
    inputs: StepInputs,
    scale: Any,
    decay: float | None,
) -> None:
    """Makes one step on rows of tables, in one op.

    Args:
        tables: The tables.
        optimizer: Has the limits of gradients.
        rule: The optimizer's `fused_rule`.
        positions: Of records in each table, `int64`, shape `(n,)`.
        values: Gradients of each table's rows, `float32`, shape `(n, dim)`.
        inputs: The optimizer's `step_inputs`.
        scale: Factor of the gradients.
        decay: Weight decay, or None.
    """
    _ops.table_update(
        [table.resource_handle for table in tables],
        positions,
        values,
        learning_rate=inputs.learning_rate,
        step=inputs.number,
        gradient_scale=scale,
        optimizer=rule.name,
        clipnorm=float(optimizer.clipnorm or 0.0),
        clipvalue=float(optimizer.clipvalue or 0.0),
        weight_decay=float(decay or 0.0),
        **rule.hyperparameters,
    )


def weight_decay_of(
    optimizer: keras.optimizers.Optimizer, variable: Any
) -> float | None:
    """Returns an optimizer's weight decay for a variable, or None.

    Args:
        optimizer: The optimizer.
        variable: The variable, or None if it is not known.
    """
    if optimizer.weight_decay is None:
        return None
    if variable is not None and not optimizer._use_weight_decay(variable):
        return None
    return float(optimizer.weight_decay)


def constrain_rows(
    table: table_lib.Table, positions: tf.Tensor, constraint: Any
) -> Any:
    """Applies a Keras constraint to rows, as a matrix of them.

    Args:
        table: The table.
        positions: Positions of the rows, unique, `int64`, shape `(n,)`.
        constraint: The constraint.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    rows, _ = _ops.table_read_records(
        table.resource_handle, positions, dim=table.dim
    )
    rows = tf.convert_to_tensor(constraint(rows))
    return _ops.table_write_records(
        table.resource_handle, positions, rows, dim=table.dim
    )
