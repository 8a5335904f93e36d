"""RowMethods: what a variable does with rows by id, and with all of them."""

from typing import Any

import numpy as np
import tensorflow as tf

from embedra import _ops, table as table_lib

from ._shards import ShardedTables
from ._state import export_all


class RowMethods:
    """Reads and writes the tables of a `de.Variable`.

    Attributes:
        tables: The tables, one for each device.
        shards: The same, as one map.
    """

    tables: list[table_lib.Table]
    shards: ShardedTables

    @property
    def dim(self) -> int:
        """Width of a row."""
        return self.tables[0].dim

    @property
    def key_dtype(self) -> tf.DType:
        """Dtype of the ids."""
        return tf.as_dtype(self.tables[0].key_dtype)

    @property
    def value_dtype(self) -> tf.DType:
        """Dtype of the rows."""
        return tf.as_dtype(self.tables[0].dtype)

    def keys_of(self, ids: Any) -> tf.Tensor:
        """Converts dense ids to keys, and checks that they suit the tables.

        Args:
            ids: Integers of any width, or strings, of any shape.

        Returns:
            Keys, `int64`, of the same shape.

        Raises:
            KeyDtypeError: If the ids are of a wrong dtype.
        """
        if not hasattr(ids, "dtype") and np.size(ids) == 0:
            # An empty list has no dtype.
            return tf.zeros(np.shape(ids), tf.int64)
        return self.tables[0].keys_of(ids)

    # Rows by id.

    def lookup(
        self, keys: Any, return_exists: bool = False, name: str | None = None
    ) -> Any:
        """Reads rows; changes nothing.

        Args:
            keys: Ids of any shape.
            return_exists: Whether to say which ids are there.
            name: Name of the ops.

        Returns:
            Rows, shape `keys.shape + (dim,)`, those of absent ids as they would
            start; and, if asked for, `bool` of the shape of the keys.
        """
        keys = self.keys_of(keys)
        with tf.name_scope(name or "lookup"):
            rows, found = self.shards.read(keys)
        return (rows, found) if return_exists else rows

    def upsert(self, keys: Any, values: Any, name: str | None = None) -> Any:
        """Stores rows, of absent ids too.

        Args:
            keys: Ids of any shape.
            values: Rows, shape `keys.shape + (dim,)`. Of a repeated id the
                last row wins.
            name: Name of the ops.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.

        Raises:
            ValueError: If the shape of `values` does not fit.
        """
        keys, values = self._flat(keys, values, "values", self.value_dtype)

        def assign(shard: int, keys: tf.Tensor, values: tf.Tensor) -> Any:
            return _ops.table_assign(
                [self.tables[shard].resource_handle],
                [keys],
                [values],
                dims=[self.dim],
                only_missing=False,
            )

        with tf.name_scope(name or "upsert"):
            return self.shards.run(keys, assign, values)

    def accum(
        self,
        keys: Any,
        old_values: Any,
        new_values: Any,
        exists: Any,
        name: str | None = None,
    ) -> Any:
        """Adds the difference of two values of rows, atomically for each row.

        Ids that existed get `new_values - old_values` added, if they are still
        there. Ids that did not get `new_values`, if they are still absent.

        Args:
            keys: Ids, of any shape.
            old_values: Rows as they were, shape `keys.shape + (dim,)`.
            new_values: Rows as they should be, of the same shape.
            exists: Which ids were there, of the shape of the keys.
            name: Name of the ops.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.

        Raises:
            ValueError: If a shape does not fit.
        """
        ids = self.keys_of(keys)
        exists = tf.cast(exists, tf.bool)
        if not exists.shape.is_compatible_with(ids.shape):
            msg = (
                f"`exists` of {self!r} must have the shape of the keys, "
                f"{tuple(ids.shape)}. Received: {tuple(exists.shape)}."
            )
            raise ValueError(msg)
        exists = tf.reshape(exists, (-1,))
        _, old = self._flat(keys, old_values, "old_values", tf.float32)
        keys, new = self._flat(keys, new_values, "new_values", tf.float32)

        def accumulate(shard: int, *columns: tf.Tensor) -> Any:
            return _accumulate(self.tables[shard], *columns)

        with tf.name_scope(name or "accum"):
            return self.shards.run(keys, accumulate, old, new, exists)

    def remove(self, keys: Any, name: str | None = None) -> Any:
        """Removes ids with their rows and slots; absent ones are passed over.

        Args:
            keys: Ids of any shape.
            name: Name of the ops.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.
        """
        keys = tf.reshape(self.keys_of(keys), (-1,))

        def remove(shard: int, keys: tf.Tensor) -> Any:
            handle = self.tables[shard].resource_handle
            return _ops.table_remove([handle], [keys])[0]

        with tf.name_scope(name or "remove"):
            return self.shards.run(keys, remove)

    # The whole.

    def clear(self, name: str | None = None) -> Any:
        """Removes all ids.

        Args:
            name: Name of the ops.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.
        """
        with tf.name_scope(name or "clear"):
            return _group(
                [_ops.table_clear([t.resource_handle]) for t in self.tables]
            )

    def size(self, index: int | None = None, name: str | None = None) -> Any:
        """Counts ids.

        Args:
            index: Of one device, or None for all.
            name: Name of the ops.

        Returns:
            Scalar, `int64`.
        """
        tables = self.tables if index is None else [self.tables[index]]
        with tf.name_scope(name or "size"):
            # An op each: the tables may be on different servers.
            return tf.add_n(
                [_ops.table_size([t.resource_handle])[0] for t in tables]
            )

    def export(self, name: str | None = None) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads all ids and rows, in one piece.

        For large tables, `tables[i].export_chunks()` reads in pieces.

        Args:
            name: Name of the ops.

        Returns:
            Keys, `int64`, shape `(n,)` (strings are hashed), and their rows,
            shape `(n, dim)`.
        """
        with tf.name_scope(name or "export"):
            parts = [export_all(table) for table in self.tables]
            keys = tf.concat([part.keys for part in parts], axis=0)
            rows = tf.concat([part.rows for part in parts], axis=0)
            return keys, tf.ensure_shape(rows, (None, self.dim))

    def _flat(
        self, keys: Any, values: Any, what: str, dtype: tf.DType
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns keys and rows as `(n,)` and `(n, dim)`, after a check."""
        keys = self.keys_of(keys)
        values = tf.cast(values, dtype)
        expected = keys.shape.concatenate([self.dim])
        if not values.shape.is_compatible_with(expected):
            msg = (
                f"`{what}` of {self!r} must have the shape of the keys and the "
                f"width of a row, {tuple(expected)}. Received: "
                f"{tuple(values.shape)}."
            )
            raise ValueError(msg)
        return tf.reshape(keys, (-1,)), tf.reshape(values, (-1, self.dim))


def _accumulate(
    table: table_lib.Table,
    keys: tf.Tensor,
    old: tf.Tensor,
    new: tf.Tensor,
    exists: tf.Tensor,
) -> Any:
    handle = table.resource_handle
    found = _ops.table_lookup(
        [handle],
        [handle],
        [keys],
        [table.default_row(0.0)],
        dims=[table.dim],
        dtype=table.dtype,
        insert=False,
    ).found[0]
    both = tf.logical_and(exists, found)
    added = _ops.table_accumulate(
        [handle],
        [tf.boolean_mask(keys, both)],
        [tf.boolean_mask(new - old, both)],
        dims=[table.dim],
    )
    absent = tf.logical_not(exists)
    with tf.control_dependencies([] if added is None else [added]):
        return _ops.table_assign(
            [handle],
            [tf.boolean_mask(keys, absent)],
            [tf.cast(tf.boolean_mask(new, absent), table.dtype)],
            dims=[table.dim],
            only_missing=True,
        )


def _group(operations: list[Any]) -> Any:
    """Returns one operation for many, or None when executing eagerly."""
    made = [op for op in operations if op is not None]
    return tf.group(*made) if made else None
