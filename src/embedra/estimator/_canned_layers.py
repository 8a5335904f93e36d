"""Layers of deep canned models, in TF1 graphs.

`tf.compat.v1.layers` needs tf_keras, which not every user has.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


v1: Any = tf.compat.v1

# Of batch normalization in `tf.estimator`.
_MOMENTUM = 0.999
_EPSILON = 0.001


def dense(
    inputs: tf.Tensor,
    units: int,
    activation: Callable[[Any], Any] | None,
) -> tf.Tensor:
    """Adds a dense layer, with its weights in the variable scope that is open.

    Args:
        inputs: Shape `(batch, width)`.
        units: Width of the layer.
        activation: What is applied to it, or None.

    Returns:
        `float32`, shape `(batch, units)`.
    """
    kernel = v1.get_variable(
        "kernel",
        (inputs.shape[-1], units),
        initializer=v1.glorot_uniform_initializer(),
    )
    bias = v1.get_variable("bias", (units,), initializer=v1.zeros_initializer())
    outputs = tf.nn.bias_add(tf.matmul(inputs, kernel), bias)
    return outputs if activation is None else activation(outputs)


def batch_norm(inputs: tf.Tensor, *, is_training: bool) -> tf.Tensor:
    """Normalizes over a batch, with weights in the scope that is open.

    Args:
        inputs: Shape `(batch, width)`.
        is_training: Whether to use moments of the batch, and to have the step
            of training follow them, or moments as they were followed.

    Returns:
        `float32`, shape `(batch, width)`.
    """
    shape = inputs.shape[-1:]
    ones, zeros = v1.ones_initializer(), v1.zeros_initializer()
    gamma = v1.get_variable("gamma", shape, initializer=ones)
    beta = v1.get_variable("beta", shape, initializer=zeros)
    mean = v1.get_variable(
        "moving_mean", shape, initializer=zeros, trainable=False
    )
    variance = v1.get_variable(
        "moving_variance", shape, initializer=ones, trainable=False
    )
    used = (mean, variance)
    if is_training:
        used = tf.nn.moments(inputs, axes=[0])
        for moving, now in zip((mean, variance), used, strict=True):
            update = moving.assign_sub((1 - _MOMENTUM) * (moving - now))
            v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
    return tf.nn.batch_normalization(inputs, *used, beta, gamma, _EPSILON)
