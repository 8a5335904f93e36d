"""Numbers: those an optimizer keeps once per table, and those that ops give."""

from typing import Any

import keras
import tensorflow as tf


class ScalarStore:
    """Numbers that an optimizer keeps once per table, by name.

    An optimizer may be made before or after the table is restored: restored
    values wait here until a variable of that name is added.
    """

    def __init__(self) -> None:
        self._variables: dict[str, Any] = {}
        self._restored: dict[str, float] = {}

    def add(self, name: str, variable: Any) -> None:
        """Keeps a variable under a name, and gives it a restored value.

        Args:
            name: Name of the number in the table's state.
            variable: A scalar Keras variable.
        """
        self._variables[name] = variable
        if name in self._restored:
            variable.assign(self._restored.pop(name))

    def values(self) -> dict[str, float]:
        """Returns all numbers by name."""
        current = {
            name: float(keras.ops.convert_to_numpy(variable))
            for name, variable in self._variables.items()
        }
        return {**self._restored, **current}

    def restore(self, values: dict[str, float]) -> None:
        """Sets numbers, now or when their variables are added.

        Args:
            values: Numbers by name.
        """
        self._restored = dict(values)
        for name in list(self._restored):
            if name in self._variables:
                self._variables[name].assign(self._restored.pop(name))


def number(value: tf.Tensor) -> Any:
    """Returns a Python int when executing eagerly, else the tensor."""
    return int(value) if hasattr(value, "numpy") else value
