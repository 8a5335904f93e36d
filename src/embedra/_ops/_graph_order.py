"""Keeps collectives in order in graphs that TensorFlow does not order.

Eager ops run as they are called, and in a `tf.function` TensorFlow orders ops
that share a resource as they were traced. In a TF1 graph nothing does: there
each collective is made to come after the one that was built before it. Those
that run by themselves, as the first broadcast of weights, are built in a chain
of their own, or every step would run them too.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tensorflow as tf


_T = TypeVar("_T")

_chain: contextvars.ContextVar[str] = contextvars.ContextVar(
    "embedra_chain", default="step"
)


@contextlib.contextmanager
def chain(name: str) -> Iterator[None]:
    """Has collectives built in the block follow only others of the chain.

    Args:
        name: Of the chain.

    Yields:
        Nothing.
    """
    token = _chain.set(name)
    try:
        yield
    finally:
        _chain.reset(token)


def in_order(make: Callable[[], _T]) -> _T:
    """Makes a collective that comes after those before it.

    Args:
        make: Makes the op; is given nothing.

    Returns:
        What it returns: an operation, a tensor, or a structure of tensors.
    """
    if tf.executing_eagerly():
        return make()
    graph = tf.compat.v1.get_default_graph()
    latest = graph.get_collection_ref(f"embedra/collectives/{_chain.get()}")
    # A function's graph begins with a copy of the outer graph's collections.
    before = [op for op in latest if op.graph is graph]
    with tf.control_dependencies(before):
        made = make()
    latest[:] = [_operation(made)]
    return made


def captured(handle: Any, graph: Any = None) -> Any:
    """Returns an eager handle as ops of a graph can take it.

    Graphs of the gradients of loops and branches, which these attributes tell,
    take no eager tensors; the graph around them has to.

    Args:
        handle: An eager tensor.
        graph: The graph, or None for that in which ops are made now, if any.
    """
    if graph is None and not tf.executing_eagerly():
        graph = tf.compat.v1.get_default_graph()
    if not (
        hasattr(graph, "internal_capture_to_output")
        or hasattr(graph, "op_needs_rewrite")
    ):
        return handle
    outer: Any = graph.outer_graph
    return outer.capture(captured(handle, outer))


def _operation(made: Any) -> Any:
    if isinstance(made, tf.Operation):
        return made
    return tf.nest.flatten(made)[0].op
