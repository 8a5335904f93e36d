"""Labels of canned models: a column for each number that a model predicts."""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf


v1: Any = tf.compat.v1


def label_columns(labels: Any, logits: tf.Tensor, width: int) -> tf.Tensor:
    """Returns labels as a matrix.

    Args:
        labels: Shape `(batch, width)`, or `(batch,)` for a width of 1.
        logits: Of the same examples, shape `(batch, units)`.
        width: Number of labels of an example.

    Returns:
        The labels, shape `(batch, width)`.

    Raises:
        ValueError: If there are none, or they are of another shape.
    """
    if labels is None:
        msg = (
            "The model needs labels to train and evaluate on, but the input "
            "function gives none. Have it return (features, labels)."
        )
        raise ValueError(msg)
    if isinstance(labels, Mapping | tf.SparseTensor | tf.RaggedTensor):
        msg = (
            f"Labels must be one dense tensor of shape (batch, {width}). "
            f"Received: {labels!r}."
        )
        raise ValueError(msg)
    labels = tf.convert_to_tensor(labels)
    if labels.shape.rank is None:
        first = tf.shape(labels)[:1]
        labels = tf.reshape(labels, tf.concat([first, [-1]], axis=0))
    if labels.shape.rank == 1:
        labels = labels[:, None]
    if not labels.shape.is_compatible_with([logits.shape[0], width]):
        msg = (
            f"Labels must be of shape (batch, {width}), for predictions of "
            f"shape {tuple(logits.shape)}. Received: shape "
            f"{tuple(labels.shape)}."
        )
        raise ValueError(msg)
    wanted = tf.stack([tf.shape(logits)[0], width])
    same = v1.debugging.assert_equal(
        tf.shape(labels),
        wanted,
        message=f"Labels must be of shape (batch, {width}).",
    )
    with tf.control_dependencies([same]):
        return tf.ensure_shape(tf.identity(labels), [None, width])


def numbers_of(labels: tf.Tensor) -> tf.Tensor:
    """Returns labels that are numbers as `float32`.

    Args:
        labels: The labels.

    Raises:
        ValueError: If they are strings.
    """
    if labels.dtype == tf.string:
        msg = (
            "Labels must be numbers. Received: dtype=string. Turn them into "
            "numbers in the input function, as tf.strings.to_number does."
        )
        raise ValueError(msg)
    return tf.cast(labels, tf.float32)


def shares_of(labels: tf.Tensor, vocabulary: Sequence[str] | None) -> tf.Tensor:
    """Returns how far examples are of the second of two classes.

    Args:
        labels: Names of classes if there is a vocabulary, else numbers from 0
            to 1.
        vocabulary: Names of the two classes in their order, or None.

    Returns:
        The shares, `float32`; running it fails for other labels.

    Raises:
        ValueError: If labels are strings, and there is no vocabulary, or the
            other way round.
    """
    if vocabulary is not None or not labels.dtype.is_floating:
        return tf.cast(class_ids_of(labels, 2, vocabulary), tf.float32)
    wanted = "Labels must be numbers from 0 to 1."
    shares = tf.cast(labels, tf.float32)
    with tf.control_dependencies(
        [
            v1.debugging.assert_non_negative(shares, message=wanted),
            v1.debugging.assert_less_equal(shares, 1.0, message=wanted),
        ]
    ):
        return tf.identity(shares)


def class_ids_of(
    labels: tf.Tensor, n_classes: int, vocabulary: Sequence[str] | None
) -> tf.Tensor:
    """Returns numbers of classes.

    Args:
        labels: Names of classes if there is a vocabulary, else numbers.
        n_classes: How many classes there are.
        vocabulary: Names of classes in their order, or None.

    Returns:
        The numbers, `int64`, from 0; running it fails for other classes.

    Raises:
        ValueError: If labels are strings, and there is no vocabulary, or the
            other way round.
    """
    if vocabulary is None:
        if labels.dtype == tf.string:
            msg = (
                "Labels are strings, for which the model needs "
                "`label_vocabulary`: the names of all classes in their order."
            )
            raise ValueError(msg)
        wanted = f"Labels must be whole numbers from 0 to {n_classes - 1}."
        ids = tf.cast(labels, tf.int64)
        whole = tf.cast(ids, labels.dtype)
        checks = [v1.debugging.assert_equal(labels, whole, message=wanted)]
    else:
        if labels.dtype != tf.string:
            msg = (
                "Labels must be strings, as a `label_vocabulary` was given. "
                f"Received: dtype={labels.dtype.name}."
            )
            raise ValueError(msg)
        wanted = f"Labels must be in label_vocabulary={list(vocabulary)}."
        ids, checks = _numbers(labels, vocabulary), []
    checks += [
        v1.debugging.assert_non_negative(ids, message=wanted),
        v1.debugging.assert_less(
            ids, tf.cast(n_classes, tf.int64), message=wanted
        ),
    ]
    with tf.control_dependencies(checks):
        return tf.identity(ids)


def _numbers(labels: tf.Tensor, vocabulary: Sequence[str]) -> tf.Tensor:
    numbers = tf.range(len(vocabulary), dtype=tf.int64)
    entries = tf.lookup.KeyValueTensorInitializer(list(vocabulary), numbers)
    found: tf.Tensor = tf.lookup.StaticHashTable(entries, -1).lookup(labels)
    return found
