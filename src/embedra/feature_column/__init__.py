"""Feature columns: those of TensorFlow, and columns of tables that grow.

All names of `tf.feature_column` and `tf.compat.v1.feature_column` are here.
Those that this package defines take TensorFlow's columns too; the others are
TensorFlow's own. Columns of tables can also be given to TensorFlow's functions.
"""

from typing import Any

import tensorflow as tf

from ._categorical import (
    categorical_column_with_embedding as categorical_column_with_embedding,
    sequence_categorical_column_with_embedding as sequence_categorical_column_with_embedding,  # noqa: E501
)
from ._dense_features import DenseFeatures as DenseFeatures
from ._factories import (
    embedding_column as embedding_column,
    indicator_column as indicator_column,
    shared_embedding_columns as shared_embedding_columns,
    weighted_categorical_column as weighted_categorical_column,
)
from ._input_layer import (
    dense_features as dense_features,
    input_layer as input_layer,
    make_parse_example_spec as make_parse_example_spec,
    sequence_input_layer as sequence_input_layer,
)
from ._linear_model import linear_model as linear_model


_THEIRS = (tf.feature_column, tf.compat.v1.feature_column)


def __getattr__(name: str) -> Any:
    for module in _THEIRS:
        if not name.startswith("_") and hasattr(module, name):
            return getattr(module, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    theirs = (name for module in _THEIRS for name in dir(module))
    return sorted({*globals(), *(n for n in theirs if not n.startswith("_"))})
