"""Features of a batch, as functions of either TensorFlow hand them on."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import tensorflow as tf


class IdsAndWeights(NamedTuple):
    """Ids of a batch, as a categorical column gives them.

    Attributes:
        id_tensor: Sparse ids: integers or strings.
        weight_tensor: Their weights, or None.
    """

    id_tensor: tf.SparseTensor
    weight_tensor: tf.SparseTensor | None


class Access(NamedTuple):
    """How rows of tables are looked up.

    Attributes:
        insert: Whether absent ids are created: now, never, or (None) if and
            when gradients are computed.
        trained: Whether rows have gradients; without, no ids are created.
    """

    insert: bool | None = None
    trained: bool = True


class Inputs(Protocol):
    """Gives columns the features of a batch, each worked out once."""

    def get(self, key: Any) -> Any:
        """Returns a feature, or what a column makes of its features.

        Args:
            key: Name of a feature, or a column.
        """
        ...

    def ids_of(self, column: Any) -> IdsAndWeights:
        """Returns the ids of a categorical column.

        Args:
            column: The column.
        """
        ...


class NewInputs:
    """Features as `tf.feature_column`, and layers of Keras, give them.

    Args:
        cache: A `FeatureTransformationCache`.
        state_manager: What holds variables and tables of columns, or None.
    """

    def __init__(self, cache: Any, state_manager: Any) -> None:
        self._cache = cache
        self._state_manager = state_manager

    def get(self, key: Any) -> Any:
        """Returns a feature, or what a column makes of its features.

        Args:
            key: Name of a feature, or a column.
        """
        return self._cache.get(key, self._state_manager)

    def ids_of(self, column: Any) -> IdsAndWeights:
        """Returns the ids of a categorical column.

        Args:
            column: The column.
        """
        found = column.get_sparse_tensors(self._cache, self._state_manager)
        return _with_all_weights(self, column, IdsAndWeights(*found))


def transformation_cache(features: Mapping[str, Any]) -> Any:
    """Returns what works out each feature, and each column, once.

    Args:
        features: Dense and sparse features by name.
    """
    columns: Any = tf.__internal__.feature_column
    return columns.FeatureTransformationCache(features)


class OldInputs:
    """Features as functions of `tf.compat.v1.feature_column` give them.

    Args:
        builder: What they give.
    """

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def get(self, key: Any) -> Any:
        """Returns a feature, or what a column makes of its features.

        Args:
            key: Name of a feature, or a column.
        """
        return self._builder.get(key)

    def ids_of(self, column: Any) -> IdsAndWeights:
        """Returns the ids of a categorical column.

        Args:
            column: The column.
        """
        found = column._get_sparse_tensors(self._builder)
        return _with_all_weights(self, column, IdsAndWeights(*found))


def _with_all_weights(
    inputs: Inputs, column: Any, found: IdsAndWeights
) -> IdsAndWeights:
    """Returns ids with their weights, of which some may be 0.

    TensorFlow takes zeros among dense weights for places without an id.

    Args:
        inputs: Features of a batch.
        column: A categorical column.
        found: What TensorFlow gives for it.
    """
    key = getattr(column, "weight_feature_key", None)
    given = None if key is None else inputs.get(key)
    if given is None or isinstance(given, tf.SparseTensor):
        return found
    ids = found.id_tensor
    wanted = (
        f"Feature {key!r} must have the shape of the ids of column "
        f"{column.name!r}, whose weights it has."
    )
    if not ids.shape.is_compatible_with(given.shape):
        msg = f"{wanted} Received: {given.shape} for ids of {ids.shape}."
        raise ValueError(msg)
    same = tf.debugging.assert_equal(
        tf.shape(given, tf.int64), ids.dense_shape, wanted
    )
    with tf.control_dependencies([] if same is None else [same]):
        weights = tf.gather_nd(given, ids.indices)
    return IdsAndWeights(
        ids, tf.SparseTensor(ids.indices, weights, ids.dense_shape)
    )
