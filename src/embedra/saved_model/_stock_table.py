"""StockTable: a table as lookups of an exported model see it.

A record is a key and its row, side by side in one variable, so that a lookup
goes to memory once for both. A perfect hash tells the record that is to be read
for a key; see `_slots.py`. If the key in there is another one, the table lacks
the key.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from embedra import table as table_lib

from ._initial_rows import initial_rows
from ._slots import stock_slots_of
from ._storage import record_words, stored_dtype, unpack


class StockTable(tf.Module):
    """Stands for tables that hold one map between them.

    It holds no records: what is written to the files of the SavedModel is
    filled in when they are written. See `write_table`.

    Args:
        tables: The tables.
        quantize: How rows are stored; see `embedra.saved_model.export`.

    Attributes:
        tables: The tables.
        header: Describes them.
        quantize: How rows are stored.
        records: The records by slot; empty.
        pilots: Of the perfect hash; empty.
        parameters: Of the perfect hash; zeros.
    """

    def __init__(
        self, tables: Sequence[table_lib.Table], quantize: str | None
    ) -> None:
        super().__init__()
        # A tuple in a dict would be tracked, and the tables exported with it.
        self._kept = _Untracked(tuple(tables))
        self.quantize = quantize
        words = record_words(self.header.dim, self.stored_dtype)
        self.records = _empty((0, words), tf.int64)
        self.pilots = _empty((0,), tf.uint16)
        self.parameters = tf.Variable(tf.zeros(4, tf.int64), trainable=False)

    @property
    def tables(self) -> tuple[table_lib.Table, ...]:
        """The tables that this one stands for."""
        tables: tuple[table_lib.Table, ...] = self._kept.value
        return tables

    @property
    def header(self) -> table_lib.TableHeader:
        """Describes the tables."""
        return table_lib.header_of(self.tables[0])

    @property
    def stored_dtype(self) -> str:
        """Dtype that rows are stored in."""
        return stored_dtype(self.header.dtype, self.quantize)

    def read(
        self, keys: tf.Tensor, default: Any
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads rows.

        Args:
            keys: Keys, `int64`, any shape.
            default: What absent keys read as; see `StandIn`.

        Returns:
            Rows, shape `keys.shape + (dim,)`, and which keys are there.
        """
        header = self.header
        flat = tf.reshape(keys, (-1,))
        slots = stock_slots_of(flat, self.parameters, self.pilots)
        records = tf.gather_nd(self.records, slots[:, tf.newaxis])
        rows = unpack(records, header.dim, self.stored_dtype, header.dtype)
        absent = tf.not_equal(records[:, 0], flat)
        rows = self._with_absent(rows, flat, absent, default)
        shape = tf.concat([tf.shape(keys), [header.dim]], axis=0)
        rows = tf.reshape(rows, shape)
        rows.set_shape(keys.shape.concatenate([header.dim]))
        return rows, tf.reshape(tf.logical_not(absent), tf.shape(keys))

    def _with_absent(
        self, rows: tf.Tensor, keys: tf.Tensor, absent: tf.Tensor, default: Any
    ) -> tf.Tensor:
        """Puts in what absent keys read as."""
        row = self._default_row(default)

        def replaced() -> tf.Tensor:
            where = tf.where(absent)
            if row is None:
                first = initial_rows(tf.gather_nd(keys, where), self.header)
            else:
                first = tf.repeat(row[tf.newaxis], tf.shape(where)[0], axis=0)
            return tf.tensor_scatter_nd_update(rows, where, first)

        return tf.cond(
            tf.reduce_any(absent), replaced, lambda: tf.identity(rows)
        )

    def _default_row(self, default: Any) -> tf.Tensor | None:
        """Returns the row of absent keys; None if each has its own."""
        header = self.header
        if default is None:
            if header.initializer != "constant":
                return None
            default = header.parameters
            default = default[0] if len(default) == 1 else default
        static = default
        if tf.is_tensor(default):
            static = tf.get_static_value(default)
        if static is None:
            msg = (
                f"`default` of lookups in table {header.name!r} must be a "
                "number or a row that is known when the model is exported. "
                f"Received: {default!r}"
            )
            raise ValueError(msg)
        with tf.init_scope():
            row = self.tables[0].default_row(static).numpy()
        return tf.constant(row)


class _Untracked:
    """Keeps a value out of TensorFlow's sight."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _empty(shape: tuple[int, ...], dtype: tf.DType) -> tf.Variable:
    """Returns a variable that is to have more rows when it is restored."""
    return tf.Variable(
        np.zeros(shape, dtype.as_numpy_dtype),
        shape=(None, *shape[1:]),
        trainable=False,
    )
