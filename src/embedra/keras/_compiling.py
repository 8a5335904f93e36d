"""Optimizers as `compile` takes them."""

from typing import Any

import keras
import tensorflow as tf

from embedra._checks import check_number
from embedra.optimizers import (
    DynamicEmbeddingOptimizer,
    from_v1,
    set_clip_limits,
)


# Those of `compile` in TensorFlow 1 that Keras 3 does not have.
_GONE = {
    "sample_weight_mode": "Weights of the shape of the targets are by element.",
    "distribute": "Several ranks are started by `embedra run`.",
}


def check_compile(
    optimizer: Any, clipnorm: Any, clipvalue: Any, kwargs: dict[str, Any]
) -> None:
    """Checks arguments of `compile`, and takes out those that say nothing.

    Args:
        optimizer: `optimizer`.
        clipnorm: `clipnorm`.
        clipvalue: `clipvalue`.
        kwargs: Those for Keras.

    Raises:
        TypeError: If one is of another kind, or not known any more.
        ValueError: If a limit is negative, or there is no optimizer to clip.
    """
    limits = {"clipnorm": clipnorm, "clipvalue": clipvalue}
    for name, limit in limits.items():
        if limit is None:
            continue
        check_number(name, limit, zero=True)
        if optimizer is None:
            msg = f"`{name}` needs an optimizer. Received: optimizer=None."
            raise ValueError(msg)
    for name, instead in _GONE.items():
        if kwargs.pop(name, None) is not None:
            msg = f"Keras 3 has no argument `{name}` of `compile`. {instead}"
            raise TypeError(msg)


def keras_optimizer(optimizer: Any, model: Any, kwargs: dict[str, Any]) -> Any:
    """Returns an optimizer that knows of tables.

    Args:
        optimizer: A Keras optimizer, its name or config, or one of TF1.
        model: The model that it is for.
        kwargs: Other arguments of `compile`.

    Returns:
        A Keras 3 optimizer.
    """
    if isinstance(optimizer, tf.compat.v1.train.Optimizer):
        optimizer = from_v1(optimizer)
    optimizer = keras.optimizers.get(optimizer)
    if (
        kwargs.get("auto_scale_loss", True)
        and model.dtype_policy.name == "mixed_float16"
        and not isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    ):
        # Here, as Keras's own would not know of tables.
        optimizer = keras.optimizers.LossScaleOptimizer(
            optimizer, name="loss_scale_optimizer"
        )
    return DynamicEmbeddingOptimizer(optimizer)


def clipped(
    optimizer: Any, clipnorm: float | None, clipvalue: float | None
) -> Any:
    """Returns an optimizer that clips.

    Args:
        optimizer: One that knows of tables.
        clipnorm: Largest norm, or None.
        clipvalue: Largest absolute value, or None.

    Returns:
        The optimizer.

    Raises:
        ValueError: If the optimizer clips as well.
    """
    if clipnorm is None and clipvalue is None:
        return optimizer
    inside = getattr(optimizer, "inner_optimizer", optimizer)
    for name in ("clipnorm", "clipvalue", "global_clipnorm"):
        if getattr(inside, name):
            msg = (
                "Gradients would be clipped twice: `compile` was given "
                f"clipnorm={clipnorm}, clipvalue={clipvalue}, and the "
                f"optimizer has {name}={getattr(inside, name)}. Give one."
            )
            raise ValueError(msg)
    set_clip_limits(optimizer, clipnorm or None, clipvalue or None)
    return optimizer
