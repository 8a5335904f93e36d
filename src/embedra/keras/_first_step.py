"""What a model needs before the first step of its training."""

from typing import Any

import keras
import tensorflow as tf


def build(model: Any, structure: Any) -> set[str] | None:
    """Has all variables made that a training step makes, without doing one.

    Args:
        model: The model.
        structure: Specs of its batches.

    Returns:
        Names of the step's logs; None if they are not known.

    Raises:
        ValueError: If the model runs eagerly and is not built.
    """
    if model.run_eagerly:
        _build_eager(model)
        return None
    step = tf.function(model.train_step, autograph=False)
    traced = step.get_concrete_function(structure)
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    logs = traced.structured_outputs
    return set(logs) if isinstance(logs, dict) else None


def has_own_test_step(model: Any) -> bool:
    """Whether the steps of a validation are not those of Keras.

    Args:
        model: The model.
    """
    return bool(type(model).test_step is not keras.Model.test_step)


def _build_eager(model: Any) -> None:
    if not model.built:
        msg = (
            "A model with run_eagerly=True has to be built before it is "
            "trained with `checkpoint_dir`, or by several ranks: call it on a "
            "batch first."
        )
        raise ValueError(msg)
    model.optimizer.build(model.trainable_variables)
