"""Functions, classes and kinds of tables in the JSON of a layer's config."""

import importlib
from typing import Any

import keras


_NAMESPACE = "embedra.dynamic_embedding"


def as_json(value: Any) -> Any:
    """Returns what a config holds for a function or an object.

    Args:
        value: A function, `tf.function` or an object with `get_config`; or
            None.
    """
    # Of a `tf.function` the module has the decorated one under its name.
    return keras.saving.serialize_keras_object(
        getattr(value, "python_function", value)
    )


def as_object(value: Any) -> Any:
    """Does the reverse of `as_json`; passes on what is no config.

    Args:
        value: What `as_json` gives, or the object itself.
    """
    if isinstance(value, dict):
        return keras.saving.deserialize_keras_object(value)
    return value


def policy_name(policy: type | None) -> str | None:
    """Returns what a config holds for a `de.RestrictPolicy` class.

    Args:
        policy: The class. One that is not of this library must be registered by
            `keras.saving.register_keras_serializable`.
    """
    if policy is None:
        return None
    return str(keras.saving.get_registered_name(policy))


def policy_class(name: Any) -> Any:
    """Does the reverse of `policy_name`; passes on what is no name.

    Args:
        name: Name of a class, or the class.

    Raises:
        ValueError: If there is no such class.
    """
    if not isinstance(name, str):
        return name
    found = keras.saving.get_registered_object(name)
    if found is None:
        found = getattr(importlib.import_module(_NAMESPACE), name, None)
    if found is None:
        msg = (
            f"There is no restrict policy {name!r}. Register the class by "
            "keras.saving.register_keras_serializable before the model is "
            "loaded."
        )
        raise ValueError(msg)
    return found
