"""Translates `tf.compat.v1.train` optimizers to Keras 3 ones of equal rule."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from ._support import UnsupportedOptimizerError
from ._v1 import TableOptimizerV1
from ._v1_rules import MomentumV1, ProximalV1, RMSpropV1


_TRAIN: Any = tf.compat.v1.train


def from_v1(optimizer: Any) -> keras.optimizers.Optimizer:
    """Returns a Keras 3 optimizer with the rule of a TF1 one.

    The hyper-parameters are taken as they are now. A learning rate that is a
    function or a variable is read again at each step. A new optimizer starts
    with new slots.

    Args:
        optimizer: A `tf.compat.v1.train.Optimizer`, wrapped for tables or not.

    Returns:
        The Keras optimizer; give it to `DynamicEmbeddingOptimizer` where one
        is wanted that knows of tables.

    Raises:
        UnsupportedOptimizerError: If its rule is not one of TensorFlow's own
            that are known.

    Example:
        >>> import tensorflow as tf
        >>> found = from_v1(tf.compat.v1.train.AdamOptimizer(0.01, beta1=0.8))
        >>> type(found).__name__, found.beta_1, found.epsilon
        ('Adam', 0.8, 1e-08)
    """
    if isinstance(optimizer, TableOptimizerV1):
        optimizer = optimizer.plain()
    for cls, translate in _TRANSLATIONS.items():
        if isinstance(optimizer, cls) and _has_rule_of(optimizer, cls):
            translated: keras.optimizers.Optimizer = translate(optimizer)
            return translated
    known = ", ".join(cls.__name__ for cls in _TRANSLATIONS)
    msg = (
        f"tf.compat.v1.train optimizer {type(optimizer).__name__} has no Keras "
        f"3 optimizer with the same rule. Those that have: {known}. Use one of "
        "them, or a Keras optimizer."
    )
    raise UnsupportedOptimizerError(msg)


def _has_rule_of(optimizer: Any, cls: Any) -> bool:
    rules = ("_resource_apply_dense", "_create_slots", "_finish")
    return all(
        getattr(type(optimizer), rule) is getattr(cls, rule) for rule in rules
    )


def _number(value: Any) -> float:
    return float(value() if callable(value) else value)


def _rate(value: Any) -> Any:
    """A learning rate as Keras takes it."""
    if callable(value):
        return value
    if isinstance(value, tf.Variable):
        return value.read_value
    return float(value)


def _momentum(v1: Any) -> keras.optimizers.Optimizer:
    rate = _rate(v1._learning_rate)
    momentum, nesterov = _number(v1._momentum), bool(v1._use_nesterov)
    if callable(rate) or not 0.0 <= momentum <= 1.0:
        return MomentumV1(rate, momentum, nesterov)
    # As long as the rate stays, the same, and there is a kernel for it.
    return keras.optimizers.SGD(rate, momentum=momentum, nesterov=nesterov)


def _ftrl(v1: Any) -> keras.optimizers.Optimizer:
    return keras.optimizers.Ftrl(
        _rate(v1._learning_rate),
        learning_rate_power=_number(v1._learning_rate_power),
        initial_accumulator_value=_number(v1._initial_accumulator_value),
        l1_regularization_strength=_number(v1._l1_regularization_strength),
        l2_regularization_strength=_number(v1._l2_regularization_strength),
        l2_shrinkage_regularization_strength=_number(
            v1._l2_shrinkage_regularization_strength
        ),
        beta=_number(v1._beta),
    )


_TRANSLATIONS: dict[Any, Callable[[Any], keras.optimizers.Optimizer]] = {
    _TRAIN.GradientDescentOptimizer: lambda v1: keras.optimizers.SGD(
        _rate(v1._learning_rate)
    ),
    _TRAIN.MomentumOptimizer: _momentum,
    _TRAIN.AdagradOptimizer: lambda v1: keras.optimizers.Adagrad(
        _rate(v1._learning_rate),
        initial_accumulator_value=_number(v1._initial_accumulator_value),
        epsilon=0.0,
    ),
    _TRAIN.AdadeltaOptimizer: lambda v1: keras.optimizers.Adadelta(
        _rate(v1._lr), rho=_number(v1._rho), epsilon=_number(v1._epsilon)
    ),
    _TRAIN.AdamOptimizer: lambda v1: keras.optimizers.Adam(
        _rate(v1._lr),
        beta_1=_number(v1._beta1),
        beta_2=_number(v1._beta2),
        epsilon=_number(v1._epsilon),
    ),
    _TRAIN.FtrlOptimizer: _ftrl,
    _TRAIN.RMSPropOptimizer: lambda v1: RMSpropV1(
        _rate(v1._learning_rate),
        rho=_number(v1._decay),
        momentum=_number(v1._momentum),
        epsilon=_number(v1._epsilon),
        centered=bool(v1._centered),
    ),
    _TRAIN.ProximalGradientDescentOptimizer: lambda v1: ProximalV1(
        _rate(v1._learning_rate),
        _number(v1._l1_regularization_strength),
        _number(v1._l2_regularization_strength),
    ),
    _TRAIN.ProximalAdagradOptimizer: lambda v1: ProximalV1(
        _rate(v1._learning_rate),
        _number(v1._l1_regularization_strength),
        _number(v1._l2_regularization_strength),
        _number(v1._initial_accumulator_value),
    ),
}
