"""From blocks to the tensors that a Keras model takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from ._block import Block
from ._columns import Columns


def to_dataset(
    blocks: Callable[[], Iterator[Block]], columns: Columns
) -> tf.data.Dataset:
    """Makes a dataset of `(features, labels)`, one element for each block.

    Args:
        blocks: Starts the stream; called at each iteration of the dataset.
        columns: Names of the columns of the blocks.

    Returns:
        Features are a dict from column name to a `[rows]` tensor: float32
        for numeric, int64 for categorical columns. Labels are `[rows]`
        float32.
    """

    def arrays() -> Iterator[tuple[npt.NDArray[np.generic], ...]]:
        for block in blocks():
            yield block.numeric, block.categorical, block.labels

    def name_columns(
        numeric: tf.Tensor, categorical: tf.Tensor, labels: tf.Tensor
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        values = [
            *tf.unstack(numeric, len(columns.numeric), axis=1),
            *tf.unstack(categorical, len(columns.categorical), axis=1),
        ]
        return dict(zip(columns.features, values, strict=True)), labels

    data = tf.data.Dataset.from_generator(
        arrays,
        output_signature=(
            tf.TensorSpec([None, len(columns.numeric)], tf.float32),
            tf.TensorSpec([None, len(columns.categorical)], tf.int64),
            tf.TensorSpec([None], tf.float32),
        ),
    )
    return data.map(name_columns).prefetch(4)
