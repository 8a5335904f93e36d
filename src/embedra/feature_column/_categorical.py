"""Columns of ids without a vocabulary."""

import dataclasses
from typing import Any, Self

import keras
import numpy as np
import tensorflow as tf

from embedra.dynamic_embedding.embedding_variable import (
    EmbeddingVariableOption,
)

from ._checks import check_parts
from ._inputs import Inputs
from ._tf_columns import CategoricalColumn, sequence_of


_OF_PYTHON: dict[Any, tf.DType] = {int: tf.int64, str: tf.string}


@dataclasses.dataclass(frozen=True)
class OpenCategoricalColumn(CategoricalColumn):
    """A column of ids of which each is valid.

    Attributes:
        key: Name of the feature.
        dtype: `tf.string`, or an integer dtype.
        ev_option: Rules of admission and eviction of the table, or None.
        drop_missing: Whether -1 and "" in dense features are no ids.
    """

    key: str
    dtype: tf.DType
    ev_option: EmbeddingVariableOption | None = None
    drop_missing: bool = True

    # By default a class that says when it is equal has no hash.
    def __hash__(self) -> int:
        return hash((type(self), self.key))

    @property
    def name(self) -> str:
        """Name of the column: that of the feature."""
        return self.key

    @property
    def parents(self) -> list[str]:
        """What the column is made of."""
        return [self.key]

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """How `tf.io.parse_example` reads the feature."""
        # Examples hold no other integers.
        dtype = tf.string if self.dtype == tf.string else tf.int64
        return {self.key: tf.io.VarLenFeature(dtype)}

    @property
    def num_buckets(self) -> int:
        """Raises: there is no vocabulary, which has a size.

        Raises:
            ValueError: Always.
        """
        msg = (
            f"Column {self.key!r} of categorical_column_with_embedding has no "
            "vocabulary, and thus no number of buckets. Put it into "
            "embedra.feature_column.embedding_column, or "
            "shared_embedding_columns, in place of the function of "
            "tf.feature_column."
        )
        raise ValueError(msg)

    def ids(self, inputs: Inputs) -> tf.SparseTensor:
        """Returns the ids of a batch.

        Args:
            inputs: Features of a batch.

        Returns:
            Ids of their own dtype.

        Raises:
            ValueError: If they are of another kind than the column's.
        """
        given = inputs.get(self.key)
        self._check_dtype(given.dtype)
        if isinstance(given, tf.SparseTensor):
            return given
        indices = tf.where(self._present(given))
        return tf.SparseTensor(
            indices,
            tf.gather_nd(given, indices),
            tf.shape(given, out_type=tf.int64),
        )

    def _present(self, given: tf.Tensor) -> tf.Tensor:
        """Returns which of dense ids are any, `bool`."""
        if not self.drop_missing:
            return tf.fill(tf.shape(given), value=True)
        if given.dtype == tf.string:
            return tf.not_equal(given, "")
        missing = np.int64(-1).astype(given.dtype.as_numpy_dtype)
        return tf.not_equal(given, missing)

    def _check_dtype(self, given: tf.DType) -> None:
        if given == tf.string if self.dtype == tf.string else given.is_integer:
            return
        hint = (
            "Give the column dtype=tf.string."
            if given == tf.string
            else 'Cast the feature, as tf.cast(ids, "int64"), or give the '
            "column another dtype."
        )
        msg = (
            f"Feature {self.key!r} must be of dtype {self.dtype.name}"
            f"{' or of another width' * self.dtype.is_integer}. Received: "
            f"{given.name}. {hint}"
        )
        raise ValueError(msg)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, as JSON."""
        option = self.ev_option
        return {
            "key": self.key,
            "dtype": self.dtype.name,
            "ev_option": option and keras.saving.serialize_keras_object(option),
            "drop_missing": self.drop_missing,
        }

    @classmethod
    def from_config(
        cls,
        config: dict[str, Any],
        custom_objects: Any = None,
        columns_by_name: Any = None,
    ) -> Self:
        """Makes the column of a config.

        Args:
            config: As `get_config` gives it.
            custom_objects: Unused.
            columns_by_name: Unused.
        """
        del custom_objects, columns_by_name
        option = config["ev_option"]
        return cls(
            config["key"],
            tf.as_dtype(config["dtype"]),
            option and keras.saving.deserialize_keras_object(option),
            config["drop_missing"],
        )


def categorical_column_with_embedding(
    key: Any,
    dtype: Any = tf.string,
    partition_num: int | None = None,
    ev_option: Any = None,
    drop_missing: bool = True,
) -> OpenCategoricalColumn:
    """Makes a column of ids without a vocabulary.

    Put it into `embedding_column`, `shared_embedding_columns` or
    `weighted_categorical_column`. Its table grows as ids are seen in training.

    Args:
        key: Name of the feature: dense, sparse or ragged ids. Dense ones of
            shape `(batch,)` are one id for each example.
        dtype: `tf.string`, or an integer dtype. Integers are taken of any
            width; strings become keys by a fixed hash, see
            `embedra.table.to_keys`.
        partition_num: A number of parts, which has no effect: a table grows by
            itself, and its name and content are the same in any number of them.
        ev_option: Rules of admission and eviction of the table.
        drop_missing: Whether -1 and "" in dense features stand for no id, as
            they do in TensorFlow's own columns. In sparse and ragged features
            they are ids like any other.

    Returns:
        The column.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If ids cannot be of that dtype.

    Example:
        >>> user = categorical_column_with_embedding("user", tf.int64)
        >>> user.parse_example_spec
        {'user': VarLenFeature(dtype=tf.int64)}
    """
    if not isinstance(key, str) or not key:
        msg = (
            "`key` of categorical_column_with_embedding must be the name of a "
            f"feature. Received: {key!r}."
        )
        raise TypeError(msg)
    if partition_num is not None:
        check_parts(key, partition_num)
    dtype = _dtype_of(key, dtype)
    if dtype != tf.string and not dtype.is_integer:
        msg = (
            f"Ids of column {key!r} must be integers or strings. Received: "
            f"dtype={dtype.name}."
        )
        raise ValueError(msg)
    if not isinstance(ev_option, EmbeddingVariableOption | None):
        msg = (
            f"`ev_option` of column {key!r} must be an "
            f"EmbeddingVariableOption. Received: {ev_option!r}."
        )
        raise TypeError(msg)
    return OpenCategoricalColumn(key, dtype, ev_option, bool(drop_missing))


def _dtype_of(key: str, given: Any) -> tf.DType:
    """Returns a dtype; Python's `int` and `str` stand for int64 and strings.

    Args:
        key: Name of the column.
        given: What has been given.

    Raises:
        TypeError: If that is no dtype.
    """
    try:
        return tf.as_dtype(_OF_PYTHON.get(given, given))
    except TypeError:
        msg = (
            f"`dtype` of column {key!r} must be an integer dtype or tf.string. "
            f"Received: {given!r}."
        )
        raise TypeError(msg) from None


def sequence_categorical_column_with_embedding(
    key: str,
    dtype: Any = tf.string,
    partition_num: int | None = None,
    ev_option: EmbeddingVariableOption | None = None,
    drop_missing: bool = True,
) -> Any:
    """Makes a column of sequences of ids without a vocabulary.

    Put it into `embedding_column`, and that into `sequence_input_layer`.

    Args:
        key: Name of the feature, shape `(batch, time)`.
        dtype: As of `categorical_column_with_embedding`, like all that follow.
        partition_num: Has no effect.
        ev_option: Rules of admission and eviction of the table.
        drop_missing: Whether -1 and "" in dense features stand for no id.

    Returns:
        The column.

    Example:
        >>> sequence_categorical_column_with_embedding("visited").name
        'visited'
    """
    return sequence_of(
        categorical_column_with_embedding(
            key, dtype, partition_num, ev_option, drop_missing
        )
    )


def open_column(column: Any) -> OpenCategoricalColumn | None:
    """Returns the column without a vocabulary that is inside of another.

    Args:
        column: A categorical column, weighted or not, of sequences or not.

    Returns:
        The column; None if ids are of a vocabulary.
    """
    while column is not None:
        if isinstance(column, OpenCategoricalColumn):
            return column
        column = getattr(column, "categorical_column", None)
    return None
