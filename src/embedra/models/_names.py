"""Names of layers that Keras and TensorFlow take, for columns of any name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence

import keras
from keras import KerasTensor


# The layers that belong to no column.
_OWN = re.compile(
    r"numeric|tables|features|features_dropout|both|interaction|click"
    r"|(cross|deep|bottom|top)_\d+(_dropout)?"
)
# What a layer of a column may add to its name.
_SUFFIXES = ("", "_table", "_dropout")


def layer_names(columns: Sequence[str]) -> dict[str, str]:
    """A name for the layers of each column, its own wherever that works.

    Args:
        columns: Names of columns, each once.

    Returns:
        From column to a name that, as it is and with `_table` or `_dropout`
        after it, is valid and nobody else's.

    Example:
        >>> layer_names(["site", "user id", "user_id", "numeric"])["user_id"]
        'user_id_1'
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for column in columns:
        valid = re.sub(r"[^A-Za-z0-9_.-]", "_", column)
        if not re.match("[A-Za-z0-9]", valid):
            valid = f"column{valid}"
        name, number = valid, 0
        while _OWN.fullmatch(name) or taken & _with_suffixes(name):
            number += 1
            name = f"{valid}_{number}"
        taken |= _with_suffixes(name)
        names[column] = name
    return names


def _with_suffixes(name: str) -> set[str]:
    return {name + suffix for suffix in _SUFFIXES}


def functional(
    inputs: Mapping[str, KerasTensor], output: KerasTensor, name: str
) -> keras.Model:
    """A model whose inputs are keyed by column, whatever their own names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "When providing `inputs` as a dict")
        return keras.Model(dict(inputs), output, name=name)
