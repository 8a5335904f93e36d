"""Ops that apply gradients, or gather them for a later step."""

from collections.abc import Sequence

from embedra._typing import Operation, Tensor

from ._library import native_ops


def table_update(
    tables: Sequence[Tensor],
    positions: Sequence[Tensor],
    grads: Sequence[Tensor],
    learning_rate: Tensor,
    step: Tensor,
    gradient_scale: Tensor = 1.0,
    *,
    optimizer: str,
    momentum: float = 0.0,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    rho: float = 0.9,
    epsilon: float = 1e-7,
    initial_accumulator: float = 0.0,
    learning_rate_power: float = -0.5,
    l1: float = 0.0,
    l2: float = 0.0,
    l2_shrinkage: float = 0.0,
    beta: float = 0.0,
    clipnorm: float = 0.0,
    clipvalue: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    amsgrad: bool = False,
    centered: bool = False,
) -> Operation:
    """Steps an optimizer on the rows at `positions`.

    Gradients of equal positions are summed first, then scaled, then clipped by
    norm (over all rows of a table), then by value; each row is stepped once.
    Negative positions, and those whose record is gone, are skipped. The clock
    of each table is set to `step`.

    Args:
        tables: Table handles.
        positions: Positions, `int64`, shape `(n,)`.
        grads: Gradients, `float32`, shape `(n, dim)`.
        learning_rate: Scalar, `float32`.
        step: Scalar, `int64`; 1 for the first update.
        gradient_scale: Scalar, `float32`; multiplies the summed gradients.
        optimizer: "sgd", "momentum", "adagrad", "rowwise_adagrad", "adam",
            "ftrl" or "rmsprop". The rest is named as in the Keras optimizer.
        momentum: Momentum and RMSprop.
        beta_1: Adam.
        beta_2: Adam.
        rho: RMSprop.
        epsilon: All but SGD, momentum and Ftrl.
        initial_accumulator: Start value of accumulators: Adagrad and Ftrl.
        learning_rate_power: Ftrl.
        l1: Ftrl.
        l2: Ftrl.
        l2_shrinkage: Ftrl.
        beta: Ftrl.
        clipnorm: Largest norm of a table's gradients; 0 for none.
        clipvalue: Largest magnitude of an element; 0 for none.
        weight_decay: Decoupled: rows lose this times `learning_rate`.
        nesterov: Momentum.
        amsgrad: Adam.
        centered: RMSprop.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return native_ops.embedra_table_update(
        tables=list(tables),
        positions=list(positions),
        grads=list(grads),
        learning_rate=learning_rate,
        step=step,
        gradient_scale=gradient_scale,
        optimizer=optimizer,
        momentum=momentum,
        beta_1=beta_1,
        beta_2=beta_2,
        rho=rho,
        epsilon=epsilon,
        initial_accumulator=initial_accumulator,
        learning_rate_power=learning_rate_power,
        l1=l1,
        l2=l2,
        l2_shrinkage=l2_shrinkage,
        beta=beta,
        clipnorm=clipnorm,
        clipvalue=clipvalue,
        weight_decay=weight_decay,
        nesterov=nesterov,
        amsgrad=amsgrad,
        centered=centered,
    )


def table_deduplicate(
    tables: Sequence[Tensor],
    positions: Sequence[Tensor],
    grads: Sequence[Tensor],
    *,
    dims: Sequence[int],
) -> tuple[list[Tensor], list[Tensor]]:
    """Sums gradients of equal positions.

    Args:
        tables: Table handles.
        positions: Positions, `int64`, shape `(n,)`. Negative ones, and those
            whose record is gone, are left out.
        grads: Gradients, `float32`, shape `(n, dim)`.
        dims: Widths of the rows.

    Returns:
        Unique positions in order of first appearance, `int64`, shape `(u,)`,
        and sums, `float32`, shape `(u, dim)`.
    """
    outputs = native_ops.embedra_table_deduplicate(
        tables=list(tables),
        positions=list(positions),
        grads=list(grads),
        dims=list(dims),
    )
    return outputs.unique, outputs.sums


def table_accumulate_gradients(
    table: Tensor, positions: Tensor, grads: Tensor
) -> Operation:
    """Adds gradients to those that wait in the table for a later step.

    Args:
        table: Table handle.
        positions: Positions, `int64`, shape `(n,)`.
        grads: Gradients, `float32`, shape `(n, dim)`.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return native_ops.embedra_table_accumulate_gradients(
        table=table, positions=positions, grads=grads
    )


def table_take_gradients(table: Tensor, *, dim: int) -> tuple[Tensor, Tensor]:
    """Takes the waiting gradients out of a table.

    Args:
        table: Table handle.
        dim: Width of the rows.

    Returns:
        Unique positions, `int64`, shape `(u,)`, and summed gradients,
        `float32`, shape `(u, dim)`.
    """
    outputs = native_ops.embedra_table_take_gradients(table=table, dim=dim)
    return outputs.positions, outputs.grads
