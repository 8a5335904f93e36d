"""A layer of the cross network, version 2."""

from __future__ import annotations

from typing import Any

import keras
from keras import KerasTensor, ops


@keras.saving.register_keras_serializable(package="embedra")
class Cross(keras.layers.Layer):
    """One explicit crossing: `x0 * (W x + b) + x`.

    Every such layer raises the degree of the feature interactions by one.
    With a `rank`, `W` is the product of two thin matrices, which costs
    `2 * width * rank` weights in place of `width ** 2`.

    Input: a list `[x0, x]` of two tensors of shape `[batch, width]`.
    Output: `[batch, width]`.

    Args:
        rank: Rank of `W`; `None` for a full matrix.
        **kwargs: Those of `keras.layers.Layer`.

    Raises:
        ValueError: If `rank` is not positive.

    References:
        Wang et al., DCN V2: Improved Deep & Cross Network and Practical
        Lessons for Web-scale Learning to Rank Systems, WWW 2021.
    """

    def __init__(self, rank: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if rank is not None and rank < 1:
            msg = f"`rank` must be positive or None. Received: rank={rank}."
            raise ValueError(msg)
        self.rank = rank

    def build(self, input_shape: list[tuple[int | None, ...]]) -> None:
        """Creates the weights."""
        width = input_shape[0][-1]
        self.bias = self.add_weight(
            shape=(width,), initializer="zeros", name="bias"
        )
        if self.rank is None:
            self.kernel = self.add_weight(shape=(width, width), name="kernel")
        else:
            self.down = self.add_weight(shape=(width, self.rank), name="down")
            self.up = self.add_weight(shape=(self.rank, width), name="up")

    def call(self, inputs: list[KerasTensor]) -> KerasTensor:
        """Crosses; see the class."""
        x0, x = inputs
        if self.rank is None:
            mixed = ops.matmul(x, self.kernel)
        else:
            mixed = ops.matmul(ops.matmul(x, self.down), self.up)
        return x0 * (mixed + self.bias) + x

    def compute_output_shape(
        self, input_shape: list[tuple[int | None, ...]]
    ) -> tuple[int | None, ...]:
        """The shape of `x`."""
        return input_shape[1]

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {**super().get_config(), "rank": self.rank}
