"""What the ranks of a job do together before each makes the step."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from embedra import _ops
from embedra.distribute import (
    Communicator,
    default_share,
    graph_share,
    job_communicator,
    reduce_gradients,
    times_share,
)

from ._first_weights import begin_alike
from ._support import UnsupportedOptimizerError
from ._trained_tables import TableGradient, table_variable_of


_FACTOR = "batch_factor"


def weigh_batches(optimizer: Any, factor: tf.Variable) -> None:
    """Has an optimizer weigh the batches of this rank.

    `scale_loss` then multiplies by the factor. With the number of this rank's
    examples over the mean of that of all ranks, the step is that of the mean
    loss over the examples of all. A factor of 0 says that the rank has none:
    its gradients count as 0, also where they are no numbers.

    Args:
        optimizer: Of `DynamicEmbeddingOptimizer`; it is changed.
        factor: Scalar, `float32`.
    """
    for each in (optimizer, getattr(optimizer, "inner_optimizer", None)):
        if each is not None:
            # Past the tracking of attributes.
            each.__dict__[_FACTOR] = factor


def weighed(optimizer: Any, loss: Any) -> Any:
    """Returns a loss times the factor of this rank's batch, if there is one.

    Args:
        optimizer: Of `DynamicEmbeddingOptimizer`.
        loss: A scalar.
    """
    factor = vars(optimizer).get(_FACTOR)
    return loss if factor is None else loss * tf.cast(factor, loss.dtype)


def without_empty(
    optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any]
) -> list[Any]:
    """Takes zeros for the gradients of a batch without examples.

    Not for those of tables: they come from the examples of other ranks. There
    is such a batch where the optimizer's factor, or the graph's share, says so.

    Args:
        optimizer: Of `DynamicEmbeddingOptimizer`.
        gradients: Tensors, slices or None.
        variables: Their variables.

    Returns:
        The same, all numbers.
    """
    factor = vars(optimizer).get(_FACTOR)
    factor = graph_share() if factor is None else factor
    if factor is None:
        return list(gradients)
    number = tf.cast(factor > 0, tf.float32)
    return [
        _times(gradient, number)
        if table_variable_of(variable) is None
        else gradient
        for gradient, variable in zip(gradients, variables, strict=True)
    ]


def over_ranks(
    optimizer: Any, tables: list[TableGradient], dense: list[tuple[Any, Any]]
) -> tuple[list[TableGradient], list[tuple[Any, Any]]]:
    """Turns gradients of this rank's examples into those of all ranks.

    Those of tables that are split over the ranks are that already: lookups
    bring them to the rank that has the row. Before the first step of a loop of
    the user's own, dense weights become those of rank 0.

    Args:
        optimizer: The optimizer.
        tables: Gradients of tables.
        dense: Other gradients, and their variables.

    Returns:
        The same. In one process, just that.
    """
    communicator = job_communicator()
    if communicator is None:
        return tables, dense
    share = default_share(communicator)
    factor = vars(optimizer).get(_FACTOR)
    if factor is None:
        # Else `fit` has seen to it.
        begin_alike(optimizer, [weight for _, weight in dense], communicator)
    else:
        share = share * tf.cast(factor > 0, tf.float32)
    reduced = reduce_gradients(
        communicator, [gradient for gradient, _ in dense], share=share
    )
    return (
        [_of_all(communicator, gradient, share) for gradient in tables],
        list(zip(reduced, [variable for _, variable in dense], strict=True)),
    )


def agreed(condition: Any) -> Any:
    """Returns whether a condition holds on all ranks.

    Args:
        condition: Scalar, `bool`.
    """
    communicator = job_communicator()
    if communicator is None:
        return condition
    number = tf.cast(condition, tf.int32)
    return communicator.all_reduce(number, "min", label="finite gradients") > 0


def check_clips(optimizer: Any, tables: list[TableGradient]) -> None:
    """Raises if an optimizer clips by a norm that a rank does not know.

    Args:
        optimizer: Of tf_keras or TensorFlow 1.
        tables: Gradients of tables.

    Raises:
        UnsupportedOptimizerError: It says what to use instead.
    """
    split = [g.table for g in tables if g.table.communicator is not None]
    for name in ("clipnorm", "global_clipnorm"):
        if split and getattr(optimizer, name, None):
            msg = (
                f"Optimizer {type(optimizer).__name__} has {name}="
                f"{getattr(optimizer, name)}, but table {split[0].name!r} is "
                "split over ranks, of which each knows the norm of its own "
                "part. Use an optimizer of Keras 3, which clips over ranks."
            )
            raise UnsupportedOptimizerError(msg)


def _of_all(
    communicator: Communicator, gradient: TableGradient, share: Any
) -> TableGradient:
    """Gathers the gradient of a table that each rank has the whole of.

    A record is at another position on each rank, so its key is sent; where it
    is not there yet, it comes into being.
    """
    table, slices = gradient.table, gradient.slices
    if table.communicator is not None:
        return gradient
    positions = tf.cast(slices.indices, tf.int64)
    keys, alive = _ops.table_keys(table.resource_handle, positions)
    own = tf.IndexedSlices(
        tf.boolean_mask(tf.cast(slices.values, tf.float32), alive),
        tf.boolean_mask(keys, alive),
    )
    (of_all,) = reduce_gradients(communicator, [own], share=share)
    found = _ops.table_lookup(
        [table.resource_handle],
        # No variable takes part: the handle only fills the place.
        [table.resource_handle],
        [table.create_missing(of_all.indices)],
        [table.default_row(None)],
        dims=[table.dim],
        dtype=table.dtype,
        insert=True,
    )
    slices = tf.IndexedSlices(of_all.values, found.positions[0])
    return gradient._replace(slices=slices)


def _times(gradient: Any, share: tf.Tensor) -> Any:
    """Returns a gradient times a number, which makes 0 of anything if it is."""
    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        values = times_share(gradient.values, share)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return times_share(gradient, share)
