"""The deep and cross network, version 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from ._cross import Cross
from ._names import functional, layer_names
from ._parts import (
    categorical_inputs,
    check_columns,
    click_probability,
    numeric_inputs,
    tower,
)


def dcn_v2(
    numeric: Sequence[str],
    categorical: Sequence[str],
    *,
    dim: int = 16,
    cross_layers: int = 2,
    cross_rank: int | None = 32,
    deep_units: Sequence[int] = (64, 32),
    dropout: float = 0.0,
    embeddings_initializer: Any = "uniform",
    together: bool = False,
    name: str = "dcn_v2",
) -> keras.Model:
    """Builds a model of the DCN V2 kind, cross and deep network in parallel.

    Args:
        numeric: Names of float32 inputs, shape `[batch]`; NaN is a missing
            value. May be empty.
        categorical: Names of int64 inputs, shape `[batch]`; each has a table
            of its own that grows with the ids it meets.
        dim: Width of the rows.
        cross_layers: Number of crossings; the highest degree of an explicit
            interaction is one more.
        cross_rank: Rank of the matrices of the crossings; `None` for full.
        deep_units: Widths of the hidden layers of the deep network.
        dropout: Share of the units dropped, of features and hidden layers,
            in training.
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
        ValueError: If there is no categorical column, a name is used twice,
            or `cross_rank` is not positive.

    Example:
        >>> model = dcn_v2([], ["site"], dim=4, cross_rank=None)
        >>> model.compile("adagrad", "binary_crossentropy")

    References:
        Wang et al., DCN V2: Improved Deep & Cross Network and Practical
        Lessons for Web-scale Learning to Rank Systems, WWW 2021.
        https://arxiv.org/abs/2008.13535
    """
    check_columns(numeric, categorical)
    layers = layer_names([*numeric, *categorical])
    numbers, numeric_features = numeric_inputs(numeric, layers)
    ids, vectors = categorical_inputs(
        categorical, layers, dim, embeddings_initializer, together=together
    )
    if numeric_features is not None:
        vectors = [numeric_features, *vectors]
    features = (
        keras.layers.Concatenate(name="features")(vectors)
        if len(vectors) > 1
        else vectors[0]
    )
    if dropout:
        features = keras.layers.Dropout(dropout, name="features_dropout")(
            features
        )
    crossed = features
    for i in range(cross_layers):
        crossed = Cross(cross_rank, name=f"cross_{i}")([features, crossed])
    deep = tower(features, deep_units, dropout, "deep")
    x = keras.layers.Concatenate(name="both")([crossed, deep])
    return functional({**numbers, **ids}, click_probability(x), name)
