"""Making variables while a `tf.function` is traced."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import tensorflow as tf


T = TypeVar("T")


def outside_functions(make: Callable[[], T]) -> T:
    """Calls a function that makes variables, from wherever this is called.

    A `tf.function` may make variables in its first call only, and is then
    traced twice. `tf.init_scope` does not change that, as TensorFlow asks the
    graph that the thread builds. Another thread builds none.

    Args:
        make: Makes variables; is given nothing.

    Returns:
        What it returns.
    """
    is_traced = tf.inside_function()
    with tf.init_scope():
        if not (is_traced and tf.executing_eagerly()):
            return make()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()
