"""Initializers: how the first row of a key is described to the core.

The core draws initial rows itself, from (seed, table name, key, column), so
that a key starts the same in any batch, order, worker or restart. This module
turns what people write into the few kinds that the core knows. Classes are
told apart by their names and `get_config()`, so that the objects of Keras,
tf_keras, `tf.initializers` and `tf.compat.v1` all work, with no import of
either.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ._callables import describe_callable


# Standard deviation of a unit normal cut at two standard deviations.
_TRUNCATED_STDDEV = 0.87962566103423978


@dataclasses.dataclass(frozen=True)
class InitializerSpec:
    """What new rows are drawn from.

    Attributes:
        kind: "constant", "uniform", "normal" or "truncated_normal".
        parameters: One value or `dim` values (constant); low and high
            (uniform); mean and standard deviation (normal, truncated_normal).
        seed: Seed given by the user, or None.
        function: For initializers that are arbitrary Python: called with the
            shape and the keys of a block of new rows. The native kind is then
            constant zero, which is what absent keys read as.
    """

    kind: str
    parameters: tuple[float, ...]
    seed: int | None = None
    function: Callable[..., Any] | None = None


def resolve_initializer(initializer: Any, dim: int) -> InitializerSpec:
    """Finds the native form of an initializer.

    Args:
        initializer: One of

            * a Keras, tf_keras, `tf.initializers` or `tf.compat.v1`
              initializer: constant, zeros, ones, random uniform, random
              normal, truncated normal, or of the variance-scaling family
              (Glorot, He, LeCun), which see a row as a `[1, dim]` matrix:
              fan in 1, fan out `dim`; its class, name or config;
            * a number (all elements), or an array of `dim` numbers (the row);
            * `functools.partial` of any of these, or of `tf.random.uniform`
              and its like, with the bound arguments kept;
            * any other callable: called once for each block of new keys with
              `shape=(n, dim)`, and with `keys=` if it takes that argument.
        dim: Width of a row.

    Returns:
        The native form.

    Raises:
        ValueError: If the initializer cannot start rows one by one, or has the
            wrong width.

    Example:
        >>> resolve_initializer("ones", 4)
        InitializerSpec(kind='constant', parameters=(1.0,), seed=None, \
function=None)
    """
    if isinstance(initializer, functools.partial):
        return _resolve_partial(initializer, dim)
    if isinstance(initializer, str):
        return resolve_initializer(keras.initializers.get(initializer), dim)
    if isinstance(initializer, Mapping):
        return _resolve_config(initializer, dim)
    if isinstance(initializer, type):
        return resolve_initializer(initializer(), dim)
    if not callable(initializer):
        return _resolve_array(initializer, dim)
    spec = _resolve_object(initializer, dim)
    return spec or _resolve_callable(initializer, dim)


def initializer_config(initializer: Any, dim: int) -> Any:
    """Returns a JSON form that `resolve_initializer` takes back.

    Args:
        initializer: As in `resolve_initializer`.
        dim: Width of a row.

    Returns:
        A config of Keras, or the native form where there is none.
    """
    if isinstance(initializer, type):
        initializer = initializer()
    if isinstance(initializer, str | Mapping):
        return initializer
    if isinstance(initializer, keras.initializers.Initializer):
        return keras.initializers.serialize(initializer)
    spec = resolve_initializer(initializer, dim)
    if spec.function is not None:
        return keras.saving.serialize_keras_object(initializer)
    return {
        "kind": spec.kind,
        "parameters": list(spec.parameters),
        "seed": spec.seed,
    }


def _resolve_partial(partial: Any, dim: int) -> InitializerSpec:
    function = partial.func
    if isinstance(function, type):
        return resolve_initializer(
            function(*partial.args, **partial.keywords), dim
        )
    spec = _resolve_object(function, dim)
    if spec is not None and set(partial.keywords) <= {"dtype"}:
        return spec
    return _resolve_callable(partial, dim)


def _resolve_config(config: Mapping[str, Any], dim: int) -> InitializerSpec:
    if set(config) == {"kind", "parameters", "seed"}:
        return InitializerSpec(
            config["kind"], tuple(config["parameters"]), config["seed"]
        )
    return resolve_initializer(
        keras.initializers.deserialize(dict(config)), dim
    )


def _resolve_array(values: Any, dim: int) -> InitializerSpec:
    static = tf.get_static_value(values) if tf.is_tensor(values) else None
    array = np.asarray(values if static is None else static)
    if array.dtype.kind not in "iuf" and array.dtype.name != "bfloat16":
        msg = (
            "`initializer` must be an initializer, a number, or an array of "
            f"{dim} numbers. Received: {values!r}"
        )
        raise ValueError(msg)
    if array.size == 1 and array.ndim <= 1:
        return InitializerSpec("constant", (float(array.reshape(())),))
    if array.shape == (dim,):
        return InitializerSpec("constant", tuple(array.astype(float).tolist()))
    hint = ""
    if array.ndim == 2 and array.shape[1] == dim:
        hint = " To store rows for given keys, use `Table.assign(keys, rows)`."
    msg = (
        f"`initializer` must have the width of a row, {dim}. Received: an "
        f"array of shape {array.shape}.{hint}"
    )
    raise ValueError(msg)


def _resolve_callable(function: Any, dim: int) -> InitializerSpec:
    described = describe_callable(function, dim)
    if isinstance(described, np.ndarray):
        return _resolve_array(described, dim)
    if isinstance(described, tuple):
        kind, parameters, seed = described
        return InitializerSpec(kind, parameters, seed)
    return InitializerSpec("constant", (0.0,), None, described)


def _resolve_object(initializer: Any, dim: int) -> InitializerSpec | None:
    """Maps an initializer object of a known family; None for others."""
    name = type(initializer).__name__.replace("_initializer", "")
    name = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    name = name.removesuffix("V2").removesuffix("V1")
    if name in ("Orthogonal", "OrthogonalInitializer", "Identity", "STFT"):
        msg = (
            f"{name} starts a whole matrix, not rows one by one, so it cannot "
            "start the rows of a dynamic table. Use a random normal or uniform "
            "initializer, or `Table.assign`."
        )
        raise ValueError(msg)
    get_config = getattr(initializer, "get_config", None)
    if get_config is None or not _is_library_class(type(initializer)):
        return None
    config = get_config()
    seed = _seed_of(config.get("seed"))
    if name == "Constant":
        spec = _resolve_array(config["value"], dim)
        return dataclasses.replace(spec, seed=seed)
    if name in ("Zeros", "Ones"):
        return InitializerSpec("constant", (float(name == "Ones"),), seed)
    if name == "RandomUniform":
        return _uniform(config, seed)
    if name in ("RandomNormal", "TruncatedNormal"):
        kind = "normal" if name == "RandomNormal" else "truncated_normal"
        parameters = (float(config["mean"]), float(config["stddev"]))
        return InitializerSpec(kind, parameters, seed)
    if all(
        hasattr(initializer, key) for key in ("scale", "mode", "distribution")
    ):
        return _variance_scaling(initializer, dim, seed)
    return None


def _is_library_class(cls: type) -> bool:
    """Whether a class comes from Keras or TensorFlow, so its name is known."""
    return cls.__module__.split(".")[0] in ("keras", "tf_keras", "tensorflow")


def _seed_of(seed: Any) -> int | None:
    """Returns the integer behind a seed or a serialized seed generator."""
    if isinstance(seed, Mapping):
        return _seed_of(seed.get("config", {}).get("seed"))
    return None if seed is None else int(seed)


def _uniform(config: Mapping[str, Any], seed: int | None) -> InitializerSpec:
    low, high = config["minval"], config["maxval"]
    high = 1.0 if high is None else high  # tf.compat.v1's default
    return InitializerSpec("uniform", (float(low), float(high)), seed)


def _variance_scaling(
    initializer: Any, dim: int, seed: int | None
) -> InitializerSpec:
    """Maps Glorot, He, LeCun and their base: fan in 1, fan out `dim`."""
    fan = {"fan_in": 1.0, "fan_out": float(dim), "fan_avg": (1.0 + dim) / 2}
    scale = float(initializer.scale) / max(1.0, fan[initializer.mode])
    distribution = initializer.distribution
    if distribution == "uniform":
        limit = math.sqrt(3.0 * scale)
        return InitializerSpec("uniform", (-limit, limit), seed)
    if distribution == "untruncated_normal":
        return InitializerSpec("normal", (0.0, math.sqrt(scale)), seed)
    stddev = math.sqrt(scale) / _TRUNCATED_STDDEV
    return InitializerSpec("truncated_normal", (0.0, stddev), seed)


def new_rows(
    spec: InitializerSpec, keys: tf.Tensor, dim: int, dtype: tf.DType
) -> tf.Tensor:
    """Calls a Python initializer for a block of new keys.

    Args:
        spec: A spec with a `function`.
        keys: New keys, `int64`, shape `(n,)`.
        dim: Width of a row.
        dtype: Dtype of the rows.

    Returns:
        Rows of `dtype`, shape `(n, dim)`.
    """

    def draw(keys: tf.Tensor) -> tf.Tensor:
        assert_function = spec.function
        if assert_function is None or not len(keys):
            return tf.zeros((len(keys), dim), dtype)
        rows = tf.convert_to_tensor(
            assert_function(shape=(len(keys), dim), keys=keys)
        )
        if tuple(rows.shape) != (len(keys), dim):
            msg = (
                f"The initializer gave rows of shape {tuple(rows.shape)}. "
                f"Expected: {(len(keys), dim)}."
            )
            raise ValueError(msg)
        return tf.cast(rows, dtype)

    rows = tf.py_function(draw, [keys], dtype)
    rows.set_shape((None, dim))
    return rows
