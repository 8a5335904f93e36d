"""A traced model as TensorFlow saves it."""

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf


class Traced:
    """Functions of a model, traced, and the object that is saved with them.

    Args:
        model: What they are of.

    Attributes:
        root: Has the functions, each by the name that the loaded object has.
        signatures: Concrete functions by the names of their signatures.
    """

    def __init__(self, model: Any) -> None:
        self.root: Any = tf.__internal__.tracking.AutoTrackable()
        self.signatures: dict[str, Any] = {}
        # As Keras itself does not change the control flow of its models.
        self._autograph = not isinstance(
            model, keras.Model | keras.layers.Layer
        )

    def add(self, endpoint: Any) -> Any:
        """Traces a function.

        Args:
            endpoint: The `Endpoint` that it is of.

        Returns:
            The concrete function of its signature.
        """
        function, signature = endpoint.trace(self._autograph)
        self.signatures[endpoint.name] = signature
        setattr(self.root, endpoint.attribute, function)
        return signature

    def build(self, model: Any, endpoints: Iterable[Any]) -> None:
        """Has Keras make the variables of a model that was never called.

        Args:
            model: What the functions are of.
            endpoints: Its `Endpoint`s.
        """
        if isinstance(model, keras.Model) and not model.built:
            for endpoint in endpoints:
                endpoint.trace(self._autograph)

    def variables_but(self, others: Iterable[Any]) -> list[Any]:
        """Returns the variables that the functions read, each once.

        Args:
            others: Variables that are left out.
        """
        left_out = {id(variable) for variable in others}
        found = {
            id(variable): variable
            for signature in self.signatures.values()
            for variable in signature.graph.variables
            if id(variable) not in left_out
        }
        return list(found.values())

    def save(self, folder: str) -> None:
        """Writes a SavedModel.

        Args:
            folder: The folder to write.

        Raises:
            ValueError: If the functions use what `root` does not have.
        """
        try:
            tf.saved_model.save(self.root, folder, self.signatures)
        except (AssertionError, KeyError) as error:
            msg = (
                "The model uses a resource that it does not own, such as a "
                "hash table that is in no layer or module. Make it an "
                f"attribute of the model. TensorFlow says: {error}"
            )
            raise ValueError(msg) from error


def resources_of(model: Any) -> list[Any]:
    """Returns the tables, of Embedra and of TensorFlow, that a model has.

    Args:
        model: A Keras model, a trackable, or any callable.
    """
    if not isinstance(model, tf.Module | keras.Model | keras.layers.Layer):
        return []
    resource = tf.saved_model.experimental.TrackableResource
    return [
        one
        for one in tf.train.TrackableView(model).descendants()
        if isinstance(one, resource)
    ]
