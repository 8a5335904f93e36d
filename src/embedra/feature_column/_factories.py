"""Functions that make columns of rows, under the names of TensorFlow."""

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from ._arguments import (
    check_alike,
    check_categorical,
    check_no_checkpoint,
    checked,
    is_dynamic,
)
from ._categorical import open_column
from ._embedding_column import DynamicEmbeddingColumn
from ._tf_columns import is_column, is_stock_embedding


def embedding_column(
    categorical_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
    dynamic: bool | None = None,
) -> Any:
    """Makes a column of rows, one for each example.

    Args:
        categorical_column: Column of ids, weighted or not.
        dimension: Width of a row.
        combiner: "sum" of the rows of an example's ids, or that divided by the
            sum of their weights ("mean"), or by the root of the sum of their
            squares ("sqrtn").
        initializer: What ids start from; see
            `embedra.table.resolve_initializer`. By default a normal of standard
            deviation `1 / sqrt(dimension)`, cut at two of them.
        ckpt_to_load_from: For dense weights only.
        tensor_name_in_ckpt: For dense weights only.
        max_norm: Longest L2 norm of a row before it is combined, or None.
        trainable: Whether rows are trained.
        use_safe_embedding_lookup: Whether ids whose weight is not positive are
            left out, unless the combiner is "sum".
        dynamic: Whether rows are in a table that grows, rather than a dense
            variable. By default they are if the ids have no vocabulary. Ids of
            a vocabulary may be in a table too: only those seen take memory.

    Returns:
        The column.

    Raises:
        NotImplementedError: If rows of a table are to come from a checkpoint.
        TypeError: If `categorical_column` is none.
        ValueError: If an argument is out of range.

    Example:
        >>> from embedra import feature_column as fc
        >>> user = fc.categorical_column_with_embedding("user", tf.int64)
        >>> column = fc.embedding_column(user, 8)
        >>> column.name, column.variable_shape
        ('user_embedding', TensorShape([8]))
    """
    if not is_dynamic([categorical_column], dynamic):
        return tf.feature_column.embedding_column(
            categorical_column,
            dimension,
            combiner=combiner,
            initializer=initializer,
            ckpt_to_load_from=ckpt_to_load_from,
            tensor_name_in_ckpt=tensor_name_in_ckpt,
            max_norm=max_norm,
            trainable=trainable,
            use_safe_embedding_lookup=use_safe_embedding_lookup,
        )
    check_no_checkpoint(
        categorical_column, ckpt_to_load_from, tensor_name_in_ckpt
    )
    return checked(
        DynamicEmbeddingColumn(
            categorical_column,
            dimension,
            combiner=combiner,
            initializer=initializer,
            max_norm=max_norm,
            trainable=trainable,
            use_safe_embedding_lookup=use_safe_embedding_lookup,
        )
    )


