"""Eviction: the rules by which ids go when a checkpoint is saved."""

import tensorflow as tf

from embedra.dynamic_embedding._expiry import Expiry

from ._options import GlobalStepEvict, L2WeightEvict


def expiry_of(option: GlobalStepEvict | L2WeightEvict | None) -> Expiry | None:
    """Returns what an option asks for, None for nothing.

    Args:
        option: The option.
    """
    if isinstance(option, GlobalStepEvict) and option.steps_to_live:
        steps = option.steps_to_live
        return Expiry(lambda _, last_steps, step: step - last_steps > steps)
    if isinstance(option, L2WeightEvict) and option.l2_weight_threshold > 0:
        threshold = option.l2_weight_threshold
        return Expiry(lambda rows, *_: tf.norm(rows, axis=1) < threshold)
    return None
