"""RowSource: differentiable lookups in a variable, for layers."""

from typing import Any

import tensorflow as tf

from embedra.dynamic_embedding._lookup import clip_rows
from embedra.dynamic_embedding._mode import ModelMode, get_model_mode
from embedra.dynamic_embedding._pooling import combine
from embedra.dynamic_embedding._variable import Variable
from embedra.lookup import Bags, RowReader

from ._settings import FUSED_COMBINERS


class RowSource:
    """Looks up ids, and pools rows.

    One table is read by the reader of Embedra's own layers, so that rows are
    pooled as they are read. Several tables, and rows that are clipped, are
    pooled afterwards.

    Args:
        variable: The variable.
        shadow: Stands for its rows.
        max_norm: Longest L2 norm of a row, or None.
    """

    def __init__(
        self, variable: Variable, shadow: Any, max_norm: float | None
    ) -> None:
        self._variable = variable
        self._shadow = shadow
        self._max_norm = max_norm
        self._reader = None
        if len(variable.tables) == 1:
            self._reader = RowReader(variable.tables[0], shadow, "initializer")

    def rows(self, ids: Any, insert: bool | None) -> tf.Tensor:
        """Reads rows.

        Args:
            ids: Dense ids.
            insert: Whether absent ids are created: now, never, or (None) when a
                tape asks for their gradients.

        Returns:
            Rows of the variable's dtype, shape `ids.shape + (dim,)`.
        """
        if self._reader is not None:
            rows = self._reader.rows(self._reader.keys(ids, insert), insert)
        else:
            rows = self._sharded(self._variable.keys_of(ids), insert)
        return self._clipped(rows)

    def pooled(
        self, bags: Bags, insert: bool | None, combiner: str
    ) -> tf.Tensor:
        """Reads rows, and makes one of each bag; of an empty one, zeros.

        Args:
            bags: The ids in bags.
            insert: As for `rows`.
            combiner: "sum", "mean", "sqrtn", "max", "min" or "prod".

        Returns:
            `float32`, shape `(bags, dim)`.
        """
        fused = combiner in FUSED_COMBINERS and self._max_norm is None
        if self._reader is not None and fused:
            keys = self._reader.keys(bags.ids, insert)
            return self._reader.pooled(
                keys, bags.row_splits, bags.weights, insert, combiner
            )
        rows = tf.cast(self.rows(bags.ids, insert), tf.float32)
        if combiner in FUSED_COMBINERS:
            return combine(rows, bags, combiner)
        return _pool(rows, bags, combiner)

    def _clipped(self, rows: tf.Tensor) -> tf.Tensor:
        if self._max_norm is None:
            return rows
        return clip_rows(rows, self._max_norm)

    def _sharded(self, keys: tf.Tensor, insert: bool | None) -> tf.Tensor:
        shards = self._variable.shards
        if insert is False:
            return shards.read(keys)[0]
        if insert:
            return shards.lookup(keys, self._shadow, insert=True)

        @tf.custom_gradient
        def read(_: tf.Tensor) -> Any:
            def gradient(upstream: tf.Tensor) -> Any:
                with tf.GradientTape() as tape:
                    again = shards.lookup(keys, self._shadow, insert=True)
                return tape.gradient(again, self._shadow.value, upstream)

            return shards.read(keys)[0], gradient

        return read(self._shadow.read_value())


def insert_mode(trainable: bool, training: Any) -> bool | None:
    """Returns whether a call of a layer creates absent ids.

    Args:
        trainable: Whether the layer is trained at all.
        training: As the call is given it. What is known only when a graph runs
            counts as None.

    Returns:
        True, False, or None: if and when a tape asks for gradients.
    """
    if not trainable:
        return False
    if tf.is_tensor(training):
        training = tf.get_static_value(training)
    if training is not None:
        return bool(training)
    return False if get_model_mode() is ModelMode.INFERENCE else None


def _pool(rows: tf.Tensor, bags: Bags, combiner: str) -> tf.Tensor:
    """Pools by what TensorFlow calls so: "max", "min" or "prod"."""
    splits = bags.row_splits
    segment = getattr(tf.math, f"unsorted_segment_{combiner}")
    bag_of = tf.ragged.row_splits_to_segment_ids(splits)
    pooled = segment(rows, bag_of, tf.size(splits) - 1)
    # The product of nothing is one, and its largest element minus infinity.
    empty = splits[1:] == splits[:-1]
    return tf.where(empty[:, tf.newaxis], 0.0, pooled)
