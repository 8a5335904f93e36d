"""linear_model: a weight for each id, under TensorFlow's name."""

import warnings
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from ._categorical import open_column
from ._embedding_column import DynamicEmbeddingColumn
from ._factories import as_dynamic
from ._input_layer import as_list, without_ragged
from ._inputs import Access, NewInputs
from ._table_names import table_in_scope
from ._tf_columns import is_categorical


_V1: Any = tf.compat.v1


def linear_model(
    features: Mapping[str, Any],
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> tf.Tensor:
    """Sums weights of columns, and a bias: the linear part of a model.

    Ids without a vocabulary have their weights in tables that grow, from zero,
    named as `scope/linear_model/user/weights`. Dense weights and the bias are
    variables of TensorFlow's, so that the function is one for TF1 graphs.

    Args:
        features: Features by name: dense, sparse or ragged.
        feature_columns: Columns, dense or of ids.
        units: Width of the result.
        sparse_combiner: How the weights of an example's ids make one: "sum",
            "mean" or "sqrtn".
        weight_collections: Collections to which dense weights are added.
        trainable: Whether ids are created and weights trained.
        cols_to_vars: Filled with the variables of each column, and of "bias".
            Of a table that is what stands for its rows.

    Returns:
        `float32`, shape `(batch, units)`.

    Raises:
        ValueError: If a feature is missing, or two columns have one name.

    Example:
        >>> from embedra import feature_column as fc
        >>> user = fc.categorical_column_with_embedding("user", tf.int64)
        >>> with tf.Graph().as_default():
        ...     features = {"user": tf.constant([7, 8])}
        ...     fc.linear_model(features, [user]).shape
        TensorShape([2, 1])
    """
    columns = [as_dynamic(column) for column in as_list(feature_columns)]
    is_ours = [is_categorical(c) and bool(open_column(c)) for c in columns]
    theirs = [c for c, ours in zip(columns, is_ours, strict=True) if not ours]
    variables: dict[Any, Any] = {}
    features = without_ragged(features)
    parts = []
    if theirs:
        parts.append(
            _of_tensorflow(
                features,
                theirs,
                units=units,
                sparse_combiner=sparse_combiner,
                weight_collections=weight_collections,
                trainable=trainable,
                cols_to_vars=variables,
            )
        )
    cache = tf.__internal__.feature_column.FeatureTransformationCache(features)
    inputs = NewInputs(cache, None)
    with _V1.variable_scope(None, default_name="linear_model"):
        for column in (
            c for c, ours in zip(columns, is_ours, strict=True) if ours
        ):
            rows = DynamicEmbeddingColumn(
                column,
                units,
                combiner=sparse_combiner,
                initializer=0.0,
                trainable=trainable,
            )
            with _V1.variable_scope(None, default_name=column.name):
                table = table_in_scope(
                    column.name, "weights", **rows.table_arguments()
                )
            parts.append(rows.pooled(table, inputs, Access()))
            variables[column] = [table.trainable_variable.value]
        if not theirs:
            bias = _V1.get_variable(
                "bias_weights",
                shape=(units,),
                initializer=_V1.zeros_initializer(),
                trainable=trainable,
                collections=weight_collections,
            )
            variables["bias"] = [bias]
            parts.append(bias)
    if cols_to_vars is not None:
        cols_to_vars.update(variables)
    # One after another, as a bias is of another shape.
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _of_tensorflow(*args: Any, **kwargs: Any) -> tf.Tensor:
    with warnings.catch_warnings():
        # It is what TensorFlow itself calls there.
        warnings.filterwarnings("ignore", "`layer.add_variable` is deprecated")
        return _V1.feature_column.linear_model(*args, **kwargs)
