"""Expiry: which records go when a checkpoint is saved."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from embedra import _ops, table as table_lib


# Given rows, `float32`, shape `(n, dim)`, the step of each one's last training
# lookup, `int64`, shape `(n,)`, and the table's step: which have expired.
Rule = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]


class Expiry:
    """Removes from tables what has expired, as they are saved.

    Args:
        rule: Which records have expired.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def evict(self, tables: Sequence[table_lib.Table]) -> None:
        """Removes expired records, chunk by chunk (when executing eagerly).

        Args:
            tables: The tables.
        """
        for table in tables:
            for chunk in table.export_chunks():
                expired = self._expired(table, chunk)
                table.remove(tf.boolean_mask(chunk.keys, expired))

    def kept(
        self, table: table_lib.Table, records: _ops.TableExport
    ) -> _ops.TableExport:
        """Removes expired records in a TF1 graph.

        Args:
            table: The table.
            records: All of its records.

        Returns:
            Those that stay; reading them removes the others.
        """
        expired = self._expired(table, records)
        removed = table.remove(tf.boolean_mask(records.keys, expired))
        with tf.control_dependencies([removed]):
            stay = tf.logical_not(expired)
        columns = records._asdict()
        cursor = columns.pop("next_cursor")
        kept = {k: tf.boolean_mask(v, stay) for k, v in columns.items()}
        return _ops.TableExport(**kept, next_cursor=cursor)

    def _expired(self, table: table_lib.Table, records: Any) -> tf.Tensor:
        return self._rule(
            tf.cast(records.rows, tf.float32),
            tf.cast(records.last_steps, tf.int64),
            tf.cast(table.step, tf.int64),
        )
