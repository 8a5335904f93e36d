"""What slots start from."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def constant_initial(initial: Any, dim: int) -> float | None:
    """Returns the number that all elements of a slot start from.

    Args:
        initial: A number, a tensor, or an initializer that is called with a
            shape and a dtype.
        dim: Width of the slot.

    Returns:
        The number, or None if there is no single one.
    """
    if callable(initial):
        initial = _evaluated(lambda: initial((2, dim), dtype=tf.float32))
    elif not isinstance(initial, int | float):
        initial = tf.get_static_value(tf.convert_to_tensor(initial))
    if initial is None:
        return None
    values = {float(value) for value in tf.nest.flatten(_listed(initial))}
    return values.pop() if len(values) == 1 else None


def _listed(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _evaluated(function: Callable[[], Any]) -> Any:
    """Calls a function that makes a tensor, and returns its value."""
    with tf.init_scope():
        if tf.executing_eagerly():
            return function().numpy()
    with tf.Graph().as_default() as graph:
        tensor = function()
        with tf.compat.v1.Session(graph=graph) as session:
            return session.run(tensor)
