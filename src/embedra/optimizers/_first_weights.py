"""The first step of a job: all ranks begin it with the same dense weights."""

import hashlib
import logging
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from embedra.distribute import Communicator, gather_values


_DONE = "weights_are_same"
_LABEL = "first weights"

_log = logging.getLogger("embedra")


def begin_alike(
    optimizer: Any, variables: Sequence[Any], communicator: Communicator
) -> None:
    """Gives all ranks the dense weights of rank 0, before the first step.

    It is done when the first step is run or traced, and costs later ones
    nothing. Weights are compared by digests, and only sent where they differ.
    In a TF1 graph, where weights have no values yet, nothing is done: there
    hooks and sessions do.

    Args:
        optimizer: That makes the steps; it is marked.
        variables: The dense weights.
        communicator: Of the ranks, which must all call this.

    Raises:
        ValueError: On all ranks, if they have other numbers of weights.
    """
    if _DONE in vars(optimizer):
        return
    with tf.init_scope():
        if not tf.executing_eagerly():
            return
        # Past the tracking of attributes.
        vars(optimizer)[_DONE] = True
        weights = [variable for variable in variables if _has_value(variable)]
        digests = gather_values(
            communicator, [_digest(weight) for weight in weights], label=_LABEL
        )
        counts = [len(each) for each in digests]
        if len(set(counts)) > 1:
            msg = (
                f"Ranks train different numbers of dense weights, {counts} by "
                "rank. Make the same model on all of them."
            )
            raise ValueError(msg)
        differing = [
            weight
            for weight, *each in zip(weights, *digests, strict=True)
            if len(set(each)) > 1
        ]
        for weight in differing:
            weight.assign(
                communicator.broadcast(
                    tf.convert_to_tensor(weight), label=_LABEL
                )
            )
    if differing:
        _log.info(
            "%d dense weights differed between ranks, as %r, and are now those "
            "of rank 0.",
            len(differing),
            differing[0].name,
        )


def _has_value(variable: Any) -> bool:
    """Whether it is not one that a `tf.function` makes when it runs."""
    if isinstance(variable, keras.Variable):
        return True
    return bool(variable.is_initialized())


def _digest(weight: Any) -> str:
    values = np.ascontiguousarray(tf.convert_to_tensor(weight).numpy())
    return hashlib.blake2b(values.tobytes(), digest_size=16).hexdigest()
