"""Areas under curves, from how predictions spread over thresholds.

The thresholds are those of `tf.compat.v1.metrics.auc` and of
`keras.metrics.AUC`: evenly spaced in [0, 1], with the first and the last one
just outside. A histogram over them is the whole state, in float64: sums stay
exact to 2**53 examples (the float32 of TensorFlow's own end at 2**24), and an
update takes time in proportion to the batch, not times the thresholds.
"""

import numpy as np
import tensorflow as tf

from embedra import _checks

from ._inputs import Examples


CURVES = ("ROC", "PR")
METHODS = ("trapezoidal", "careful_interpolation", "minoring", "majoring")

_OUTSIDE = 1e-7
_EPSILON = 1e-6


def check_curve(curve: str, summation_method: str, num_thresholds: int) -> None:
    """Raises unless there is such a curve.

    Args:
        curve: One of `CURVES`.
        summation_method: One of `METHODS`.
        num_thresholds: At least 2.

    Raises:
        ValueError: If something is out of range.
    """
    _checks.check_one_of("curve", curve, CURVES)
    _checks.check_one_of("summation_method", summation_method, METHODS)
    if num_thresholds < 2:
        msg = (
            "`num_thresholds` must be at least 2. Received: "
            f"num_thresholds={num_thresholds}."
        )
        raise ValueError(msg)


def histogram(examples: Examples, num_thresholds: int) -> tf.Tensor:
    """Counts examples by how many thresholds their prediction is above.

    Args:
        examples: Labels, predictions in [0, 1], and weights.
        num_thresholds: How many thresholds.

    Returns:
        Weights of negative and of positive examples, float64, shape
        `(2, num_thresholds + 1)`.
    """
    inner = np.arange(1, num_thresholds - 1) / (num_thresholds - 1)
    ends = (-_OUTSIDE, 1.0 + _OUTSIDE)
    thresholds = np.array([ends[0], *inner, ends[1]], np.float32)
    above = tf.searchsorted(thresholds, examples.predictions, side="left")
    # As TensorFlow has it, a label that is not 0 is positive.
    positive = tf.cast(tf.not_equal(examples.labels, 0.0), tf.float64)
    weights = [1.0 - positive, positive] * examples.weights
    return tf.transpose(
        tf.math.unsorted_segment_sum(
            tf.transpose(weights), above, num_thresholds + 1
        )
    )


def area(counts: tf.Tensor, curve: str, summation_method: str) -> tf.Tensor:
    """Returns the area under a curve.

    Args:
        counts: A histogram.
        curve: "ROC" or "PR".
        summation_method: One of `METHODS`.

    Returns:
        The area, a float64 scalar.
    """
    above = tf.cumsum(counts, axis=1, exclusive=True, reverse=True)[:, :-1]
    fp, tp = tf.unstack(above)
    tn, fn = tf.unstack(tf.reduce_sum(counts, axis=1, keepdims=True) - above)
    if curve == "PR" and summation_method == "careful_interpolation":
        return _interpolated_pr(tp, fp, fn)
    recall = (tp + _EPSILON) / (tp + fn + _EPSILON)
    if curve == "ROC":
        x, y = fp / (fp + tn + _EPSILON), recall
    else:
        x, y = recall, (tp + _EPSILON) / (tp + fp + _EPSILON)
    heights = {
        "minoring": tf.minimum,
        "majoring": tf.maximum,
    }.get(summation_method, lambda left, right: (left + right) / 2.0)
    return tf.reduce_sum((x[:-1] - x[1:]) * heights(y[:-1], y[1:]))


def _interpolated_pr(tp: tf.Tensor, fp: tf.Tensor, fn: tf.Tensor) -> tf.Tensor:
    """Returns the area with true positives, not precision, as straight lines.

    See Davis and Goadrich, "The Relationship Between Precision-Recall and ROC
    Curves", 2006. Between two thresholds with a and b positive predictions,
    precision is `slope + intercept / positives`; its integral has a logarithm.
    """
    positives = tp + fp
    gained = tp[:-1] - tp[1:]
    slope = tf.math.divide_no_nan(gained, positives[:-1] - positives[1:])
    intercept = tp[1:] - slope * positives[1:]
    both = (positives[:-1] > 0) & (positives[1:] > 0)
    ratio = tf.where(
        both,
        tf.math.divide_no_nan(positives[:-1], positives[1:]),
        tf.ones_like(intercept),
    )
    return tf.reduce_sum(
        tf.math.divide_no_nan(
            slope * (gained + intercept * tf.math.log(ratio)),
            tp[1:] + fn[1:],
        )
    )
