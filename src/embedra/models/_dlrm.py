"""The deep learning recommendation model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from ._dot_interaction import DotInteraction
from ._names import functional, layer_names
from ._parts import (
    categorical_inputs,
    check_columns,
    click_probability,
    numeric_inputs,
    tower,
)


def dlrm(
    numeric: Sequence[str],
    categorical: Sequence[str],
    *,
    dim: int = 16,
    bottom_units: Sequence[int] = (64,),
    top_units: Sequence[int] = (64, 32),
    dropout: float = 0.0,
    embeddings_initializer: Any = "uniform",
    together: bool = False,
    name: str = "dlrm",
) -> keras.Model:
    """Builds a model of the DLRM kind.

    Numbers pass through the bottom network and become one more vector beside
    the rows of the tables; the dot products of all pairs, together with that
    vector, go to the top network.

    Args:
        numeric: Names of float32 inputs, shape `[batch]`; NaN is a missing
            value. May be empty.
        categorical: Names of int64 inputs, shape `[batch]`; each has a table
            of its own that grows with the ids it meets.
        dim: Width of the rows.
        bottom_units: Widths of the hidden layers of the bottom network,
            before the one of width `dim`.
        top_units: Widths of the hidden layers of the top network.
        dropout: Share of the units dropped, of rows and hidden layers, in
            training.
        embeddings_initializer: Initial rows of every table.
        together: Whether the tables are in one `EmbeddingCollection`, "tables",
            which takes fewer ops, and in a job of several ranks one exchange
            for all. By default they are layers of the model, each named after
            its column. What one kind of model saves, the other does not load.
        name: Name of the model.

    Returns:
        A functional model from a dict of inputs to the probability of a
        click, float32, shape `[batch, 1]`. Not compiled.

    Raises:
        ValueError: If there are fewer than two vectors to multiply, or a
            name is used twice.

    Example:
        >>> model = dlrm(["age"], ["site", "ad"], dim=4)
        >>> model.compile("adam", "binary_crossentropy")

    References:
        Naumov et al., Deep Learning Recommendation Model for Personalization
        and Recommendation Systems, 2019. https://arxiv.org/abs/1906.00091
    """
    check_columns(numeric, categorical)
    if len(categorical) + bool(numeric) < 2:
        msg = (
            "DLRM multiplies pairs of vectors: give two categorical columns, "
            "or one and a numeric column. Received: "
            f"numeric={list(numeric)}, categorical={list(categorical)}."
        )
        raise ValueError(msg)
    layers = layer_names([*numeric, *categorical])
    numbers, numeric_features = numeric_inputs(numeric, layers)
    ids, vectors = categorical_inputs(
        categorical, layers, dim, embeddings_initializer, together=together
    )
    if dropout:
        vectors = [
            keras.layers.Dropout(dropout, name=f"{layers[column]}_dropout")(
                vector
            )
            for column, vector in zip(categorical, vectors, strict=True)
        ]
    if numeric_features is None:
        x = DotInteraction(name="interaction")(vectors)
    else:
        bottom = tower(
            numeric_features, [*bottom_units, dim], dropout, "bottom"
        )
        products = DotInteraction(name="interaction")([bottom, *vectors])
        x = keras.layers.Concatenate(name="features")([bottom, products])
    x = tower(x, top_units, dropout, "top")
    return functional({**numbers, **ids}, click_probability(x), name)
