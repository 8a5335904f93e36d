"""Gradients of the ops that exchange data between ranks.

A collective's output on one rank depends on the inputs of others. Its gradient
is that of the sum, over all ranks, of what the ranks differentiate; all ranks
must compute it, in the same order. Importing this module registers them.

They take the communicator from where the graphs of the forward and the backward
pass meet. A tensor of the forward graph would come to the backward one as an
output of a function or a loop, and so be another resource to TensorFlow, which
orders ops by the resource that they share.
"""

from typing import Any

import tensorflow as tf

from embedra._typing import Tensor

from ._communication_ops import all_reduce, all_to_all_v, mpi_place
from ._graph_order import captured


@tf.RegisterGradient("EmbedraAllToAllV")
def _all_to_all_v_gradient(op: Any, *grads: Tensor) -> list[Any]:
    """Sends gradients back the way the rows came."""
    n = op.get_attr("N")
    splits = list(op.inputs[1 + n : 1 + 2 * n])
    received_splits = list(op.outputs[n:])
    if not op.outputs[0].dtype.is_floating:
        return [None] * len(op.inputs)
    back, _ = all_to_all_v(
        _communicator(op),
        [tf.convert_to_tensor(grad) for grad in grads[:n]],
        received_splits,
        splits,
        label=_back(op),
    )
    return [None, *back, *[None] * (len(op.inputs) - 1 - n)]


@tf.RegisterGradient("EmbedraAllGatherV")
def _all_gather_v_gradient(op: Any, grad: Tensor, _: Any) -> list[Any]:
    """Sends each rank its part of the gradient of all, and adds these up."""
    value = op.inputs[1]
    if not value.dtype.is_floating:
        return [None, None]
    counts = op.outputs[1]
    size = tf.size(counts)
    own = tf.shape(value, out_type=tf.int64)
    parts, _ = all_to_all_v(
        _communicator(op),
        [tf.convert_to_tensor(grad)],
        [counts],
        [tf.fill([size], own[0])],
        label=_back(op),
    )
    stacked = tf.concat([[tf.cast(size, tf.int64)], own], axis=0)
    return [None, tf.reduce_sum(tf.reshape(parts[0], stacked), axis=0)]


@tf.RegisterGradient("EmbedraAllReduce")
def _all_reduce_gradient(op: Any, *grads: Tensor) -> list[Any]:
    """Reduces the gradients in the same way."""
    reduction = _text(op.get_attr("reduction"))
    if reduction not in ("sum", "mean"):
        msg = (
            f"all_reduce {_label(op)!r} has the reduction {reduction!r}, which "
            'has no gradient. Use "sum" or "mean", or tf.stop_gradient.'
        )
        raise LookupError(msg)
    reduced = all_reduce(
        _communicator(op),
        [tf.convert_to_tensor(grad) for grad in grads],
        reduction=reduction,
        bucket_bytes=op.get_attr("bucket_bytes"),
        label=_back(op),
    )
    return [None, *reduced]


@tf.RegisterGradient("EmbedraBroadcast")
def _broadcast_gradient(op: Any, grad: Tensor) -> list[Any]:
    """Adds the gradients up, on the rank whose value all had."""
    if not grad.dtype.is_floating:
        return [None, None]
    splits = tf.one_hot(op.get_attr("root"), mpi_place().size, dtype=tf.int64)
    (at_root,), _ = all_to_all_v(
        _communicator(op),
        [tf.expand_dims(tf.convert_to_tensor(grad), 0)],
        [splits],
        label=_back(op),
    )
    # The others get no rows, which add up to zeros.
    return [None, tf.reduce_sum(at_root, axis=0)]


def _communicator(op: Any) -> Tensor:
    """Returns the op's communicator as a tensor that the gradient can share."""
    handle = op.inputs[0]
    if tf.executing_eagerly():
        return handle
    here: Any = tf.compat.v1.get_default_graph()
    enclosing = [here]
    while getattr(enclosing[-1], "outer_graph", None) is not None:
        enclosing.append(enclosing[-1].outer_graph)
    while hasattr(handle, "op") and handle.graph not in enclosing:
        captures = handle.graph.captures
        handle = next(outer for outer, inner in captures if inner is handle)
    return handle if hasattr(handle, "op") else captured(handle, here)


def _label(op: Any) -> str:
    return _text(op.get_attr("label"))


def _back(op: Any) -> str:
    return f"gradient of {_label(op)}"


def _text(attribute: str | bytes) -> str:
    """Attributes of graph ops are bytes, those of eager ones may be either."""
    return attribute.decode() if isinstance(attribute, bytes) else attribute
