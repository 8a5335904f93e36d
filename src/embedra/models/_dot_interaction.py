"""Pairwise dot products of feature vectors."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np
from keras import KerasTensor, ops


@keras.saving.register_keras_serializable(package="embedra")
class DotInteraction(keras.layers.Layer):
    """The dot product of every two different vectors of a list.

    Input: a list of `n >= 2` tensors of shape `[batch, dim]`.
    Output: `[batch, n * (n - 1) / 2]`, pairs in the order (1, 0), (2, 0),
    (2, 1), (3, 0), ...

    Example:
        >>> layer = DotInteraction()
        >>> a, b = ops.array([[1.0, 2.0]]), ops.array([[3.0, 4.0]])
        >>> layer([a, b]).numpy().tolist()
        [[11.0]]
    """

    def call(self, inputs: Sequence[KerasTensor]) -> KerasTensor:
        """Multiplies the vectors; see the class."""
        count = len(inputs)
        vectors = ops.stack(list(inputs), axis=1)
        products = ops.matmul(vectors, ops.transpose(vectors, (0, 2, 1)))
        rows, columns = np.tril_indices(count, k=-1)
        flat = ops.reshape(products, (-1, count * count))
        return ops.take(flat, rows * count + columns, axis=1)

    def compute_output_shape(
        self, input_shape: Sequence[tuple[int | None, ...]]
    ) -> tuple[int | None, int]:
        """`[batch, n * (n - 1) / 2]`."""
        count = len(input_shape)
        return (input_shape[0][0], count * (count - 1) // 2)
