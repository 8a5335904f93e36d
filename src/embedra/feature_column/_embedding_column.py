"""Columns of rows of a table that grows."""

import dataclasses
import math
from typing import Any, Self

import tensorflow as tf

from embedra import table as table_lib
from embedra.dynamic_embedding.embedding_variable import EmbeddingVariable
from embedra.lookup import kept_of, to_bags

from ._categorical import open_column
from ._inputs import Access, IdsAndWeights, Inputs
from ._table_names import table_in_scope, table_of_all_scopes
from ._tf_columns import DenseColumn, is_sequence


WEIGHTS = "embedding_weights"


@dataclasses.dataclass(frozen=True, eq=False)
class DynamicEmbeddingColumn(DenseColumn):
    """A column of rows, one for each example, of a table that grows.

    Attributes:
        categorical_column: Column of the ids.
        dimension: Width of a row.
        combiner: How ids of one example make one row.
        initializer: What ids start from.
        max_norm: Longest L2 norm of a row before it is combined, or None.
        trainable: Whether ids are created and rows trained.
        use_safe_embedding_lookup: Whether ids whose weight is not positive are
            left out.
        shared_name: Columns of the same one have one table; None for a table
            of the column's own.
    """

    categorical_column: Any
    dimension: int
    combiner: str = "mean"
    initializer: Any = None
    max_norm: float | None = None
    trainable: bool = True
    use_safe_embedding_lookup: bool = True
    shared_name: str | None = None

    # Initializers need not have a hash, and mean the same in several forms.
    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._compared() == other._compared()

    def _compared(self) -> tuple[Any, ...]:
        initializer = self.initializer
        if initializer is not None:
            initializer = table_lib.resolve_initializer(
                initializer, self.dimension
            )
        fields = dataclasses.replace(self, initializer=None)
        return (initializer, *vars(fields).values())

    @property
    def name(self) -> str:
        """Name of the column, as TensorFlow gives it."""
        kind = "embedding" if self.shared_name is None else "shared_embedding"
        return f"{self.categorical_column.name}_{kind}"

    @property
    def table_name(self) -> str:
        """Name of the table, or of its part that is the column's."""
        return self.shared_name or self.name

    @property
    def parents(self) -> list[Any]:
        """What the column is made of."""
        return [self.categorical_column]

    @property
    def parse_example_spec(self) -> Any:
        """How `tf.io.parse_example` reads the features."""
        return self.categorical_column.parse_example_spec

    @property
    def variable_shape(self) -> tf.TensorShape:
        """Shape of an example's row."""
        return tf.TensorShape([self.dimension])

    def transform_feature(
        self, transformation_cache: Any, state_manager: Any
    ) -> Any:
        """Returns what the column of ids makes of its features.

        Args:
            transformation_cache: Features of a batch.
            state_manager: What holds state of columns.
        """
        return transformation_cache.get(self.categorical_column, state_manager)

    def table_arguments(self) -> dict[str, Any]:
        """Returns what the column's table is made with."""
        ids = open_column(self.categorical_column)
        option = ids and ids.ev_option
        initializer = self.initializer
        if initializer is None and option is not None:
            initializer = option.init_option.initializer
        if initializer is None:
            initializer = tf.compat.v1.truncated_normal_initializer(
                0.0, 1 / math.sqrt(self.dimension)
            )
        return {
            "embedding_dim": self.dimension,
            "key_dtype": tf.int64 if ids is None else _key_dtype(ids.dtype),
            "initializer": initializer,
            "trainable": self.trainable,
            "ev_option": option,
        }

    def rows(
        self, inputs: Inputs, state_manager: Any, access: Access
    ) -> tf.Tensor:
        """Returns a row for each example.

        Args:
            inputs: Features of a batch.
            state_manager: A `StateOfLayer`, or None for tables by name.
            access: How rows are looked up; a layer's state knows better.

        Returns:
            `float32`, shape `(batch, dim)`.

        Raises:
            ValueError: If the ids are sequences.
        """
        if is_sequence(self.categorical_column):
            msg = (
                f"Column {self.name!r} is of sequences. Use "
                "sequence_input_layer, or a column of "
                "categorical_column_with_embedding."
            )
            raise ValueError(msg)
        table, access = self._table(state_manager, access)
        return self.pooled(table, inputs, access)

    def sequence(
        self, inputs: Inputs, state_manager: Any, access: Access
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns a row for each place of a sequence, and the lengths.

        Args:
            inputs: Features of a batch.
            state_manager: As for `rows`.
            access: As for `rows`.

        Returns:
            `float32`, shape `(batch, time, dim)`, and `int64`, shape
            `(batch,)`.

        Raises:
            ValueError: If the ids are not sequences.
        """
        if not is_sequence(self.categorical_column):
            msg = (
                f"Column {self.name!r} is not of sequences. Use input_layer, "
                "or a column of sequence_categorical_column_with_embedding."
            )
            raise ValueError(msg)
        table, access = self._table(state_manager, access)
        ids = inputs.ids_of(self.categorical_column)
        return self.pooled(table, inputs, access), _lengths(ids.id_tensor)

    def _table(
        self, state_manager: Any, access: Access
    ) -> tuple[EmbeddingVariable, Access]:
        if state_manager is None:
            arguments = self.table_arguments()
            if self.shared_name is None:
                return table_in_scope(self.name, WEIGHTS, **arguments), access
            name = f"{self.shared_name}/{WEIGHTS}"
            return table_of_all_scopes(self.name, name, **arguments), access
        if not hasattr(state_manager, "table_of"):
            msg = (
                f"Column {self.name!r} has a table that grows, for which this "
                "layer has no place. Use embedra.keras.layers.DenseFeatures."
            )
            raise TypeError(msg)
        table: EmbeddingVariable = state_manager.table_of(self)
        return table, state_manager.access

    def pooled(
        self, table: EmbeddingVariable, inputs: Inputs, access: Access
    ) -> tf.Tensor:
        """Looks up the ids of a batch, and pools them over their last axis.

        Args:
            table: The table.
            inputs: Features of a batch.
            access: How rows are looked up.

        Returns:
            `float32`, shape `(batch, dim)`, of sequences `(batch, time, dim)`.
        """
        ids = inputs.ids_of(self.categorical_column)
        if not is_sequence(self.categorical_column):
            ids = IdsAndWeights(*map(_by_example, ids))
        bags = to_bags(
            *ids,
            f"Column {self.name!r}",
            in_order=_is_dense(self.categorical_column, inputs),
        )
        if open_column(self.categorical_column) is None:
            # Negative ids of a vocabulary are what is not in it.
            bags = kept_of(bags, bags.ids >= 0)
        has_weights = ids.weight_tensor is not None
        is_safe = self.use_safe_embedding_lookup and self.combiner != "sum"
        if has_weights and is_safe:
            bags = kept_of(bags, bags.weights > 0)
        bags = bags._replace(ids=table.variable.keys_of(bags.ids))
        rows = table.pooled(
            bags, self.combiner, max_norm=self.max_norm, **access._asdict()
        )
        rows.set_shape([None, self.dimension])
        restored: tf.Tensor = bags.restore(rows)
        return restored

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, as JSON."""
        columns: Any = tf.__internal__.feature_column
        config = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
        }
        config["categorical_column"] = columns.serialize_feature_column(
            self.categorical_column
        )
        if self.initializer is not None:
            config["initializer"] = table_lib.initializer_config(
                self.initializer, self.dimension
            )
        return config

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
            custom_objects: Classes of columns that are not TensorFlow's.
            columns_by_name: Columns that were made before.
        """
        columns: Any = tf.__internal__.feature_column
        ids = columns.deserialize_feature_column(
            config["categorical_column"], custom_objects, columns_by_name
        )
        return cls(**{**config, "categorical_column": ids})


def _is_dense(column: Any, inputs: Inputs) -> bool:
    """Returns whether ids are of a dense feature, and thus in order."""
    ids = open_column(column)
    return ids is not None and not isinstance(
        inputs.get(ids.key), tf.SparseTensor
    )


def _key_dtype(dtype: tf.DType) -> tf.DType:
    # A table of int64 takes integers of all widths.
    return tf.string if dtype == tf.string else tf.int64


def _by_example(sparse: tf.SparseTensor | None) -> tf.SparseTensor | None:
    """Makes what is of another rank than 2, or of an unknown one, a matrix."""
    if sparse is None or sparse.shape.rank == 2:
        return sparse
    shape = sparse.dense_shape
    return tf.sparse.reshape(
        sparse, tf.stack([shape[0], tf.reduce_prod(shape[1:])])
    )


def _lengths(ids: tf.SparseTensor) -> tf.Tensor:
    """Returns one more than the last place that has an id, by example."""
    lengths = tf.math.unsorted_segment_max(
        ids.indices[:, 1] + 1, ids.indices[:, 0], ids.dense_shape[0]
    )
    return tf.maximum(lengths, 0)
