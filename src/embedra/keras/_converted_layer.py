"""One `keras.layers.Embedding` as one of Embedra, with its rows."""

from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from embedra.layers import Embedding


# Rows that are copied at a time.
_CHUNK = 65_536


class Rows(NamedTuple):
    """What rows of ids that a converted layer did not have are.

    Attributes:
        initializer: What they start from; None for the layer's own.
        inference_default: What they read as when they are not inserted.
    """

    initializer: Any
    inference_default: Any


def convertible(layer: Any) -> bool:
    """Whether a layer is one that `converted` takes.

    Args:
        layer: Of any kind.
    """
    return type(layer) is keras.layers.Embedding


def converted(layer: keras.layers.Embedding, rows: Rows) -> Embedding:
    """Makes a layer with a table of the same rows.

    Args:
        layer: A layer that is built.
        rows: What the rows of other ids are.

    Returns:
        The new layer, of the same name.

    Raises:
        ValueError: If the layer has what tables have not.
    """
    _check(layer)
    initializer = rows.initializer
    if initializer is None:
        initializer = layer.embeddings_initializer
    try:
        new = Embedding(
            layer.output_dim,
            embeddings_initializer=initializer,
            embeddings_regularizer=layer.embeddings_regularizer,
            embeddings_constraint=layer.embeddings_constraint,
            mask_zero=layer.mask_zero,
            inference_default=rows.inference_default,
            initial_capacity=layer.input_dim,
            activity_regularizer=layer.activity_regularizer,
            name=layer.name,
            dtype=layer.dtype_policy,
            trainable=layer.trainable,
        )
    except (ValueError, tf.errors.InvalidArgumentError) as error:
        msg = f"Layer {layer.name!r} cannot be converted: {error}"
        if rows.initializer is None:
            msg += (
                " What rows of new ids start from can be given as "
                "`initializer`."
            )
        raise ValueError(msg) from error
    for start in range(0, layer.input_dim, _CHUNK):
        keys = np.arange(start, min(start + _CHUNK, layer.input_dim))
        new.table.assign(keys, layer.embeddings[start : start + len(keys)])
    return new


def _check(layer: keras.layers.Embedding) -> None:
    """Raises if a layer has what tables have not."""
    problem = ""
    if not layer.built:
        problem = "it is not built, so it has no rows. Call the model first"
    elif layer.lora_enabled:
        problem = "it has LoRA weights, which tables do not have"
    elif layer.quantization_mode is not None:
        problem = f"it is quantized ({layer.quantization_mode})"
    elif _looks_across_rows(layer.embeddings_regularizer, np.sum, layer):
        problem = (
            "its embeddings_regularizer is more than the sum over rows, but "
            "only the rows of a batch are at hand"
        )
    elif _looks_across_rows(layer.embeddings_constraint, np.concatenate, layer):
        problem = (
            "its embeddings_constraint looks across rows, but only updated "
            "rows are at hand. Of constraints by axis, use axis=1"
        )
    if problem:
        msg = f"Layer {layer.name!r} cannot be converted: {problem}."
        raise ValueError(msg)


def _looks_across_rows(function: Any, join: Any, layer: Any) -> bool:
    """Tries whether a function of a matrix is one of its rows."""
    if function is None:
        return False
    matrix = np.random.default_rng(0).normal(size=(4, layer.output_dim)) * 3
    matrix = matrix.astype("float32")
    whole = keras.ops.convert_to_numpy(function(keras.ops.array(matrix)))
    parts = [
        keras.ops.convert_to_numpy(function(keras.ops.array(matrix[i : i + 1])))
        for i in range(len(matrix))
    ]
    return not np.allclose(join(parts), whole, rtol=1e-4, atol=1e-6)
