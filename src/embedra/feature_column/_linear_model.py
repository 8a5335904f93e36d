"""linear_model: a weight for each id, under TensorFlow's name."""

import functools
import operator
import warnings
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from ._arguments import check_names
from ._categorical import open_column
from ._embedding_column import DynamicEmbeddingColumn
from ._factories import as_dynamic
from ._input_layer import as_list, without_ragged
from ._inputs import Access, Inputs, NewInputs, transformation_cache
from ._table_names import scope_part, table_in_scope
from ._tf_columns import is_categorical, is_sequence


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
    check_names(columns, "linear_model")
    ours = [c for c in columns if is_categorical(c) and open_column(c)]
    theirs = [c for c in columns if c not in ours]
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
    inputs = NewInputs(transformation_cache(features), None)
    with _V1.variable_scope(None, default_name="linear_model"):
        for column in ours:
            weights = DynamicEmbeddingColumn(
                # The order of ids in a sequence is nothing to a sum.
                column.categorical_column if is_sequence(column) else column,
                units,
                combiner=sparse_combiner,
                initializer=0.0,
                trainable=trainable,
            )
            part, variables[column] = _of_table(weights, inputs)
            parts.append(part)
        if not theirs:
            bias = _bias(units, trainable, weight_collections)
            variables["bias"] = [bias]
            parts.append(bias)
    if cols_to_vars is not None:
        cols_to_vars.update(variables)
    # One after another, as a bias is of another shape.
    return functools.reduce(operator.add, parts)


def _of_table(
    weights: DynamicEmbeddingColumn, inputs: Inputs
) -> tuple[tf.Tensor, list[Any]]:
    """Returns the sum of the weights of ids, and what stands for them."""
    name = weights.categorical_column.name
    with _V1.variable_scope(None, default_name=scope_part(name)):
        table = table_in_scope(name, "weights", **weights.table_arguments())
    total = weights.pooled(table, inputs, Access())
    return total, [table.trainable_variable.value]


def _bias(units: int, trainable: bool, collections: Any) -> tf.Variable:
    return _V1.get_variable(
        "bias_weights",
        shape=(units,),
        initializer=_V1.zeros_initializer(),
        trainable=trainable,
        collections=collections,
    )


def _of_tensorflow(*args: Any, **kwargs: Any) -> tf.Tensor:
    with warnings.catch_warnings():
        # It is what TensorFlow itself calls there.
        warnings.filterwarnings("ignore", "`layer.add_variable` is deprecated")
        return _V1.feature_column.linear_model(*args, **kwargs)
