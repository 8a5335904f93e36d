"""Heads: what canned models make of their logits."""

import abc
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from embedra import feature_column, metrics

from ._canned_labels import label_columns, numbers_of
from ._modes import ModeKeys
from ._numbers import is_integer
from ._outputs import ExportOutput, PredictOutput, RegressionOutput
from ._spec import EstimatorSpec


v1: Any = tf.compat.v1

_SUM = v1.losses.Reduction.SUM
_SUM_OVER_BATCH_SIZE = v1.losses.Reduction.SUM_OVER_BATCH_SIZE

# Both by the names of tf.compat.v1 and by those of Keras.
_REDUCTIONS = {
    **{r: r for r in v1.losses.Reduction.all() if r != "none"},
    "sum": _SUM,
    "sum_over_batch_size": _SUM_OVER_BATCH_SIZE,
}

DEFAULT_SIGNATURE = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class Head(abc.ABC):
    """Makes losses, predictions, metrics and signatures of logits.

    Args:
        units: Number of logits of an example.
        weight_column: Name of the feature with weights of examples, a numeric
            column of them, or None.
        loss_reduction: How losses of examples make one: a
            `tf.compat.v1.losses.Reduction`, or a name of Keras.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range.
    """

    def __init__(
        self, units: int, weight_column: Any, loss_reduction: str
    ) -> None:
        if loss_reduction not in list(_REDUCTIONS):
            msg = (
                f"`loss_reduction` must be one of {sorted(_REDUCTIONS)}. "
                f"Received: {loss_reduction!r}."
            )
            raise ValueError(msg)
        self.units = units
        self._weight_column = _weights_as_column(weight_column)
        self._reduction = _REDUCTIONS[loss_reduction]

    @abc.abstractmethod
    def labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        """Returns labels in the form that `losses` takes.

        Args:
            labels: As the input function gives them.
            logits: Of the same examples, shape `(batch, units)`.
        """

    @abc.abstractmethod
    def losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Returns a loss for each label, of rank 2.

        Args:
            labels: As `labels` returns them.
            logits: Of the same examples, shape `(batch, units)`.
        """

    @abc.abstractmethod
    def predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns predictions by name.

        Args:
            logits: Shape `(batch, units)`.
        """

    @abc.abstractmethod
    def metrics(
        self,
        labels: tf.Tensor,
        predictions: dict[str, tf.Tensor],
        weights: Any,
    ) -> dict[str, Any]:
        """Returns metrics by name, besides the mean of the losses.

        Args:
            labels: As `labels` returns them.
            predictions: As `predictions` returns them.
            weights: Of examples.
        """

    @abc.abstractmethod
    def export_outputs(
        self, predictions: dict[str, tf.Tensor]
    ) -> dict[str, ExportOutput]:
        """Returns what signatures give, by name.

        Args:
            predictions: As `predictions` returns them.
        """

    def spec(
        self,
        features: Any,
        labels: Any,
        mode: str,
        logits: tf.Tensor,
        train_op: Callable[[tf.Tensor], Any],
    ) -> EstimatorSpec:
        """Returns what the model function returns.

        Args:
            features: What the model sees, by name.
            labels: What it is to learn, or None.
            mode: One of `ModeKeys`.
            logits: Shape `(batch, units)`.
            train_op: Makes the op of a training step, given the loss.

        Raises:
            ValueError: If labels are missing, or do not fit.
        """
        predictions = self.predictions(logits)
        if mode == ModeKeys.PREDICT:
            outputs = self.export_outputs(predictions)
            return EstimatorSpec(mode, predictions, export_outputs=outputs)
        labels = self.labels(labels, logits)
        weights = self._weights(features)
        losses = self.losses(labels, logits)
        loss = v1.losses.compute_weighted_loss(
            losses, weights, reduction=self._reduction
        )
        if mode == ModeKeys.TRAIN:
            if self._reduction == _SUM:
                total = tf.reduce_sum(weights * tf.ones_like(losses))
                v1.summary.scalar("average_loss", loss / total)
            return EstimatorSpec(mode, predictions, loss, train_op(loss))
        measured = {
            "average_loss": metrics.mean(losses, weights),
            **self.metrics(labels, predictions, weights),
        }
        return EstimatorSpec(mode, predictions, loss, eval_metric_ops=measured)

    def _weights(self, features: Any) -> Any:
        if self._weight_column is None:
            return 1.0
        feature = features.get(self._weight_column.key)
        if getattr(feature, "dtype", None) == tf.string:
            msg = (
                f"Feature {self._weight_column.key!r} has the weights of "
                "examples, which must be numbers. Received: dtype=string."
            )
            raise ValueError(msg)
        (weights,) = feature_column.dense_features(
            features, [self._weight_column]
        )
        return weights


class RegressionHead(Head):
    """Predicts numbers, of which the squared error is the loss.

    Args:
        label_dimension: Number of labels of an example.
        weight_column: See `Head`.
        loss_reduction: See `Head`.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range.
    """

    def __init__(
        self, label_dimension: Any, weight_column: Any, loss_reduction: str
    ) -> None:
        if not is_integer(label_dimension) or label_dimension < 1:
            msg = (
                "`label_dimension` must be an integer from 1 on. Received: "
                f"{label_dimension!r}."
            )
            raise ValueError(msg)
        super().__init__(int(label_dimension), weight_column, loss_reduction)

    def labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        """See `Head.labels`."""
        return numbers_of(label_columns(labels, logits, self.units))

    def losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """See `Head.losses`."""
        return tf.math.squared_difference(logits, labels)

    def predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        """See `Head.predictions`."""
        return {"predictions": logits}

    def metrics(
        self,
        labels: tf.Tensor,
        predictions: dict[str, tf.Tensor],
        weights: Any,
    ) -> dict[str, Any]:
        """See `Head.metrics`."""
        return {
            "label/mean": metrics.mean(labels, weights),
            "prediction/mean": metrics.mean(
                predictions["predictions"], weights
            ),
        }

    def export_outputs(
        self, predictions: dict[str, tf.Tensor]
    ) -> dict[str, ExportOutput]:
        """See `Head.export_outputs`."""
        regression = RegressionOutput(predictions["predictions"])
        return {
            DEFAULT_SIGNATURE: regression,
            "regression": regression,
            "predict": PredictOutput(predictions),
        }


def _weights_as_column(given: Any) -> Any:
    if isinstance(given, str):
        return feature_column.numeric_column(given)
    if given is None or getattr(given, "shape", None) in ((), (1,)):
        return given
    msg = (
        "`weight_column` must be the name of a feature, or a numeric_column "
        f"of shape (1,). Received: {given!r}."
    )
    raise TypeError(msg)
