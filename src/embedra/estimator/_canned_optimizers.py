"""Optimizers of canned models: as they are given, and as they train."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from embedra import optimizers, train


v1: Any = tf.compat.v1

_BY_NAME: dict[str, Callable[[float], Any]] = {
    "Adagrad": train.AdagradOptimizer,
    "Adam": train.AdamOptimizer,
    "Ftrl": train.FtrlOptimizer,
    "RMSProp": train.RMSPropOptimizer,
    "SGD": train.GradientDescentOptimizer,
}


def check_optimizer(argument: str, optimizer: Any) -> None:
    """Raises unless optimizers can be made of what was given.

    Args:
        argument: What the caller knows it by.
        optimizer: A name, an optimizer of `tf.compat.v1.train`, or a function
            that makes one.

    Raises:
        TypeError: If it is something else.
        ValueError: If there is no optimizer of that name.
    """
    if isinstance(optimizer, str):
        if optimizer not in _BY_NAME:
            msg = (
                f"`{argument}` must be one of {sorted(_BY_NAME)}, an optimizer "
                "of tf.compat.v1.train, or a function that makes one. "
                f"Received: {optimizer!r}."
            )
            raise ValueError(msg)
        return
    is_optimizer = isinstance(optimizer, v1.train.Optimizer)
    if not is_optimizer and not callable(optimizer):
        raise _no_optimizer(argument, optimizer)


def optimizer_for_tables(argument: str, optimizer: Any, rate: float) -> Any:
    """Makes an optimizer that knows of tables.

    Args:
        argument: What the caller knows it by.
        optimizer: What `check_optimizer` takes.
        rate: Learning rate of one that is given by its name.

    Returns:
        An optimizer of `tf.compat.v1.train`.

    Raises:
        TypeError: If a function made something else.
    """
    if isinstance(optimizer, str):
        return _BY_NAME[optimizer](rate)
    if not isinstance(optimizer, v1.train.Optimizer):
        optimizer = optimizer()
        if not isinstance(optimizer, v1.train.Optimizer):
            raise _no_optimizer(argument, optimizer)
    return optimizers.DynamicEmbeddingOptimizer(optimizer)


def train_op(loss: tf.Tensor, trained: Sequence[tuple[Any, list[Any]]]) -> Any:
    """Returns the op of a training step, which counts it.

    Args:
        loss: What is minimized, a scalar.
        trained: Optimizers, and the variables that each of them trains.
    """
    step = v1.train.get_global_step()
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        if len(trained) == 1:
            ((optimizer, variables),) = trained
            return optimizer.minimize(loss, step, variables)
        updates = [
            optimizer.minimize(loss, var_list=variables)
            for optimizer, variables in trained
        ]
    with tf.control_dependencies(updates):
        return v1.assign_add(step, 1).op


def _no_optimizer(argument: str, given: Any) -> TypeError:
    return TypeError(
        f"`{argument}` must be the name of an optimizer, an optimizer of "
        "tf.compat.v1.train, or a function that makes one; those of Keras do "
        f"not train in TF1 graphs. Received: {given!r}."
    )
