"""wraps: gives Embedra's methods to another class."""

import functools
from typing import Any

import keras
import tensorflow as tf

from embedra import keras as keras_models, optimizers


_ESTIMATOR_METHODS = ("train", "evaluate", "predict")


def wraps(cls: Any) -> Any:
    """Makes a class that knows of tables from one of Keras or TensorFlow.

    Args:
        cls: A class; also as a decorator.

            * A subclass of `keras.Model` gets the methods of
              `embedra.keras.Model`.
            * A subclass of `keras.optimizers.Optimizer` or
              `tf.compat.v1.train.Optimizer` makes optimizers as
              `embedra.DynamicEmbeddingOptimizer` does.
            * A subclass of `embedra.estimator.Estimator` is returned as it is.
              Another class that has `train`, `evaluate` and `predict` as
              estimators do gets `train_and_evaluate`.

            One that has all of this is returned as it is.

    Returns:
        The class, of the same name, with what it overrides.

    Raises:
        TypeError: If it is something else.

    Example:
        >>> import keras
        >>> import embedra as hb
        >>> @hb.wraps
        ... class Network(keras.Model):
        ...     pass
        >>> Network().compile("sgd", "mse", clipnorm=1.0)
        >>> optimizer = hb.wraps(tf.compat.v1.train.AdamOptimizer)(0.01)
        >>> optimizer.handles_tables
        True
    """
    if not isinstance(cls, type):
        what = f"an object of class {_name_of(type(cls))}"
        raise _refusal(what)
    if issubclass(cls, keras.Model):
        return keras_models.wraps(cls)
    if getattr(cls, "handles_tables", False):
        return cls
    if issubclass(cls, keras.optimizers.Optimizer):
        return _keras_optimizer(cls)
    if issubclass(cls, tf.compat.v1.train.Optimizer):
        return _v1_optimizer(cls)
    if all(callable(getattr(cls, name, None)) for name in _ESTIMATOR_METHODS):
        return _estimator(cls)
    what = f"class {_name_of(cls)}"
    raise _refusal(what)


def _refusal(what: str) -> TypeError:
    return TypeError(
        "`wraps` takes a class (not an instance): a subclass of keras.Model, "
        "embedra.estimator.Estimator, keras.optimizers.Optimizer or "
        f"tf.compat.v1.train.Optimizer. Received: {what}. Optimizers that are "
        "made already are wrapped by embedra.DynamicEmbeddingOptimizer."
    )


# Keras never forgets a class that it can save, so there is one for each.
@functools.cache
def _keras_optimizer(cls: Any) -> Any:
    if issubclass(cls, keras.optimizers.LossScaleOptimizer):
        msg = (
            "LossScaleOptimizer hands over to another optimizer. Wrap the "
            "class of that one."
        )
        raise TypeError(msg)
    return keras_models.named_as(cls, (optimizers.TableOptimizer, cls))


@functools.cache
def _v1_optimizer(cls: Any) -> Any:
    return keras_models.named_as(cls, (optimizers.for_tables(cls),))


def _estimator(cls: Any) -> Any:
    # Loading estimators takes time that other classes do not need.
    from embedra import estimator

    if callable(getattr(cls, "train_and_evaluate", None)):
        return cls
    return keras_models.named_as(cls, (cls, estimator.TrainAndEvaluate))


def _name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
