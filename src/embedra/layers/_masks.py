"""Masks of ids that are padding."""

from typing import Any

import keras
import tensorflow as tf

from embedra.lookup import padding_mask


def ids_mask(ids: Any) -> Any:
    """Returns which ids are not padding.

    Args:
        ids: Dense or ragged ids, also symbolic ones.

    Returns:
        `bool`, of the shape of the ids; None for symbolic strings.
    """
    if isinstance(ids, tf.RaggedTensor):
        return ids.with_flat_values(padding_mask(ids.flat_values))
    if isinstance(ids, keras.KerasTensor):
        # Keras cannot compare strings symbolically. Layers that are told of no
        # mask take the one of the ids when they are called.
        if ids.dtype == "string":
            return None
        return keras.ops.not_equal(ids, 0)
    return padding_mask(ids)
