"""Initializers that are arbitrary Python functions."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf


_Native = tuple[str, tuple[float, ...], int | None]

# Functions whose draws the core can make itself. Defaults are those of the
# functions' own signatures.
_UNIFORM = (
    tf.random.uniform,
    keras.random.uniform,
    tf.compat.v1.random_uniform,
)
_NORMAL = (tf.random.normal, keras.random.normal, tf.compat.v1.random_normal)
_TRUNCATED = (
    tf.random.truncated_normal,
    keras.random.truncated_normal,
    tf.compat.v1.truncated_normal,
)


def describe_callable(
    function: Callable[..., Any], dim: int
) -> _Native | np.ndarray | Callable[..., Any]:
    """Finds out what a function draws.

    Args:
        function: A function of `shape`, of `shape` and `keys`, or of nothing.
        dim: Width of a row.

    Returns:
        A native description if the function is a known one; an array if it
        gives a constant; else a function of `shape` and `keys`.

    Raises:
        ValueError: If it would give every block of new keys the same rows.
    """
    native = _known_function(function)
    if native is not None:
        return native
    parameters = _parameters(function)
    if not parameters:
        return _evaluated(function)
    call = _adapt(function, parameters)

    def probe() -> Any:
        return call(shape=(2, dim), keys=tf.range(2, dtype=tf.int64))

    first = _evaluated(probe)
    if first.shape != (2, dim):
        msg = (
            f"`initializer` must return rows of the shape it is given, "
            f"(2, {dim}). Received: shape {first.shape} from {function!r}."
        )
        raise ValueError(msg)
    if "keys" in parameters:
        return call
    second = _evaluated(probe)
    if not np.array_equal(first, second):
        return call
    if np.array_equal(first[0], first[1]):
        row: np.ndarray = first[0]
        return row
    msg = (
        f"`initializer` {function!r} gives the same rows at each call, so "
        "every block of new keys would start alike. Let it take an argument "
        "`keys` (int64, shape (n,)) and draw from that, draw without a fixed "
        "seed, or use a built-in initializer with `seed=`."
    )
    raise ValueError(msg)


def _evaluated(function: Callable[[], Any]) -> np.ndarray:
    """Calls a function eagerly, also while a TF1 graph is built."""
    with tf.init_scope():
        if tf.executing_eagerly():
            return np.asarray(function())
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        value = tf.py_function(
            lambda: tf.cast(function(), tf.float32), [], tf.float32
        )
        return np.asarray(session.run(value))


def _known_function(function: Callable[..., Any]) -> _Native | None:
    keywords: dict[str, Any] = {}
    if isinstance(function, functools.partial):
        if function.args:
            return None
        keywords = dict(function.keywords)
        function = function.func
    keywords.pop("dtype", None)
    seed = keywords.pop("seed", None)
    if not isinstance(seed, int | None):
        return None
    if any(function is known for known in _UNIFORM):
        kind, names, defaults = "uniform", ("minval", "maxval"), (0.0, 1.0)
    elif any(function is known for known in _NORMAL):
        kind, names, defaults = "normal", ("mean", "stddev"), (0.0, 1.0)
    elif any(function is known for known in _TRUNCATED):
        kind, names = "truncated_normal", ("mean", "stddev")
        defaults = (0.0, 1.0)
    else:
        return None
    values = [keywords.pop(n, d) for n, d in zip(names, defaults, strict=True)]
    if keywords or not all(np.isscalar(value) for value in values):
        return None
    return kind, (float(values[0]), float(values[1])), seed


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Returns the names of a function's parameters that are still free."""
    signature = inspect.signature(function)
    kinds = inspect.Parameter
    return [
        name
        for name, parameter in signature.parameters.items()
        if parameter.kind is not kinds.VAR_KEYWORD
    ]


def _adapt(
    function: Callable[..., Any], parameters: list[str]
) -> Callable[..., Any]:
    """Makes a function of `shape` and `keys` of one that may lack `keys`."""

    def call(shape: tuple[int, int], keys: tf.Tensor) -> Any:
        extra = {"keys": keys} if "keys" in parameters else {}
        if "shape" in parameters:
            return function(shape=shape, **extra)
        return function(shape, **extra)

    return call
