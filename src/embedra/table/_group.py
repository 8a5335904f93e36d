"""TableGroup: tables that hold the records of one map between them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from embedra.distribute import Communicator, owned

from ._records import Records, Slot
from ._table import Table


class TableGroup(NamedTuple):
    """Tables that hold the records of one map between them.

    State is saved for the whole, as if it were one table: what was saved with
    any number of tables is restored into any other.

    Attributes:
        tables: The tables, of one width and dtype.
        shard_of: Given keys, `int64`, shape `(n,)`, gives the number of the
            table of each, `int32`. None if there is one table.
    """

    tables: Sequence[Table]
    shard_of: Callable[[tf.Tensor], tf.Tensor] | None = None

    @property
    def first(self) -> Table:
        """The table that speaks for all in what they have in common."""
        return self.tables[0]

    @property
    def communicator(self) -> Communicator | None:
        """Of the ranks that hold the map together; None if it is whole."""
        found = self.first.communicator
        return None if found is None or found.size == 1 else found

    @property
    def origin(self) -> "TableGroup":
        """The group of the tables that copies in a SavedModel stand for."""
        tables = [table.origin for table in self.tables]
        return TableGroup(tables, self.shard_of)

    def size(self) -> int:
        """Returns the number of keys (not inside a `tf.function`)."""
        return sum(int(table.size()) for table in self.tables)

    def agree_on_slots(self) -> tuple[Slot, ...]:
        """Gives all tables the slots that any of them has.

        A table that took no part in a step may lack them.

        Returns:
            The slots.
        """
        slots = {
            slot.name: slot for table in self.tables for slot in table.slots
        }
        agreed = tuple(slots.values())
        for table in self.tables:
            if table.slots != agreed:
                table.set_slots(agreed)
        return agreed

    def own(self, keys: Any, columns: Sequence[Any]) -> list[Any]:
        """Keeps what is this rank's.

        Args:
            keys: Keys, `int64`, shape `(n,)`.
            columns: Tensors with an element for each key, or with none.

        Returns:
            The columns, with the elements of keys that this rank holds.
        """
        if self.communicator is None:
            return list(columns)
        kept = tf.where(owned(keys, self.communicator))[:, 0]
        return [
            column if column.shape[0] == 0 else tf.gather(column, kept)
            for column in map(tf.convert_to_tensor, columns)
        ]

    def split(self, records: Records) -> Iterator[tuple[Table, Records]]:
        """Splits records by table.

        Args:
            records: A chunk of whole records; columns may be empty.

        Yields:
            Each table with its records.
        """
        if self.shard_of is None:
            yield self.first, records
            return
        keys = tf.convert_to_tensor(records.keys)
        parts = self.parts(keys, records)
        for table, part in zip(self.tables, parts, strict=True):
            yield table, Records(*part)

    def parts(
        self, keys: tf.Tensor, columns: Sequence[Any]
    ) -> list[tuple[Any, ...]]:
        """Splits columns by table.

        Args:
            keys: Keys, `int64`, shape `(n,)`.
            columns: Tensors with an element for each key, or with none.

        Returns:
            For each table its part of each column.
        """
        if self.shard_of is None:
            return [tuple(columns)]
        count = len(self.tables)
        shards = tf.cast(self.shard_of(keys), tf.int32)
        split = [_partition(column, shards, count) for column in columns]
        return list(zip(*split, strict=True))


def _partition(column: Any, shards: tf.Tensor, count: int) -> list[tf.Tensor]:
    column = tf.convert_to_tensor(column)
    if column.shape[0] == 0 and shards.shape[0] != 0:
        return [column] * count
    return list(tf.dynamic_partition(column, shards, count))
