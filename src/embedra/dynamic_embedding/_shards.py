"""ShardedTables: one map from keys to rows, kept in a table for each device."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from embedra import _ops, table as table_lib


# splitmix64, as two's complement.
_MULTIPLIERS = (0xBF58476D1CE4E5B9 - 2**64, 0x94D049BB133111EB - 2**64)


def default_partition_fn(keys: tf.Tensor, shard_num: int) -> tf.Tensor:
    """Spreads keys over shards by a hash (splitmix64).

    Args:
        keys: Keys, `int64`, any shape.
        shard_num: Number of shards.

    Returns:
        Shard of each key, `int32`, from 0 to `shard_num - 1`.
    """
    bits = tf.cast(keys, tf.int64)
    for shift, multiplier in zip((30, 27), _MULTIPLIERS, strict=True):
        bits = tf.bitwise.bitwise_xor(bits, _shifted(bits, shift)) * multiplier
    bits = tf.bitwise.bitwise_xor(bits, _shifted(bits, 31))
    return tf.cast(tf.math.floormod(bits, shard_num), tf.int32)


def _shifted(bits: tf.Tensor, shift: int) -> tf.Tensor:
    """Shifts right, with zeros coming in."""
    mask = (1 << (64 - shift)) - 1
    return tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, shift), mask)


class ShardedTables:
    """Splits batches over tables, and puts the answers together.

    The position of a record, in gradients, is
    `position in its table * number of tables + number of the table`.

    Args:
        tables: Tables of one width and dtype.
        partitioner: Given keys and the number of shards, gives each one's
            shard.
    """

    def __init__(
        self,
        tables: list[table_lib.Table],
        partitioner: Callable[[tf.Tensor, int], tf.Tensor],
    ) -> None:
        self.tables = tables
        self._partitioner = partitioner

    def lookup(
        self, keys: tf.Tensor, trainable: Any, *, insert: bool
    ) -> tf.Tensor:
        """Reads rows so that tapes record it for `trainable`.

        Args:
            keys: Keys, `int64`, any shape.
            trainable: The `TableVariable` that stands for the tables.
            insert: Whether absent keys are created.

        Returns:
            Rows, shape `keys.shape + (dim,)`.
        """
        stand_in = table_lib.current_stand_in()
        if stand_in is not None:
            return stand_in.read(self.tables, keys, None)[0]
        if len(self.tables) == 1:
            table = self.tables[0]
            if insert:
                keys = table.create_missing(keys)
            value = trainable.value
            value.read_value()
            return _lookup(table, value.handle, keys, insert=insert).rows[0]
        return self._lookup_many(keys, trainable, insert=insert)

    def _lookup_many(
        self, keys: tf.Tensor, trainable: Any, *, insert: bool
    ) -> tf.Tensor:
        dim = self.tables[0].dim
        flat = tf.reshape(keys, (-1,))

        @tf.custom_gradient
        def read(_: tf.Tensor) -> Any:
            def look_up(shard: int, part: tf.Tensor) -> tuple[Any, ...]:
                table = self.tables[shard]
                if insert:
                    part = table.create_missing(part)
                handle = table.resource_handle
                found = _lookup(table, handle, part, insert=insert)
                bounds.append(found.bounds[0])
                return found.rows[0], found.positions[0]

            bounds: list[tf.Tensor] = []
            count = len(self.tables)
            rows, positions = self.map(flat, look_up)
            shards = tf.cast(self.shards_of(flat), tf.int64)
            encoded = tf.where(
                positions < 0, positions, positions * count + shards
            )
            bound = tf.reduce_max(tf.stack(bounds)) * count

            def gradient(upstream: tf.Tensor) -> Any:
                # What a gradient consists of must be made by its own ops.
                return tf.IndexedSlices(
                    tf.cast(tf.reshape(upstream, (-1, dim)), tf.float32),
                    tf.identity(encoded),
                    _ops.shape_of_slices(bound, dim),
                )

            return rows, gradient

        return self._as_rows(read(trainable.read_value()), keys)

    def read(self, keys: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads rows, with no gradient.

        Args:
            keys: Keys, `int64`, any shape.

        Returns:
            Rows, shape `keys.shape + (dim,)`, and which keys are there.
        """
        stand_in = table_lib.current_stand_in()
        if stand_in is not None:
            return stand_in.read(self.tables, keys, None)

        def look_up(shard: int, part: tf.Tensor) -> tuple[Any, ...]:
            table = self.tables[shard]
            found = _lookup(table, table.resource_handle, part, insert=False)
            return found.rows[0], found.found[0]

        rows, found = self.map(tf.reshape(keys, (-1,)), look_up)
        return self._as_rows(rows, keys), tf.reshape(found, tf.shape(keys))

    def _as_rows(self, rows: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        dim = self.tables[0].dim
        rows = tf.reshape(rows, tf.concat([tf.shape(keys), [dim]], axis=0))
        rows.set_shape(keys.shape.concatenate([dim]))
        return rows

    def split_gradient(
        self, gradient: tf.IndexedSlices
    ) -> list[tuple[table_lib.Table, tf.IndexedSlices]]:
        """Splits a gradient of lookups by table.

        Args:
            gradient: Rows of gradients, and positions as described above.

        Returns:
            Each table with its rows of gradients and positions of records.
        """
        count = len(self.tables)
        if count == 1:
            return [(self.tables[0], gradient)]
        alive = gradient.indices >= 0
        indices = tf.boolean_mask(gradient.indices, alive)
        values = tf.boolean_mask(gradient.values, alive)
        shards = tf.cast(indices % count, tf.int32)
        indices = tf.dynamic_partition(indices // count, shards, count)
        values = tf.dynamic_partition(values, shards, count)
        return [
            (table, tf.IndexedSlices(part_values, part))
            for table, part_values, part in zip(
                self.tables, values, indices, strict=True
            )
        ]

    def map(
        self,
        keys: tf.Tensor,
        function: Callable[..., Any],
        *others: tf.Tensor,
    ) -> Any:
        """Calls a function for each table with its keys.

        Args:
            keys: Keys, `int64`, shape `(n,)`.
            function: Given the number of a table, its keys and its part of
                `others`; gives a tensor, or a tuple of tensors, with an element
                for each key.
            *others: Tensors with an element for each key.

        Returns:
            What the function gave, in the order of `keys`.
        """
        if len(self.tables) == 1:
            return function(0, keys, *others)
        results, where = self._by_shard(keys, function, others)
        if not isinstance(results[0], tuple):
            return _stitch(where, results, keys)
        return tuple(
            _stitch(where, list(columns), keys)
            for columns in zip(*results, strict=True)
        )

    def run(
        self,
        keys: tf.Tensor,
        function: Callable[..., Any],
        *others: tf.Tensor,
    ) -> Any:
        """Calls a function for its effect on each table.

        A table that is split over ranks is not told of the keys of others.

        Args:
            keys: Keys, `int64`, shape `(n,)`.
            function: As for `map`; gives an operation, a tensor or None.
            *others: Tensors with an element for each key.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.
        """
        if len(self.tables) == 1:
            own = table_lib.own_records(self.tables[0], keys, *others)
            results = [function(0, *own)]
        else:
            results, _ = self._by_shard(keys, function, others)
        if tf.executing_eagerly() or tf.inside_function():
            return None
        return tf.group(*[result for result in results if result is not None])

    def _by_shard(
        self, keys: tf.Tensor, function: Callable[..., Any], others: Any
    ) -> tuple[list[Any], list[tf.Tensor]]:
        """Calls a function by shard; also says where each one's keys are."""
        count = len(self.tables)
        shards = self.shards_of(keys)
        parts = [
            tf.dynamic_partition(tensor, shards, count)
            for tensor in (keys, *others)
        ]
        results = [
            function(shard, *arguments)
            for shard, arguments in enumerate(zip(*parts, strict=True))
        ]
        where = tf.dynamic_partition(tf.range(tf.size(keys)), shards, count)
        return results, where

    def shards_of(self, keys: tf.Tensor) -> tf.Tensor:
        """Returns the number of each key's table, `int32`.

        Args:
            keys: Keys, `int64`.
        """
        return tf.cast(self._partitioner(keys, len(self.tables)), tf.int32)


def _lookup(
    table: table_lib.Table, handle: tf.Tensor, keys: tf.Tensor, *, insert: bool
) -> _ops.TableLookup:
    return _ops.table_lookup(
        [table.resource_handle],
        [handle],
        [keys],
        [table.default_row(None)],
        dims=[table.dim],
        dtype=table.dtype,
        insert=insert,
    )


def _stitch(where: Any, columns: list[tf.Tensor], keys: tf.Tensor) -> tf.Tensor:
    stitched = tf.dynamic_stitch(where, columns)
    return tf.ensure_shape(
        stitched, keys.shape[:1].concatenate(columns[0].shape[1:])
    )
