"""Functions, classes and kinds of tables in the JSON of a layer's config."""

import dataclasses
import importlib
import inspect
import sys
from typing import Any

import keras
import tensorflow as tf

from embedra.dynamic_embedding._creators import KVCreator
from embedra.dynamic_embedding._restrict import RestrictPolicy


_NAMESPACE = "embedra.dynamic_embedding"
_CLASS = "class"


def as_json(value: Any) -> Any:
    """Returns what a config holds for a function or an object.

    Args:
        value: A function or `tf.function`, registered by
            `keras.saving.register_keras_serializable` so that it is found
            again; or an object with `get_config`; or None.
    """
    if isinstance(value, tf.types.experimental.PolymorphicFunction):
        name = keras.saving.get_registered_name(value)
        if keras.saving.get_registered_object(name) is value:
            return {
                "class_name": "function",
                "config": name,
                "module": None,
                "registered_name": name,
            }
        value = value.python_function
    return keras.saving.serialize_keras_object(value)


def as_object(value: Any) -> Any:
    """Does the reverse of `as_json`; passes on what is no config.

    Args:
        value: What `as_json` gives, or the object itself.
    """
    if isinstance(value, dict):
        return keras.saving.deserialize_keras_object(value)
    return value


def kind_as_json(kind: Any) -> Any:
    """Returns what a config holds for a `kv_creator`.

    Args:
        kind: An object with `get_config`, a `de.KVCreator`, or what it holds.
    """
    if kind is None or isinstance(kind, bool | str | float):
        return kind
    if isinstance(kind, int):
        return int(kind)
    if hasattr(kind, "get_config") or inspect.isroutine(kind):
        return as_json(kind)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif isinstance(kind, KVCreator) and _is_ours(type(kind)):
        names = ["config", "saver"]
    else:
        msg = (
            f"The layer's kv_creator {kind!r} cannot be part of its config. "
            "Give the class get_config and from_config, and register it by "
            "keras.saving.register_keras_serializable."
        )
        raise TypeError(msg)
    return {
        _CLASS: type(kind).__name__,
        **{name: kind_as_json(getattr(kind, name)) for name in names},
    }


def kind_as_object(kind: Any) -> Any:
    """Does the reverse of `kind_as_json`; passes on what is no config.

    Args:
        kind: What `kind_as_json` gives, or the object itself.
    """
    if not isinstance(kind, dict) or _CLASS not in kind:
        return as_object(kind)
    arguments = {name: kind_as_object(value) for name, value in kind.items()}
    # Nothing but the library's own classes is called with what a file says.
    cls = getattr(importlib.import_module(_NAMESPACE), arguments.pop(_CLASS))
    return cls(**arguments)


def policy_as_json(policy: type | None) -> str | None:
    """Returns what a config holds for a `de.RestrictPolicy` class.

    Args:
        policy: The class.
    """
    if policy is None:
        return None
    if _is_ours(policy):
        return policy.__name__
    return f"{policy.__module__}:{policy.__qualname__}"


def policy_as_class(name: Any) -> Any:
    """Does the reverse of `policy_as_json`; passes on what is no name.

    Args:
        name: Name of a class, or the class.

    Raises:
        ValueError: If there is no such class.
    """
    if not isinstance(name, str):
        return name
    module, _, path = name.rpartition(":")
    found: Any = sys.modules.get(module or _NAMESPACE)
    for part in path.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, RestrictPolicy)):
        msg = (
            f"There is no restrict policy {name!r}. Import the module of the "
            "class before the model is loaded, or give the layer the class."
        )
        raise ValueError(msg)
    return found


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith(f"{_NAMESPACE}.")
