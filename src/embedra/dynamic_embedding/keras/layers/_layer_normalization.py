"""LayerNormalization: Keras's own, for ragged inputs too."""

from typing import Any

import keras
import tensorflow as tf

from ._embedding import PACKAGE


@keras.saving.register_keras_serializable(package=PACKAGE)
class LayerNormalization(keras.layers.LayerNormalization):
    """Normalizes inputs of which only the normalized dimensions are known.

    In Keras 3 the stock layer already takes other dimensions of any size. This
    one also takes ragged inputs, as ragged ids give them, and normalizes each
    of their rows by itself. Arguments are those of
    `keras.layers.LayerNormalization`.

    Example:
        >>> layer = LayerNormalization()
        >>> rows = tf.ragged.constant(
        ...     [[[1.0, 3.0]], [[2.0, 4.0], [5.0, 7.0]]], ragged_rank=1
        ... )
        >>> layer(rows).shape
        TensorShape([2, None, 2])
    """

    axis: Any

    def call(self, inputs: Any) -> Any:
        """Normalizes inputs.

        Args:
            inputs: A dense or ragged tensor.

        Returns:
            The same structure, of the compute dtype.

        Raises:
            ValueError: If a ragged dimension is to be normalized.
        """
        if not isinstance(inputs, tf.RaggedTensor):
            return super().call(inputs)
        rank = inputs.shape.rank
        axes = [axis if axis < 0 else axis - rank for axis in self.axis]
        if min(axes) <= -inputs.flat_values.shape.rank:
            msg = (
                f"Layer {self.name!r} cannot normalize ragged dimensions. "
                f"Received: axis={self.axis} for inputs of shape "
                f"{tuple(inputs.shape)}, of which "
                f"{inputs.ragged_rank + 1} are batch and ragged dimensions."
            )
            raise ValueError(msg)
        if axes != self.axis:
            # Of the flat values, which have other dimensions before these.
            self.axis = axes
        return inputs.with_flat_values(super().call(inputs.flat_values))
