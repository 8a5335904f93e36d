"""Option: what options have in common."""

import dataclasses
from typing import Any, Self

import keras


class Option:
    """An option, in a form in which Keras saves it."""

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes the option that has such a config.

        Args:
            config: As `get_config` gives it, serialized or not.
        """
        return cls(
            **{
                name: keras.saving.deserialize_keras_object(value)
                if isinstance(value, dict)
                else value
                for name, value in config.items()
            }
        )
