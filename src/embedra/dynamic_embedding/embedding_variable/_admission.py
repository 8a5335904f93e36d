"""Admission: ids that are counted before they get a row."""

import tensorflow as tf

from embedra import _ops
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
        self._variable = variable
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
            variable.tables[0], variable.trainable_of(None), "initializer"
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
        flat = tf.reshape(keys, (-1,))
        _, _, known = _ops.table_uses(self._main, flat)
        admitted = known | (self._seen(flat) >= self._threshold)
        where = tf.where(admitted)
        chosen = tf.gather_nd(flat, where)
        if insert:
            chosen = self._variable.tables[0].create_missing(chosen)
        found = self._reader.rows(chosen, insert)
        dim = self._variable.dim
        blank = tf.fill(
            (tf.size(flat), dim), tf.cast(self._default, found.dtype)
        )
        rows = tf.tensor_scatter_nd_update(blank, where, found)
        rows = self._counted(rows, flat, known, admitted, insert)
        rows = tf.reshape(rows, tf.concat([tf.shape(keys), [dim]], axis=0))
        return tf.ensure_shape(rows, keys.shape.concatenate([dim]))

    @property
    def _main(self) -> tf.Tensor:
        return self._variable.tables[0].resource_handle

    def _seen(self, keys: tf.Tensor) -> tf.Tensor:
        """Returns how often each key was seen, this batch counted."""
        waiting = self.candidates.tables[0].resource_handle
        before, _, _ = _ops.table_uses(waiting, keys)
        _, position, counts = tf.unique_with_counts(keys, tf.int64)
        return before + tf.gather(counts, position)

    def _counted(
        self,
        rows: tf.Tensor,
        keys: tf.Tensor,
        known: tf.Tensor,
        admitted: tf.Tensor,
        insert: bool | None,
    ) -> tf.Tensor:
        """Returns rows, so that counting is done now, or by the gradient."""

        def count() -> list[tf.Tensor]:
            waiting = self.candidates.tables[0]
            more = waiting.lookup(
                tf.boolean_mask(keys, tf.logical_not(admitted)), insert=True
            )
            new = tf.boolean_mask(keys, admitted & tf.logical_not(known))
            return [more, waiting.remove(new)]

        @tf.custom_gradient
        def count_in_gradient(rows: tf.Tensor) -> tuple[tf.Tensor, object]:
            def gradient(upstream: tf.Tensor) -> tf.Tensor:
                with tf.control_dependencies(count()):
                    return tf.identity(upstream)

            return tf.identity(rows), gradient

        if insert is None:
            return count_in_gradient(rows)
        with tf.control_dependencies(count()):
            return tf.identity(rows)


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
    # An id is seen once, at least, when it is looked up.
    if rule is None or rule.filter_freq <= 1:
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
