"""DenseFeatures: columns as a layer of Keras 3."""

from collections.abc import Mapping
from typing import Any, Self

import keras
import tensorflow as tf

from ._arguments import check_names
from ._categorical import OpenCategoricalColumn
from ._embedding_column import DynamicEmbeddingColumn
from ._factories import as_dynamic
from ._input_layer import as_list, without_ragged
from ._inputs import Access, transformation_cache
from ._layer_state import StateOfLayer, TableOfColumns


_Columns: Any = tf.__internal__.feature_column

# Classes of columns that TensorFlow does not know.
_CLASSES = {
    cls.__name__: cls for cls in (DynamicEmbeddingColumn, OpenCategoricalColumn)
}


@keras.saving.register_keras_serializable(package="embedra")
class DenseFeatures(keras.layers.Layer):
    """Turns a dict of features into one tensor, by feature columns.

    The columns' tensors are joined in the order of their names. Columns of
    tables that grow may be among TensorFlow's own dense columns. Tables belong
    to the layer: they are trained, saved and restored with it, and columns that
    share one do so within the layer. With `training=True` absent ids are
    created; a call that does not say creates them if and when a tape computes
    their gradients.

    Args:
        feature_columns: A column, or several.
        trainable: Whether ids are created and weights trained.
        name: Name of the layer.
        **kwargs: Those of `keras.layers.Layer`.

    Raises:
        ValueError: If a column is not dense, or two have one name.

    Example:
        >>> from embedra import feature_column as fc
        >>> user = fc.categorical_column_with_embedding("user", tf.int64)
        >>> layer = DenseFeatures(
        ...     [fc.embedding_column(user, 8), fc.numeric_column("age")]
        ... )
        >>> features = {"user": [7, 8], "age": [33.0, 44.0]}
        >>> layer(features, training=True).shape
        TensorShape([2, 9])
    """

    def __init__(
        self,
        feature_columns: Any,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, **kwargs)
        columns = [as_dynamic(column) for column in as_list(feature_columns)]
        _check_columns(columns, self.name)
        # Neither XLA nor the casting of float inputs apply to ids.
        self.supports_jit = False
        self.autocast = False
        self._columns = tuple(sorted(columns, key=lambda column: column.name))
        dynamic = {
            column.table_name: column
            for column in self._columns
            if isinstance(column, DynamicEmbeddingColumn)
        }
        self.tables = {
            table_name: TableOfColumns(column, self.name, trainable=trainable)
            for table_name, column in dynamic.items()
        }
        self._state = StateOfLayer(self, self.tables)
        for column in self._columns:
            if not isinstance(column, DynamicEmbeddingColumn):
                column.create_state(self._state)
        self.built = True

    @property
    def feature_columns(self) -> tuple[Any, ...]:
        """The columns, in the order of their names."""
        return self._columns

    def size(self) -> dict[str, int]:
        """Returns the number of ids in each table, by its name."""
        return {name: one.size() for name, one in self.tables.items()}

    def __call__(self, features: Any, *args: Any, **kwargs: Any) -> Any:
        """Makes tensors of features, then calls the layer.

        Args:
            features: Features by name: tensors, ragged or sparse tensors,
                arrays or nested lists.
            *args: See `call`.
            **kwargs: See `call`.

        Returns:
            `float32`, shape `(batch, width of all columns)`.
        """
        if isinstance(features, Mapping):
            features = {
                name: value
                if _is_symbolic_or_tensor(value)
                else tf.convert_to_tensor(value)
                for name, value in features.items()
            }
        return super().__call__(features, *args, **kwargs)

    def call(
        self,
        features: Mapping[str, Any],
        training: bool | None = None,
    ) -> tf.Tensor:
        """Gives the tensors of all columns, joined.

        Args:
            features: Features by name.
            training: Whether absent ids are created; None for if and when
                gradients are computed.

        Returns:
            `float32`, shape `(batch, width of all columns)`.
        """
        insert = None if training is None else bool(training)
        state = self._state.for_call(Access(insert, trained=self.trainable))
        cache = transformation_cache(without_ragged(features))
        tensors = []
        for column in self._columns:
            tensor = column.get_dense_tensor(cache, state)
            width = column.variable_shape.num_elements()
            tensors.append(tf.reshape(tensor, (-1, width)))
        return tf.cast(tf.concat(tensors, axis=1), self.compute_dtype)

    def compute_output_spec(
        self, features: Mapping[str, Any], *args: Any, **kwargs: Any
    ) -> keras.KerasTensor:
        """Describes the output for symbolic features.

        Args:
            features: Symbolic features by name.
            *args: Unused.
            **kwargs: Unused.

        Returns:
            A symbolic tensor.
        """
        del args, kwargs
        shapes = {name: value.shape for name, value in features.items()}
        return keras.KerasTensor(
            self.compute_output_shape(shapes), dtype=self.compute_dtype
        )

    def compute_output_shape(
        self, input_shape: Mapping[str, Any]
    ) -> tuple[int | None, int]:
        """Returns the shape of the output.

        Args:
            input_shape: Shapes of features by name.
        """
        batch = {shape[0] for shape in input_shape.values()} - {None}
        width = sum(c.variable_shape.num_elements() for c in self._columns)
        return (batch.pop() if len(batch) == 1 else None, width)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, as JSON."""
        return {
            **super().get_config(),
            "feature_columns": [
                _Columns.serialize_feature_column(column)
                for column in self._columns
            ],
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes the layer of a config.

        Args:
            config: As `get_config` gives it.
        """
        by_name: dict[str, Any] = {}
        columns = [
            _Columns.deserialize_feature_column(column, _CLASSES, by_name)
            for column in config["feature_columns"]
        ]
        return cls(**{**config, "feature_columns": columns})


def _check_columns(columns: list[Any], name: str) -> None:
    owner = f"Layer {name!r}"
    check_names(columns, owner)
    for column in columns:
        if isinstance(column, _Columns.DenseColumn):
            continue
        msg = (
            f"{owner} needs dense columns; put columns of ids into "
            f"embedding_column or indicator_column. Received: {column!r}."
        )
        raise ValueError(msg)


def _is_symbolic_or_tensor(value: Any) -> bool:
    kinds = (keras.KerasTensor, tf.SparseTensor, tf.RaggedTensor)
    return isinstance(value, kinds) or tf.is_tensor(value)
