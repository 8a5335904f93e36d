"""Measures of click predictions, exact, in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from embedra.data import DataError


Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Measures:
    """How good predictions are.

    Attributes:
        auc: Area under the ROC curve; NaN where all labels are equal or a
            prediction is NaN.
        log_loss: Mean negative log likelihood, in nats.
        rows: Number of rows measured on.
    """

    auc: float
    log_loss: float
    rows: int


def measure(labels: Array, probabilities: Array) -> Measures:
    """Measures predictions.

    Args:
        labels: 0 or 1, shape `[n]`.
        probabilities: Predicted probability of 1, shape `[n]`.

    Example:
        >>> measure(np.array([0.0, 1.0]), np.array([0.2, 0.7])).auc
        1.0
    """
    # A rank for each row; equal predictions share their mean rank.
    _, group, sizes = np.unique(
        probabilities, return_inverse=True, return_counts=True
    )
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[group]
    clicks = float(labels.sum())
    others = len(labels) - clicks
    won = float(ranks[labels == 1].sum()) - clicks * (clicks + 1) / 2
    auc = won / (clicks * others) if clicks and others else float("nan")
    if np.isnan(probabilities).any():
        auc = float("nan")
    bounded = np.clip(probabilities.astype(np.float64), 1e-7, 1 - 1e-7)
    likelihood = np.where(labels == 1, bounded, 1 - bounded)
    return Measures(auc, float(-np.log(likelihood).mean()), len(labels))


def evaluate(
    model: keras.Model,
    data: tf.data.Dataset,
    after_batch: Callable[[], None] = lambda: None,
) -> Measures:
    """Measures a model on a dataset of `(features, labels)`.

    Args:
        model: The model.
        data: The rows, in batches.
        after_batch: Called after each batch.

    Raises:
        DataError: If there is no row.
    """
    labels, probabilities = [], []
    for features, clicked in data:
        labels.append(clicked.numpy())
        predicted = model.predict_on_batch(features)
        probabilities.append(np.asarray(predicted).reshape(-1))
        after_batch()
    if not labels:
        msg = (
            "There is no row to measure on: the file has too few to set any "
            "apart. Name another with --validation, or give --held-out 0."
        )
        raise DataError(msg)
    return measure(np.concatenate(labels), np.concatenate(probabilities))
