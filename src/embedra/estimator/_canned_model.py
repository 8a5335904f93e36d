"""The model function of canned estimators."""

import operator
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from ._canned_heads import Head
from ._canned_optimizers import train_op
from ._modes import ModeKeys
from ._spec import EstimatorSpec


class Part(Protocol):
    """A part of a model, with an optimizer of its own."""

    def logits(self, features: Any, units: int, mode: str) -> tf.Tensor:
        """Builds the part, and returns what it adds to the logits."""

    def made_optimizer(self) -> Any:
        """Returns what trains the part."""


class CannedModel(NamedTuple):
    """Parts whose logits are added up, under one head.

    Attributes:
        head: Makes losses and predictions of the logits.
        parts: The parts.
    """

    head: Head
    parts: Sequence[Part]

    def model_fn(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """Builds the model.

        Args:
            features: Tensors by name.
            labels: What it is to learn, or None.
            mode: One of `ModeKeys`.

        Raises:
            TypeError: If features are not given by name.
        """
        if not isinstance(features, Mapping):
            msg = (
                "The input function must give features in a dict by name, as "
                f"feature columns need them. Received: {features!r}."
            )
            raise TypeError(msg)
        logits, variables = [], []
        for part in self.parts:
            before = len(tf.compat.v1.trainable_variables())
            logits.append(part.logits(features, self.head.units, mode))
            variables.append(tf.compat.v1.trainable_variables()[before:])
        trained = []
        if mode == ModeKeys.TRAIN:
            optimizers = [part.made_optimizer() for part in self.parts]
            trained = list(zip(optimizers, variables, strict=True))
        return self.head.spec(
            features,
            labels,
            mode,
            reduce(operator.add, logits),
            lambda loss: train_op(loss, trained),
        )
