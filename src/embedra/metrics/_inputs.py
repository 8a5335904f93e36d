"""Labels, predictions and weights as vectors of one length."""

from typing import Any, NamedTuple

import tensorflow as tf


class Examples(NamedTuple):
    """What metrics count.

    Attributes:
        labels: In [0, 1], float64, shape `(n,)`.
        predictions: float32, shape `(n,)`.
        weights: float64, shape `(n,)`.
    """

    labels: tf.Tensor
    predictions: tf.Tensor
    weights: tf.Tensor


def examples(labels: Any, predictions: Any, weights: Any) -> Examples:
    """Returns labels, predictions and weights as vectors of one length.

    Args:
        labels: Booleans or numbers.
        predictions: Numbers, as many.
        weights: As many, or one for all, or None for 1.

    Raises:
        ValueError: If there are not as many labels as predictions.
    """
    labels = tf.convert_to_tensor(labels)
    predictions = tf.convert_to_tensor(predictions)
    check_as_many("labels", labels, predictions)
    predictions = tf.reshape(tf.cast(predictions, tf.float32), [-1])
    count = tf.shape(predictions)
    if weights is None:
        weights = tf.ones(count, tf.float64)
    else:
        weights = tf.convert_to_tensor(weights)
        weights = tf.reshape(tf.cast(weights, tf.float64), [-1])
        weights = tf.broadcast_to(weights, count)
    labels = tf.reshape(tf.cast(labels, tf.float64), [-1])
    return Examples(labels, predictions, weights)


def check_as_many(name: str, tensor: tf.Tensor, predictions: tf.Tensor) -> None:
    """Raises unless there is one value for each prediction, if that is known.

    Args:
        name: What the values are.
        tensor: The values.
        predictions: The predictions.

    Raises:
        ValueError: If there are more or fewer.
    """
    counts = (tensor.shape.num_elements(), predictions.shape.num_elements())
    if None not in counts and counts[0] != counts[1]:
        msg = (
            f"`{name}` must have one value for each prediction. Received: "
            f"{name} of shape {tuple(tensor.shape)} and predictions of shape "
            f"{tuple(predictions.shape)}."
        )
        raise ValueError(msg)


def within_0_and_1(predictions: tf.Tensor) -> tf.Tensor:
    """Returns predictions, once it is sure that they are in [0, 1].

    Args:
        predictions: float32. NaN raises, too.
    """
    message = "predictions must be in [0, 1]"
    checks = [
        tf.debugging.assert_greater_equal(predictions, 0.0, message),
        tf.debugging.assert_less_equal(predictions, 1.0, message),
    ]
    # There are none when executing eagerly.
    with tf.control_dependencies([check for check in checks if check]):
        return tf.identity(predictions)
