"""AUC, for Keras 3."""

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from ._curves import area, check_curve, histogram
from ._inputs import Examples, examples, within_0_and_1


@keras.saving.register_keras_serializable(package="embedra")
class AUC(keras.metrics.Metric):
    """Area under a curve of binary predictions.

    With the same thresholds its numbers are those of `keras.metrics.AUC`. It
    counts in float64, by which it stays exact however long the evaluation, and
    a batch costs the same for any number of thresholds; so there are more of
    them. What is lost is which of two examples between the same two thresholds
    comes first: the ROC area is off by at most half the share of such pairs of
    a positive and a negative example.

    Args:
        num_thresholds: How many thresholds the curve is made of.
        curve: "ROC", or "PR" for precision and recall.
        summation_method: "trapezoidal"; "careful_interpolation", which is the
            right one for "PR"; or "minoring" or "majoring", for a lower and an
            upper bound.
        from_logits: Whether predictions are logits, not probabilities.
        name: Of the metric.
        dtype: Of the result.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> metric = AUC()
        >>> metric.update_state([0, 1, 0, 1], [0.1, 0.9, 0.6, 0.5])
        >>> round(float(metric.result()), 3)
        0.75
    """

    def __init__(
        self,
        num_thresholds: int = 10_000,
        curve: str = "ROC",
        summation_method: str = "careful_interpolation",
        from_logits: bool = False,
        name: str = "auc",
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        check_curve(curve, summation_method, num_thresholds)
        self.num_thresholds = num_thresholds
        self.curve = curve
        self.summation_method = summation_method
        self.from_logits = from_logits
        # More is better, also to Keras's `mode="auto"`.
        self._direction = "up"
        self.counts = self.add_weight(
            shape=(2, num_thresholds + 1),
            initializer="zeros",
            dtype="float64",
            name="counts",
        )

    def update_state(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        """Counts a batch.

        Args:
            y_true: Not 0 where an example is positive.
            y_pred: Predictions, as many.
            sample_weight: Of examples; one for each, or one for all.

        Raises:
            ValueError: If there are not as many labels as predictions.
        """
        batch = examples(y_true, y_pred, sample_weight)
        predictions = batch.predictions
        if self.from_logits:
            predictions = tf.sigmoid(predictions)
        checked = Examples(
            batch.labels, within_0_and_1(predictions), batch.weights
        )
        self.counts.assign_add(histogram(checked, self.num_thresholds))

    def merge_state(self, metrics: Iterable["AUC"]) -> None:
        """Counts what other metrics have counted, too.

        Args:
            metrics: Metrics with as many thresholds.
        """
        for metric in metrics:
            self.counts.assign_add(metric.counts.value)

    def result(self) -> tf.Tensor:
        """Returns the area."""
        found = area(
            tf.convert_to_tensor(self.counts.value),
            self.curve,
            self.summation_method,
        )
        return tf.cast(found, self.dtype)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {
            "num_thresholds": self.num_thresholds,
            "curve": self.curve,
            "summation_method": self.summation_method,
            "from_logits": self.from_logits,
            "name": self.name,
            "dtype": self.dtype,
        }
