"""The names of a model's variables, in its checkpoints.

TensorFlow writes by which attributes an object leads to a variable. Of what
Keras calls it, that holds nothing where a variable was made in a function.
"""

import json
import weakref
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf


# What checkpoints call the names of the variables of their `model`, beside it:
# in it, others than its class would miss them, or have no place for them.
VARIABLE_NAMES = "variable_names"


class VariableNames(tf.train.experimental.PythonState):
    """Writes what the variables of a model are called.

    Args:
        model: The model, which this does not keep alive.
    """

    def __init__(self, model: keras.Model) -> None:
        self._model = weakref.ref(model)

    def serialize(self) -> str:
        """Returns the attributes that lead to each variable, and its name."""
        model = self._model()
        return "[]" if model is None else json.dumps(list(_names(model)))

    def deserialize(self, string_value: str) -> None:
        """Leaves the names as they are, which are those of the model.

        Args:
            string_value: Those that were saved.
        """


def own_name(name: str, owner: Any) -> str:
    """Returns a name without that of the model that may come before it.

    Args:
        name: Of a variable or table.
        owner: The model.
    """
    return name.removeprefix(f"{getattr(owner, 'name', '')}/")


def _names(model: keras.Model) -> Iterator[tuple[list[str], str]]:
    seen = {id(model), id(getattr(model, "optimizer", None))}
    # Grows while it is walked over, and keeps what it holds alive.
    found: list[tuple[list[str], Any]] = [([], model)]
    for path, one in found:
        if isinstance(one, keras.Variable):
            yield path, own_name(one.path, model)
        for name, child in tf.train.TrackableView.children(one).items():
            if id(child) not in seen:
                seen.add(id(child))
                found.append(([*path, name], child))
