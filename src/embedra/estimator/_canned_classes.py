"""Heads of classifiers: of two classes, and of more."""

from typing import Any

import tensorflow as tf

from embedra import metrics

from ._canned_heads import DEFAULT_SIGNATURE, Head
from ._canned_labels import class_ids_of, label_columns, shares_of
from ._numbers import is_integer
from ._outputs import (
    ClassificationOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)


v1: Any = tf.compat.v1


def classification_head(
    n_classes: Any,
    weight_column: Any,
    label_vocabulary: Any,
    loss_reduction: str,
) -> Head:
    """Returns the head for a number of classes.

    Args:
        n_classes: How many classes there are.
        weight_column: See `Head`.
        label_vocabulary: Names of the classes in their order, or None if
            labels are numbers.
        loss_reduction: See `Head`.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range, or does not suit another.
    """
    if not is_integer(n_classes) or n_classes < 2:
        msg = (
            "`n_classes` must be an integer from 2 on. Received: "
            f"{n_classes!r}."
        )
        raise ValueError(msg)
    vocabulary = _checked_vocabulary(label_vocabulary, n_classes)
    head = _BinaryHead if n_classes == 2 else _MultiClassHead
    return head(int(n_classes), weight_column, vocabulary, loss_reduction)


class _ClassHead(Head):
    """What heads of classifiers have in common.

    Args:
        n_classes: How many classes there are.
        weight_column: See `Head`.
        vocabulary: Names of the classes, or None.
        loss_reduction: See `Head`.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any,
        vocabulary: list[str] | None,
        loss_reduction: str,
    ) -> None:
        units = 1 if n_classes == 2 else n_classes
        super().__init__(units, weight_column, loss_reduction)
        self._n_classes = n_classes
        self._vocabulary = vocabulary

    def _of_classes(self, scores: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns predictions by scores of shape `(batch, classes)`."""
        names = self._vocabulary or [str(i) for i in range(self._n_classes)]
        best = tf.argmax(scores, axis=-1)[:, None]
        times = tf.stack([tf.shape(scores)[0], 1])
        return {
            "probabilities": tf.nn.softmax(scores),
            "class_ids": best,
            "classes": tf.gather(tf.constant(names), best),
            "all_class_ids": tf.tile([list(range(self._n_classes))], times),
            "all_classes": tf.tile([names], times),
        }

    def export_outputs(
        self, predictions: dict[str, tf.Tensor]
    ) -> dict[str, ExportOutput]:
        """See `Head.export_outputs`."""
        classification = ClassificationOutput(
            predictions["probabilities"], predictions["all_classes"]
        )
        return {
            DEFAULT_SIGNATURE: classification,
            "classification": classification,
            "predict": PredictOutput(predictions),
        }


class _BinaryHead(_ClassHead):
    def labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        """See `Head.labels`."""
        column = label_columns(labels, logits, 1)
        return shares_of(column, self._vocabulary)

    def losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """See `Head.losses`."""
        return tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)

    def predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        """See `Head.predictions`."""
        scores = tf.concat([tf.zeros_like(logits), logits], axis=-1)
        return {
            "logits": logits,
            "logistic": tf.sigmoid(logits),
            **self._of_classes(scores),
        }

    def metrics(
        self,
        labels: tf.Tensor,
        predictions: dict[str, tf.Tensor],
        weights: Any,
    ) -> dict[str, Any]:
        """See `Head.metrics`."""
        logistic, ids = predictions["logistic"], predictions["class_ids"]
        share, count = metrics.mean(labels, weights)
        return {
            "accuracy": metrics.accuracy(labels, ids, weights),
            "accuracy_baseline": (
                tf.maximum(share, 1 - share),
                tf.maximum(count, 1 - count),
            ),
            "auc": metrics.auc(labels, logistic, weights),
            "auc_precision_recall": metrics.auc(
                labels,
                logistic,
                weights,
                curve="PR",
                summation_method="careful_interpolation",
            ),
            "label/mean": (share, count),
            "precision": v1.metrics.precision(labels, ids, weights),
            "prediction/mean": metrics.mean(logistic, weights),
            "recall": v1.metrics.recall(labels, ids, weights),
        }

    def export_outputs(
        self, predictions: dict[str, tf.Tensor]
    ) -> dict[str, ExportOutput]:
        """See `Head.export_outputs`."""
        return {
            **super().export_outputs(predictions),
            "regression": RegressionOutput(predictions["logistic"]),
        }


class _MultiClassHead(_ClassHead):
    def labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        """See `Head.labels`."""
        column = label_columns(labels, logits, 1)
        return class_ids_of(column, self._n_classes, self._vocabulary)

    def losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """See `Head.losses`."""
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels[:, 0], logits
        )
        return losses[:, None]

    def predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        """See `Head.predictions`."""
        return {"logits": logits, **self._of_classes(logits)}

    def metrics(
        self,
        labels: tf.Tensor,
        predictions: dict[str, tf.Tensor],
        weights: Any,
    ) -> dict[str, Any]:
        """See `Head.metrics`."""
        ids = predictions["class_ids"]
        return {"accuracy": metrics.accuracy(labels, ids, weights)}


def _checked_vocabulary(given: Any, n_classes: int) -> list[str] | None:
    if given is None:
        return None
    names = list(given) if isinstance(given, list | tuple) else []
    if not names or not all(isinstance(name, str) for name in names):
        msg = (
            "`label_vocabulary` must be a list of strings, the names of all "
            f"classes in their order. Received: {given!r}."
        )
        raise TypeError(msg)
    if len(set(names)) != n_classes or len(names) != n_classes:
        msg = (
            f"`label_vocabulary` must have n_classes={n_classes} different "
            f"names. Received: {names}."
        )
        raise ValueError(msg)
    return names
