"""Numbers as they come, made fit for a network."""

from __future__ import annotations

from collections.abc import Sequence

import keras
from keras import KerasTensor, ops


@keras.saving.register_keras_serializable(package="embedra")
class NumericFeatures(keras.layers.Layer):
    """Joins numeric features: compressed values and missing indicators.

    Each value `x` becomes `sign(x) * log(1 + |x|)`, which tames counts that
    range over many orders of magnitude, and an indicator, 1 where the value
    is missing (NaN). A missing value itself becomes 0. Being part of the
    model, the treatment is the same in training and in serving.

    Input: a list of `n` float tensors of shape `[batch]`.
    Output: `[batch, 2 * n]`, in the layer's compute dtype.

    Example:
        >>> layer = NumericFeatures()
        >>> layer([ops.array([0.0, float("nan")])]).numpy().tolist()
        [[0.0, 0.0], [0.0, 1.0]]
    """

    def call(self, inputs: Sequence[KerasTensor]) -> KerasTensor:
        """Transforms the features; see the class."""
        values = ops.stack(list(inputs), axis=1)
        missing = ops.isnan(values)
        values = ops.where(missing, ops.zeros_like(values), values)
        values = ops.sign(values) * ops.log1p(ops.abs(values))
        indicators = ops.cast(missing, values.dtype)
        return ops.concatenate([values, indicators], axis=1)

    def compute_output_shape(
        self, input_shape: Sequence[tuple[int | None, ...]]
    ) -> tuple[int | None, int]:
        """`[batch, 2 * n]`."""
        return (input_shape[0][0], 2 * len(input_shape))
