"""Functions that give the tensors of columns, under TensorFlow's names."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from ._arguments import check_names
from ._factories import as_dynamic
from ._inputs import transformation_cache
from ._table_names import scope_part, used_tables
from ._tf_columns import is_column, is_stock_embedding


_V1: Any = tf.compat.v1.feature_column


def input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> tf.Tensor:
    """Joins the tensors of columns, in the order of their names.

    Columns of tables that grow may be among TensorFlow's own, in TF1 graphs, in
    functions and eagerly. Their tables are named after the variable scope and
    the column, as `scope/input_layer/user_embedding/embedding_weights`; outside
    of TF1 graphs these names are the process's. Ids are created if and when
    gradients are computed, so that evaluation and prediction change nothing.

    Args:
        features: Features by name: dense, sparse or ragged.
        feature_columns: A column, or several.
        weight_collections: Collections to which dense weights are added.
        trainable: Whether ids are created and weights trained.
        cols_to_vars: Filled with the variables of each column. Of a table that
            is what stands for its rows.
        cols_to_output_tensors: Filled with the tensor of each column.

    Returns:
        `float32`, shape `(batch, width of all columns)`.

    Raises:
        ValueError: If a column is not dense, a feature is missing, or two
            columns have one name.

    Example:
        >>> from embedra import feature_column as fc
        >>> user = fc.categorical_column_with_embedding("user", tf.int64)
        >>> column = fc.embedding_column(user, 8)
        >>> fc.input_layer({"user": [7, 8]}, [column]).shape
        TensorShape([2, 8])
    """
    given = as_list(feature_columns)
    columns = [as_dynamic(column) for column in given]
    tensors: dict[Any, Any] = {}
    variables: dict[Any, Any] = {}
    with used_tables() as tables:
        joined = _V1.input_layer(
            without_ragged(features),
            columns,
            weight_collections=weight_collections,
            trainable=trainable,
            cols_to_vars=variables,
            cols_to_output_tensors=tensors,
        )
    for asked, column in zip(given, columns, strict=True):
        if cols_to_output_tensors is not None:
            cols_to_output_tensors[asked] = tensors[column]
        if cols_to_vars is not None:
            table = tables.get(column.name)
            cols_to_vars[asked] = (
                [table.trainable_variable.value] if table else variables[column]
            )
    return joined


def dense_features(
    features: Mapping[str, Any], feature_columns: Any
) -> list[tf.Tensor]:
    """Returns the tensors of columns, one for each, in the order given.

    Args:
        features: Features by name: dense, sparse or ragged.
        feature_columns: A column, or several.

    Returns:
        `float32` tensors, shape `(batch, width of the column)`.

    Example:
        >>> from embedra import feature_column as fc
        >>> user = fc.categorical_column_with_embedding("user", tf.int64)
        >>> columns = [fc.numeric_column("age"), fc.embedding_column(user, 8)]
        >>> features = {"user": [7, 8], "age": [33.0, 44.0]}
        >>> [tensor.shape[1] for tensor in fc.dense_features(features, columns)]
        [1, 8]
    """
    columns = as_list(feature_columns)
    tensors: dict[Any, Any] = {}
    input_layer(features, columns, cols_to_output_tensors=tensors)
    return [tensors[column] for column in columns]


def sequence_input_layer(
    features: Mapping[str, Any], feature_columns: Any
) -> tuple[tf.Tensor, tf.Tensor]:
    """Joins the tensors of columns of sequences, in the order of their names.

    Args:
        features: Features by name: sparse or ragged ones, or dense ids.
        feature_columns: A column over
            `sequence_categorical_column_with_embedding`, or several.

    Returns:
        `float32`, shape `(batch, time, width of all columns)`, and the length
        of each sequence, `int64`, shape `(batch,)`. Where a column's sequence
        is shorter than another's, its part has zeros.

    Raises:
        ValueError: If a column is not of sequences.

    Example:
        >>> from embedra import feature_column as fc
        >>> visited = fc.sequence_categorical_column_with_embedding("visited")
        >>> features = {"visited": tf.ragged.constant([["a", "b"], ["c"]])}
        >>> rows, lengths = fc.sequence_input_layer(
        ...     features, [fc.embedding_column(visited, 8)]
        ... )
        >>> rows.shape, lengths.numpy().tolist()
        (TensorShape([2, 2, 8]), [2, 1])
    """
    columns = [as_dynamic(column) for column in as_list(feature_columns)]
    check_names(columns, "sequence_input_layer")
    cache = transformation_cache(without_ragged(features))
    rows, lengths = [], []
    with tf.compat.v1.variable_scope(None, default_name="sequence_input_layer"):
        for column in sorted(columns, key=lambda column: column.name):
            _check_sequence(column)
            scope = scope_part(column.name)
            with tf.compat.v1.variable_scope(None, default_name=scope):
                pair = column.get_sequence_dense_tensor(cache, None)
            rows.append(pair.dense_tensor)
            lengths.append(pair.sequence_length)
    longest = tf.reduce_max(tf.stack(lengths), axis=0)
    return tf.concat(_of_one_length(rows), axis=-1), longest


def _of_one_length(rows: list[tf.Tensor]) -> list[tf.Tensor]:
    """Pads sequences with zeros to the longest of all columns.

    Args:
        rows: Of each column, shape `(batch, time, dim)`.
    """
    if len(rows) == 1:
        return rows
    times = tf.stack([tf.shape(one)[1] for one in rows])
    lacking = tf.unstack(tf.reduce_max(times) - times)
    padded = []
    for one, more in zip(rows, lacking, strict=True):
        longer = tf.pad(one, [[0, 0], [0, more], [0, 0]])
        padded.append(
            tf.ensure_shape(longer, (one.shape[0], None, one.shape[2]))
        )
    return padded


def _check_sequence(column: Any) -> None:
    if not hasattr(column, "get_sequence_dense_tensor"):
        msg = f"Column {column!r} is not of sequences."
        raise ValueError(msg)
    if is_stock_embedding(column):
        msg = (
            f"The dense weights of column {column.name!r} have no place in "
            "sequence_input_layer. Make the column with "
            "embedding_column(..., dynamic=True)."
        )
        raise ValueError(msg)


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """Returns how `tf.io.parse_example` reads the features of columns.

    Args:
        feature_columns: Columns, also of ids.

    Returns:
        What it takes as `features`.

    Raises:
        ValueError: If two columns read one feature in different ways.

    Example:
        >>> from embedra import feature_column as fc
        >>> user = fc.categorical_column_with_embedding("user", tf.int64)
        >>> fc.make_parse_example_spec([fc.embedding_column(user, 8)])
        {'user': VarLenFeature(dtype=tf.int64)}
    """
    spec: dict[str, Any] = _V1.make_parse_example_spec(as_list(feature_columns))
    return spec


def as_list(columns: Any) -> list[Any]:
    """Returns one column, or several, as a list.

    Args:
        columns: A column, or any iterable of them.

    Raises:
        ValueError: If columns are given by name.
    """
    if isinstance(columns, Mapping):
        msg = (
            "Columns must be in a list, not by name. Received: "
            f"{sorted(columns)}."
        )
        raise ValueError(msg)
    if is_column(columns):
        return [columns]
    return list(columns)


def without_ragged(features: Any) -> dict[str, Any]:
    """Returns features of which ragged ones are sparse.

    Args:
        features: Features by name.

    Raises:
        TypeError: If they are not given by name.
        ValueError: If one is None.
    """
    if not isinstance(features, Mapping):
        msg = (
            "`features` must be a dict of features by their names. Received: "
            f"{features!r}."
        )
        raise TypeError(msg)
    for name, value in features.items():
        if value is None:
            msg = (
                f"Feature {name!r} must be a dense, sparse or ragged tensor. "
                "Received: None."
            )
            raise ValueError(msg)
    return {
        name: value.to_sparse() if isinstance(value, tf.RaggedTensor) else value
        for name, value in features.items()
    }