def shared_embedding_columns(
    categorical_columns: Sequence[Any],
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
    dynamic: bool | None = None,
) -> list[Any]:
    """Makes columns of rows that have one table in common.

    Args:
        categorical_columns: Columns of ids, weighted or not.
        dimension: Width of a row.
        combiner: As of `embedding_column`, like all that have its names.
        initializer: What ids start from.
        shared_embedding_collection_name: Name of the table, whatever the
            variable scope; by default made of the names of the columns.
        ckpt_to_load_from: For dense weights only.
        tensor_name_in_ckpt: For dense weights only.
        max_norm: Longest L2 norm of a row before it is combined, or None.
        trainable: Whether rows are trained.
        use_safe_embedding_lookup: Whether ids whose weight is not positive are
            left out, unless the combiner is "sum".
        dynamic: Whether rows are in a table that grows.

    Returns:
        The columns, in the order given.

    Raises:
        NotImplementedError: If rows of a table are to come from a checkpoint.
        TypeError: If one of the columns is none of ids, or it is one alone.
        ValueError: If there are no columns, an argument is out of range, or
            the columns differ in more than their names.

    Example:
        >>> from embedra import feature_column as fc
        >>> columns = fc.shared_embedding_columns(
        ...     [
        ...         fc.categorical_column_with_embedding(key)
        ...         for key in ("seen", "bought")
        ...     ],
        ...     dimension=8,
        ... )
        >>> [column.name for column in columns]
        ['seen_shared_embedding', 'bought_shared_embedding']
    """
    if is_column(categorical_columns) or not isinstance(
        categorical_columns, Iterable
    ):
        msg = (
            "`categorical_columns` of shared_embedding_columns must be a list "
            f"of columns. Received: {categorical_columns!r}."
        )
        raise TypeError(msg)
    columns = list(categorical_columns)
    if not columns:
        msg = "`categorical_columns` of shared_embedding_columns is empty."
        raise ValueError(msg)
    if not is_dynamic(columns, dynamic):
        return list(
            tf.compat.v1.feature_column.shared_embedding_columns(
                columns,
                dimension,
                combiner=combiner,
                initializer=initializer,
                shared_embedding_collection_name=(
                    shared_embedding_collection_name
                ),
                ckpt_to_load_from=ckpt_to_load_from,
                tensor_name_in_ckpt=tensor_name_in_ckpt,
                max_norm=max_norm,
                trainable=trainable,
                use_safe_embedding_lookup=use_safe_embedding_lookup,
            )
        )
    check_no_checkpoint(columns[0], ckpt_to_load_from, tensor_name_in_ckpt)
    check_alike(columns)
    names = "_".join(sorted(column.name for column in columns))
    shared_name = shared_embedding_collection_name
    return [
        checked(
            DynamicEmbeddingColumn(
                column,
                dimension,
                combiner=combiner,
                initializer=initializer,
                max_norm=max_norm,
                trainable=trainable,
                use_safe_embedding_lookup=use_safe_embedding_lookup,
                shared_name=shared_name or f"{names}_shared_embedding",
            )
        )
        for column in columns
    ]


def weighted_categorical_column(
    categorical_column: Any, weight_feature_key: str, dtype: Any = tf.float32
) -> Any:
    """Makes a column of ids that have weights.

    Args:
        categorical_column: Column of ids.
        weight_feature_key: Name of the feature of the weights, of the structure
            of the ids.
        dtype: Dtype of that feature: floats or integers.

    Returns:
        The column.

    Raises:
        TypeError: If `categorical_column` is none.
        ValueError: If weights cannot be of that dtype.

    Example:
        >>> from embedra import feature_column as fc
        >>> word = fc.categorical_column_with_embedding("word")
        >>> fc.weighted_categorical_column(word, "count").name
        'word_weighted_by_count'
    """
    check_categorical(categorical_column)
    return tf.feature_column.weighted_categorical_column(
        categorical_column, weight_feature_key, tf.as_dtype(dtype)
    )


def indicator_column(categorical_column: Any) -> Any:
    """Makes a column that has an element for each id of a vocabulary.

    Args:
        categorical_column: Column of ids of a vocabulary.

    Returns:
        TensorFlow's column.

    Raises:
        TypeError: If `categorical_column` is none.
        ValueError: If its ids have no vocabulary.
    """
    check_categorical(categorical_column)
    if open_column(categorical_column) is not None:
        msg = (
            f"indicator_column needs ids of a vocabulary, which column "
            f"{categorical_column.name!r} of categorical_column_with_embedding "
            "does not have. Use embedding_column, or "
            "categorical_column_with_hash_bucket."
        )
        raise ValueError(msg)
    return tf.feature_column.indicator_column(categorical_column)


def as_dynamic(column: Any) -> Any:
    """Returns a column in whose place TensorFlow's cannot be.

    `tf.feature_column.embedding_column` takes our columns of ids, but has no
    rows for them.

    Args:
        column: Any column.

    Returns:
        Ours, if it is TensorFlow's over ids without a vocabulary; itself
        otherwise.
    """
    if not is_stock_embedding(column):
        return column
    if open_column(column.categorical_column) is None:
        return column
    return embedding_column(**column._asdict())
