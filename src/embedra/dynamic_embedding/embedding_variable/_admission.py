"""Admission: ids that are counted before they get a row."""

import tensorflow as tf

from embedra import _ops
from embedra.distribute import sharded_rows
from embedra.dynamic_embedding._creators import (
    HkvEvictStrategy,
    HkvHashTableConfig,
    HkvHashTableCreator,
    KVCreator,
)
from embedra.dynamic_embedding._variable import Variable
from embedra.lookup import RowReader

from ._options import CBFFilter, CounterFilter


class Admission:
    """Admits ids to a variable once they were seen often enough.

    Ids that wait are counted in a table of their own, which leaves them once
    they are admitted, and is saved with the variable.

    Args:
        variable: The variable.
        rule: When ids are admitted.
        default: Each element of the row that others read as.
    """

    def __init__(
        self,
        variable: Variable,
        rule: CounterFilter | CBFFilter,
        default: float,
    ) -> None:
        self._table = variable.tables[0]
        self._threshold = rule.filter_freq
        self._default = default
        self.candidates = Variable(
            key_dtype=variable.key_dtype,
            dim=1,
            name=f"{variable.name}/candidates",
            trainable=False,
            kv_creator=_bound_of(rule),
        )
        self._reader = RowReader(
            self._table, variable.trainable_of(None), "initializer"
        )

    def rows(self, keys: tf.Tensor, insert: bool | None) -> tf.Tensor:
        """Reads rows, and counts the ids that have none.

        Args:
            keys: Keys, `int64`, any shape.
            insert: True to count now, None if and when gradients are computed.

        Returns:
            Rows, shape `keys.shape + (dim,)`; those of ids that are not
            admitted are the default, and have no gradient.
        """
        ranks = self._reader.ranks
        if ranks is None:
            return self._own_rows(keys, insert)
        # Owners count an id once for each rank that has it in its batch.
        return sharded_rows(
            ranks,
            [keys],
            lambda here: [self._own_rows(here[0], insert)],
            wire_dtype=self._reader.wire_dtype,
            label=self._table.name,
        )[0]

    def _own_rows(self, keys: tf.Tensor, insert: bool | None) -> tf.Tensor:
        flat = tf.reshape(keys, (-1,))
        handle = self._table.resource_handle
        _, _, admitted = _ops.table_uses(handle, flat)
        where = tf.where(admitted)
        found = self._reader.own_rows(tf.gather_nd(flat, where), insert)
        dim = self._table.dim
        default = tf.cast(self._default, found.dtype)
        blank = tf.fill((tf.size(flat), dim), default)
        rows = tf.tensor_scatter_nd_update(blank, where, found)
        others = tf.boolean_mask(flat, tf.logical_not(admitted))
        rows = self._counted(rows, others, insert)
        rows = tf.reshape(rows, tf.concat([tf.shape(keys), [dim]], axis=0))
        return tf.ensure_shape(rows, keys.shape.concatenate([dim]))

    def _counted(
        self, rows: tf.Tensor, keys: tf.Tensor, insert: bool | None
    ) -> tf.Tensor:
        """Returns rows, so that keys are counted now, or by their gradient."""

        @tf.custom_gradient
        def count_in_gradient(rows: tf.Tensor) -> tuple[tf.Tensor, object]:
            def gradient(upstream: tf.Tensor) -> tf.Tensor:
                with tf.control_dependencies(self._count(keys)):
                    return tf.identity(upstream)

            return tf.identity(rows), gradient

        if insert is None:
            return count_in_gradient(rows)
        with tf.control_dependencies(self._count(keys)):
            return tf.identity(rows)

    def _count(self, keys: tf.Tensor) -> list[tf.Tensor]:
        """Counts keys, and admits those that were seen often enough."""
        waiting = self.candidates.tables[0]
        # In a TF1 graph each comes after what it builds on.
        with tf.control_dependencies([waiting.lookup(keys, insert=True)]):
            seen, _, _ = _ops.table_uses(waiting.resource_handle, keys)
        ready = tf.boolean_mask(keys, seen >= self._threshold)
        with tf.control_dependencies([self._table.lookup(ready, insert=True)]):
            return [waiting.remove(tf.identity(ready))]


def admission_of(
    variable: Variable,
    rule: CounterFilter | CBFFilter | None,
    default: float,
) -> Admission | None:
    """Returns what a filter asks for, None if it admits every id.

    Args:
        variable: The variable.
        rule: The filter.
        default: Each element of the row of ids that are not admitted.
    """
    if rule is None or rule.filter_freq < 1:
        return None
    return Admission(variable, rule, default)


def _bound_of(rule: CounterFilter | CBFFilter) -> KVCreator | None:
    if not isinstance(rule, CBFFilter) or not rule.max_element_size:
        return None
    return HkvHashTableCreator(
        HkvHashTableConfig(
            max_capacity=rule.max_element_size,
            evict_strategy=HkvEvictStrategy.LFU,
        )
    )
