"""wraps: gives the methods of `embedra.keras.Model` to another class."""

from typing import Any

import keras

from ._methods import ModelMethods
from ._model import Model


def wraps(cls: Any) -> Any:
    """Makes a subclass of a Keras model class that has Embedra's methods.

    Args:
        cls: A subclass of `keras.Model`; also as a decorator. One that has the
            methods is returned as it is, and `keras.Model` itself gives
            `embedra.keras.Model`.

    Returns:
        The class, of the same name.

    Raises:
        TypeError: If it is something else.

    Example:
        >>> import keras
        >>> import embedra as hb
        >>> @hb.wraps
        ... class Network(keras.Model):
        ...     pass
        >>> Network().compile("sgd", "mse", clipnorm=1.0)
        >>> Sequential = hb.wraps(keras.Sequential)
    """
    if not isinstance(cls, type) or not issubclass(cls, keras.Model):
        found = cls if isinstance(cls, type) else type(cls)
        what = "class" if isinstance(cls, type) else "an object of class"
        msg = (
            "`wraps` takes a subclass of keras.Model (the class, not an "
            f"instance). Received: {what} {found.__module__}."
            f"{found.__qualname__}. Keras and tf.compat.v1.train optimizers "
            "are wrapped by embedra.DynamicEmbeddingOptimizer."
        )
        raise TypeError(msg)
    if cls is keras.Model:
        return Model
    if issubclass(cls, ModelMethods):
        return cls
    return named_as(cls, (ModelMethods, cls))


def named_as(cls: Any, bases: tuple[Any, ...]) -> Any:
    """Makes a class that is called as another one.

    Args:
        cls: The other one.
        bases: What the new class is a subclass of.
    """
    names = ("__module__", "__qualname__", "__doc__")
    return type(
        cls.__name__, bases, {name: getattr(cls, name) for name in names}
    )
