"""Exports with Embedra's own ops, of which the tables can be trained on."""

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from ._signatures import Endpoint
from ._traced import Traced, resources_of


def check_owner(model: Any) -> None:
    """Raises unless a model can own the tables that are exported with it.

    Args:
        model: What is to be exported.

    Raises:
        ValueError: If it is a mere function.
    """
    if isinstance(model, tf.Module | keras.layers.Layer):
        return
    msg = (
        "native_ops=True exports what owns its tables: a Keras model or layer, "
        f"or a tf.Module. Received: {type(model).__name__}."
    )
    raise ValueError(msg)


def export_native(
    model: Any, endpoints: Iterable[Endpoint], folder: str
) -> None:
    """Writes a SavedModel with whole tables.

    Args:
        model: A Keras model or layer, or a module.
        endpoints: The functions that are served.
        folder: The folder to write.

    Raises:
        ValueError: If the functions use tables that the model does not have.
    """
    traced = Traced(model)
    for endpoint in endpoints:
        traced.add(endpoint)
    # As `keras.export.ExportArchive` has them.
    root = traced.root
    root.trainable_variables = list(model.trainable_variables)
    root.non_trainable_variables = list(model.non_trainable_variables)
    root.variables = list(model.variables)
    root.embedra_variables = traced.variables_but(map(_value, model.variables))
    root.embedra_resources = resources_of(model)
    traced.save(folder)


def _value(variable: Any) -> Any:
    """Returns the variable of TensorFlow in one of Keras."""
    return variable.value if isinstance(variable, keras.Variable) else variable
