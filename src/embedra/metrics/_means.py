"""mean and accuracy, for TF1 graphs: TensorFlow's own."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ._graph import check_graph


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Sequence[str] | None = None,
    updates_collections: Sequence[str] | None = None,
    name: str | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes a weighted mean, over batches; `tf.compat.v1.metrics.mean`.

    Args:
        values: The values.
        weights: Of values; of a shape that can be broadcast to theirs. 1 by
            default.
        metrics_collections: Collections that the value is added to.
        updates_collections: Collections that the update is added to.
        name: Of the variable scope.

    Returns:
        The mean over all batches that were counted, a float32 scalar; and what
        counts a batch when it runs, and gives the mean.

    Raises:
        RuntimeError: When executing eagerly.
    """
    check_graph("mean", "keras.metrics.Mean")
    found: tuple[tf.Tensor, tf.Tensor] = tf.compat.v1.metrics.mean(
        values, weights, metrics_collections, updates_collections, name
    )
    return found


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Sequence[str] | None = None,
    updates_collections: Sequence[str] | None = None,
    name: str | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes how often predictions equal labels, over batches.

    It is `tf.compat.v1.metrics.accuracy`: predictions are classes, such as
    `tf.cast(probabilities > 0.5, tf.int64)`.

    Args:
        labels: The right classes.
        predictions: The predicted classes, of the same shape.
        weights: Of examples; of a shape that can be broadcast to theirs. 1 by
            default.
        metrics_collections: Collections that the value is added to.
        updates_collections: Collections that the update is added to.
        name: Of the variable scope.

    Returns:
        The accuracy over all batches that were counted, a float32 scalar; and
        what counts a batch when it runs, and gives the accuracy.

    Raises:
        RuntimeError: When executing eagerly.
    """
    check_graph("accuracy", "keras.metrics.BinaryAccuracy")
    found: tuple[tf.Tensor, tf.Tensor] = tf.compat.v1.metrics.accuracy(
        labels,
        predictions,
        weights,
        metrics_collections,
        updates_collections,
        name,
    )
    return found
