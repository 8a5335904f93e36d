"""Model: `keras.Model`, functional or to be subclassed, with our methods."""

from typing import Any

import keras

from ._methods import ModelMethods


def _functional_class() -> Any:
    """Returns the class of Keras's functional models, which has no name."""
    # With names, so that Keras does not count them among those it makes up.
    tensor = keras.Input((), name="embedra")
    return type(keras.Model(tensor, tensor, name="embedra"))


_Functional: Any = _functional_class()


@keras.saving.register_keras_serializable(package="embedra")
class Model(ModelMethods, keras.Model):
    """A Keras model that keeps checkpoints, clips, and knows of tables.

    Use it as `keras.Model`: call it on inputs and outputs, or subclass it.
    What it adds is in `compile` (`clipnorm` with `clipvalue`, optimizers of
    `tf.compat.v1.train`), `fit` (`checkpoint_dir` and what goes with it),
    `evaluate` and `predict` (`checkpoint_dir`, `checkpoint_path`),
    `load_weights` and `summary`. Nothing in Keras is changed.

    Args:
        *args: Those of `keras.Model`. A list of one dict of inputs is taken
            for the dict, as that is how batches come.
        **kwargs: Those of `keras.Model`.

    Example:
        >>> import numpy as np
        >>> import embedra as hb
        >>> ids = keras.Input((2,), dtype="int64")
        >>> rows = hb.layers.Embedding(4, combiner="sum")(ids)
        >>> model = hb.keras.Model(ids, keras.layers.Dense(1)(rows))
        >>> model.compile("adam", "mse", clipnorm=1.0, clipvalue=0.5)
        >>> x, y = np.array([[1, 2], [3, 4]]), np.ones((2, 1))
        >>> history = model.fit(x, y, verbose=0)
        >>> sorted(history.history)
        ['loss']
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes a functional model, or an instance of a subclass."""
        if cls is Model and _is_functional(args, kwargs):
            return Functional.__new__(Functional, *args, **kwargs)
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if _is_functional(args, kwargs) and not isinstance(self, Functional):
            # As Keras does for a subclass that gives inputs and outputs.
            _make_functional(type(self))
            Functional.__init__(self, *args, **kwargs)
            return
        super().__init__(*args, **kwargs)


@keras.saving.register_keras_serializable(package="embedra")
class Functional(Model, _Functional):
    """What `Model(inputs, outputs)` makes."""

    def __init__(
        self, inputs: Any, outputs: Any, name: str | None = None, **kwargs: Any
    ) -> None:
        if isinstance(inputs, list | tuple) and len(inputs) == 1:
            (only,) = inputs
            inputs = only if isinstance(only, dict) else inputs
        _Functional.__init__(self, inputs, outputs, name=name, **kwargs)


def _is_functional(args: Any, kwargs: Any) -> bool:
    return (
        len(args) == 2
        or (len(args) == 1 and "outputs" in kwargs)
        or ("inputs" in kwargs and "outputs" in kwargs)
    )


def _make_functional(cls: Any) -> None:
    """Puts `Functional` in the place of `Model` among a class's bases."""
    cls.__bases__ = tuple(
        Functional if base is Model else base for base in cls.__bases__
    )
    for base in cls.__bases__:
        if issubclass(base, Model) and not issubclass(base, Functional):
            _make_functional(base)
