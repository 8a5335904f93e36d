"""What the models have in common: inputs, tables, and towers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import KerasTensor

from embedra.layers import Embedding, EmbeddingCollection

from ._numeric_features import NumericFeatures


def check_columns(numeric: Sequence[str], categorical: Sequence[str]) -> None:
    """Refuses names that no model can be built on.

    Raises:
        ValueError: If a name is used twice or no table would be made.
    """
    names = [*numeric, *categorical]
    if not categorical or len(set(names)) != len(names):
        msg = (
            "A model needs one categorical column or more, and each name "
            f"once. Received: numeric={list(numeric)}, "
            f"categorical={list(categorical)}."
        )
        raise ValueError(msg)


def numeric_inputs(
    names: Sequence[str], layers: Mapping[str, str]
) -> tuple[dict[str, KerasTensor], KerasTensor | None]:
    """Inputs for numeric columns, and their joint features if any."""
    inputs = {
        name: keras.Input((), dtype="float32", name=layers[name])
        for name in names
    }
    if not inputs:
        return inputs, None
    return inputs, NumericFeatures(name="numeric")(list(inputs.values()))


def categorical_inputs(
    names: Sequence[str],
    layers: Mapping[str, str],
    dim: int,
    initializer: Any,
    *,
    together: bool,
) -> tuple[dict[str, KerasTensor], list[KerasTensor]]:
    """Inputs for ids, and the rows of one table for each."""
    inputs = {
        name: keras.Input((), dtype="int64", name=layers[name])
        for name in names
    }
    tables = {
        name: Embedding(
            dim,
            # Every table draws its own initial rows from its name.
            embeddings_initializer=initializer,
            name=f"{layers[name]}_table",
        )
        for name in inputs
    }
    if together:
        rows = EmbeddingCollection(tables, name="tables")(inputs)
        return inputs, [rows[name] for name in inputs]
    return inputs, [tables[name](ids) for name, ids in inputs.items()]


def tower(
    x: KerasTensor, units: Sequence[int], dropout: float, name: str
) -> KerasTensor:
    """Dense layers with ReLU, each followed by dropout."""
    for i, width in enumerate(units):
        layer = keras.layers.Dense(width, activation="relu", name=f"{name}_{i}")
        x = layer(x)
        if dropout:
            x = keras.layers.Dropout(dropout, name=f"{name}_{i}_dropout")(x)
    return x


def click_probability(x: KerasTensor) -> KerasTensor:
    """The output, float32 also where the model computes in less."""
    return keras.layers.Dense(
        1, activation="sigmoid", dtype="float32", name="click"
    )(x)
