"""What columns of TensorFlow are to TensorFlow: the bases of our own.

`tf.feature_column` takes what derives from its classes, of which the newer ones
have public names and the others none. This is the only place that names those.
"""

from typing import Any

import tensorflow as tf
from tensorflow.python.feature_column import (  # noqa: TID251
    feature_column as _v1,
    feature_column_v2 as _v2,
)

from ._inputs import Access, Inputs, NewInputs, OldInputs
from ._table_names import scope_part


_Columns: Any = tf.__internal__.feature_column


class CategoricalColumn(_v2.CategoricalColumn, _v1._CategoricalColumn):
    """A column of ids, which functions of both TensorFlows take."""

    _is_v2_column = True

    def ids(self, inputs: Inputs) -> tf.SparseTensor:
        """Returns the column's ids.

        Args:
            inputs: Features of a batch.
        """
        raise NotImplementedError

    def transform_feature(
        self, transformation_cache: Any, state_manager: Any
    ) -> Any:
        """Returns the column's ids.

        Args:
            transformation_cache: Features of a batch.
            state_manager: Unused.
        """
        return self.ids(NewInputs(transformation_cache, state_manager))

    def get_sparse_tensors(
        self, transformation_cache: Any, state_manager: Any
    ) -> Any:
        """Returns the column's ids, without weights.

        Args:
            transformation_cache: Features of a batch.
            state_manager: Unused.
        """
        ids = transformation_cache.get(self, state_manager)
        return self.IdWeightPair(ids, None)

    def _transform_feature(self, inputs: Any) -> Any:
        return self.ids(OldInputs(inputs))

    def _get_sparse_tensors(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> Any:
        del weight_collections, trainable
        return self.IdWeightPair(inputs.get(self), None)

    @property
    def _parse_example_spec(self) -> Any:
        return self.parse_example_spec

    @property
    def _num_buckets(self) -> int:
        return int(self.num_buckets)


class DenseColumn(
    _Columns.DenseColumn,
    _Columns.SequenceDenseColumn,
    _v1._DenseColumn,
    _v1._SequenceDenseColumn,
):
    """A column of rows, which functions of both TensorFlows take."""

    _is_v2_column = True

    def rows(
        self, inputs: Inputs, state_manager: Any, access: Access
    ) -> tf.Tensor:
        """Returns a row for each example.

        Args:
            inputs: Features of a batch.
            state_manager: What has the column's table, or None.
            access: How rows are looked up.

        Returns:
            `float32`, shape `(batch, dim)`.
        """
        raise NotImplementedError

    def sequence(
        self, inputs: Inputs, state_manager: Any, access: Access
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns a row for each place of a sequence, and the lengths.

        Args:
            inputs: Features of a batch.
            state_manager: What has the column's table, or None.
            access: How rows are looked up.

        Returns:
            `float32`, shape `(batch, time, dim)`, and `int64`, shape
            `(batch,)`.
        """
        raise NotImplementedError

    def get_dense_tensor(
        self, transformation_cache: Any, state_manager: Any
    ) -> Any:
        """Returns a row for each example.

        Args:
            transformation_cache: Features of a batch.
            state_manager: What has the column's table, or None.
        """
        inputs = NewInputs(transformation_cache, state_manager)
        return self.rows(inputs, state_manager, Access())

    def get_sequence_dense_tensor(
        self, transformation_cache: Any, state_manager: Any
    ) -> Any:
        """Returns a row for each place of a sequence, and the lengths.

        Args:
            transformation_cache: Features of a batch.
            state_manager: What has the column's table, or None.
        """
        inputs = NewInputs(transformation_cache, state_manager)
        return self.TensorSequenceLengthPair(
            *self.sequence(inputs, state_manager, Access())
        )

    def _get_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> Any:
        del weight_collections
        access = Access(trained=trainable is not False)
        return self.rows(OldInputs(inputs), None, access)

    def _get_sequence_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> Any:
        del weight_collections
        access = Access(trained=trainable is not False)
        return self.TensorSequenceLengthPair(
            *self.sequence(OldInputs(inputs), None, access)
        )

    def _transform_feature(self, inputs: Any) -> Any:
        return inputs.get(self.categorical_column)

    @property
    def _parse_example_spec(self) -> Any:
        return self.parse_example_spec

    @property
    def _var_scope_name(self) -> str:
        return scope_part(self.name)

    @property
    def _variable_shape(self) -> tf.TensorShape:
        return self.variable_shape


def is_column(value: Any) -> bool:
    """Returns whether something is a column, of any kind.

    Args:
        value: Anything.
    """
    return isinstance(value, _Columns.FeatureColumn | _v1._FeatureColumn)


def is_sequence(column: Any) -> bool:
    """Returns whether a categorical column is one of sequences.

    Args:
        column: The column.
    """
    return isinstance(
        column, _v2.SequenceCategoricalColumn | _v1._SequenceCategoricalColumn
    )


def is_stock_embedding(column: Any) -> bool:
    """Returns whether a column is one of TensorFlow's `embedding_column`.

    Args:
        column: The column.
    """
    return isinstance(column, _v2.EmbeddingColumn)


def is_categorical(column: Any) -> bool:
    """Returns whether a column is one of ids.

    Args:
        column: The column.
    """
    return isinstance(column, _v2.CategoricalColumn | _v1._CategoricalColumn)


def sequence_of(column: Any) -> Any:
    """Makes a column of sequences.

    Args:
        column: A categorical column.
    """
    return _v2.SequenceCategoricalColumn(column)
