"""Which optimizers the core has a kernel for."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras

from ._rowwise_adagrad import RowwiseAdagrad


class FusedRule(NamedTuple):
    """An update rule of the core.

    Attributes:
        name: Its name there.
        hyperparameters: Its numbers and switches.
    """

    name: str
    hyperparameters: dict[str, Any]


def fused_rule(optimizer: keras.optimizers.Optimizer) -> FusedRule | None:
    """Finds the core's rule for an optimizer.

    A subclass shares its parent's rule as long as it changes neither
    `update_step` nor `build`.

    Args:
        optimizer: A Keras optimizer.

    Returns:
        The rule, with the hyper-parameters as they are now; or None if the
        core has none, or a hyper-parameter is not a plain number.
    """
    for cls, describe in _RULES:
        if (
            isinstance(optimizer, cls)
            and type(optimizer).update_step is cls.update_step
            and type(optimizer).build is cls.build
        ):
            return _if_plain(describe(optimizer))
    return None


def fused_rule_of(name: str, optimizer: Any) -> FusedRule | None:
    """Finds the core's rule for a class of a library that names it as Keras 3.

    Args:
        name: Name of the class, whose rule must be that of Keras 3.
        optimizer: An instance of it.

    Returns:
        The rule, with the hyper-parameters as they are now; or None if the
        core has none, or a hyper-parameter is not a plain number.
    """
    for cls, describe in _RULES:
        if cls.__name__ == name:
            return _if_plain(describe(optimizer))
    return None


def _if_plain(rule: FusedRule) -> FusedRule | None:
    numbers = rule.hyperparameters.values()
    plain = all(isinstance(number, int | float) for number in numbers)
    return rule if plain else None


def _sgd(optimizer: Any) -> FusedRule:
    if not optimizer.momentum:
        return FusedRule("sgd", {})
    return FusedRule(
        "momentum",
        {"momentum": optimizer.momentum, "nesterov": optimizer.nesterov},
    )


def _adagrad(optimizer: Any) -> FusedRule:
    return FusedRule("adagrad", _accumulator_hyperparameters(optimizer))


def _rowwise_adagrad(optimizer: Any) -> FusedRule:
    return FusedRule("rowwise_adagrad", _accumulator_hyperparameters(optimizer))


def _accumulator_hyperparameters(optimizer: Any) -> dict[str, Any]:
    return {
        "initial_accumulator": optimizer.initial_accumulator_value,
        "epsilon": optimizer.epsilon,
    }


def _adam(optimizer: Any) -> FusedRule:
    return FusedRule(
        "adam",
        {
            "beta_1": optimizer.beta_1,
            "beta_2": optimizer.beta_2,
            "epsilon": optimizer.epsilon,
            "amsgrad": optimizer.amsgrad,
        },
    )


def _ftrl(optimizer: Any) -> FusedRule:
    return FusedRule(
        "ftrl",
        {
            "initial_accumulator": optimizer.initial_accumulator_value,
            "learning_rate_power": optimizer.learning_rate_power,
            "l1": optimizer.l1_regularization_strength,
            "l2": optimizer.l2_regularization_strength,
            "l2_shrinkage": optimizer.l2_shrinkage_regularization_strength,
            "beta": optimizer.beta,
        },
    )


def _rmsprop(optimizer: Any) -> FusedRule:
    return FusedRule(
        "rmsprop",
        {
            "rho": optimizer.rho,
            "momentum": optimizer.momentum,
            "epsilon": optimizer.epsilon,
            "centered": optimizer.centered,
        },
    )


_RULES: tuple[tuple[Any, Callable[[Any], FusedRule]], ...] = (
    (keras.optimizers.SGD, _sgd),
    (keras.optimizers.Adagrad, _adagrad),
    (RowwiseAdagrad, _rowwise_adagrad),
    (keras.optimizers.Adam, _adam),
    (keras.optimizers.Ftrl, _ftrl),
    (keras.optimizers.RMSprop, _rmsprop),
)
