"""Averages that layers keep of batches, over all ranks."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator, default_share, times_share

from ._graphs import Built


v1: Any = tf.compat.v1

_ASSIGNING = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
# What comes out of them is the same on all ranks.
_REDUCING = ("EmbedraAllReduce", "EmbedraAllGatherV", "EmbedraBroadcast")


def with_averages_of_all(built: Built, ranks: Communicator) -> Built:
    """Averages over ranks what a training step makes of a batch, by its rows.

    That is what batch normalization and the like keep in variables, without
    gradients.

    Args:
        built: The model, in the graph that is current.
        ranks: The ranks of the job.
    """
    states = _states_of_batches(built)
    if not states:
        return built
    share = default_share(ranks)
    with tf.control_dependencies([built.spec.train_op]):
        own = [times_share(state.read_value(), share) for state in states]
    means = ranks.all_reduce(own, label="averages of batches")
    assigned = [
        v1.assign(state, mean).op
        for state, mean in zip(states, means, strict=True)
    ]
    train_op = tf.group(*assigned)
    return built._replace(spec=built.spec._replace(train_op=train_op))


def _states_of_batches(built: Built) -> list[Any]:
    """Returns variables that the step assigns what depends on the batch.

    What optimizers assign depends on it by way of all ranks.
    """
    weights = {
        variable.handle.op: variable
        for variable in v1.global_variables()
        if hasattr(variable, "handle")
        and not variable.trainable
        and variable.dtype.is_floating
        and variable.shape.num_elements()
    }
    batch = {
        leaf.op
        for leaf in tf.nest.flatten(built.features, expand_composites=True)
        if leaf is not None
    }
    found = {}
    step = built.spec.train_op
    for op in _upstream([getattr(step, "op", step)], is_run=True):
        if op.type not in _ASSIGNING or op.inputs[0].op not in weights:
            continue
        if batch & _upstream([op.inputs[1].op]):
            variable = weights[op.inputs[0].op]
            found[variable.name] = variable
    # In an order that is the same on all ranks.
    return [found[name] for name in sorted(found)]


def _upstream(operations: Iterable[Any], *, is_run: bool = False) -> set[Any]:
    """Returns what operations depend on, with themselves.

    Args:
        operations: Where to begin.
        is_run: Whether to return all that runs before them; else only that of
            which their values are made by this rank alone.
    """
    found: set[Any] = set()
    open_ones = list(operations)
    while open_ones:
        op = open_ones.pop()
        if op in found:
            continue
        found.add(op)
        if is_run:
            open_ones += op.control_inputs
        elif op.type in _REDUCING:
            continue
        open_ones += [tensor.op for tensor in op.inputs]
    return found
