"""StockTable: a table as lookups of an exported model see it.

A hash table of TensorFlow gives the place of a key among the rows of a
variable. The first places are for rows that absent keys read as: place 0 is
zeros, which is also what the hash table gives for a key that it lacks.

The hash table of TensorFlow takes the lowest bits of a key for its hash, so
that ids that differ in higher bits alone would all collide. It is therefore
given keys whose bits are mixed, by a bijection. It also reserves two keys,
which must not be looked up: the two lowest, and the third lowest is looked up
in their place. What is added to mixed keys makes these keys of no record.
"""

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from embedra import _ops, table as table_lib

from ._initial_rows import initial_rows
from ._stock_ops import StockOpsError, is_nested, nested_error
from ._storage import as_rows, file_dtype, stored_dtype


_LOWEST = -(2**63)
_MIXER = 0x9E3779B97F4A7C15
_LARGEST_INT32 = 2**31 - 1
# Places beyond those of the records, for rows of absent keys.
_ROOM = 2**16
_FILL = 0.75

Keys = npt.NDArray[np.int64]


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
        first_rows: Rows of absent keys, in the order of their places.
        index: From mixed keys to places; empty.
        rows: The rows; empty.
        scales: What rows are multiplied by, or None; empty.
        offset: Added to mixed keys.
        reserved: Keys that no record has, as the hash table reserves them, and
            one that is looked up in their place.
    """

    def __init__(
        self, tables: Sequence[table_lib.Table], quantize: str | None
    ) -> None:
        super().__init__()
        # A tuple in a dict would be tracked, and the tables exported with it.
        self._kept = _Untracked(tuple(tables))
        self.quantize = quantize
        self.first_rows = _Untracked([(0.0,) * self.header.dim])
        self.offset, reserved = _free_offset(self.tables)
        self.reserved = _Untracked(reserved)
        size = sum(int(table.size()) for table in self.tables)
        small = size + _ROOM <= _LARGEST_INT32
        self._place_dtype = tf.int32 if small else tf.int64
        self.index = self.new_index(0)
        dim = self.header.dim
        self.rows = tf.Variable(
            tf.zeros((0, dim), file_dtype(self.stored_dtype)),
            shape=(None, dim),
            trainable=False,
        )
        self.scales = None
        if quantize == "int8":
            self.scales = tf.Variable(
                tf.zeros((0,)), shape=(None,), trainable=False
            )

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

    def new_index(self, size: int, **options: Any) -> Any:
        """Makes an empty hash table.

        Args:
            size: How many keys it is to take.
            **options: Further ones of `DenseHashTable`.

        Returns:
            The hash table.
        """
        buckets = 16
        while buckets * _FILL < size:
            buckets *= 2
        return tf.lookup.experimental.DenseHashTable(
            tf.int64,
            self._place_dtype,
            default_value=0,
            empty_key=_LOWEST,
            deleted_key=_LOWEST + 1,
            initial_num_buckets=buckets,
            **options,
        )

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
        flat = tf.reshape(keys, (-1,))
        places = self.index.lookup(self._mixed(flat))
        places = tf.ensure_shape(places, (None,))
        found = places > 0
        default = self._default_row(default)
        if default is not None and any(default):
            places = tf.where(found, places, self._place_of(default))
        rows = self._rows_at(places)
        if default is None:
            rows = self._with_initial_rows(rows, flat, found)
        dim = self.header.dim
        rows = tf.reshape(rows, tf.concat([tf.shape(keys), [dim]], axis=0))
        rows.set_shape(keys.shape.concatenate([dim]))
        return rows, tf.reshape(found, tf.shape(keys))

    def _mixed(self, keys: tf.Tensor) -> tf.Tensor:
        """Mixes the bits of keys; reserved ones become the third of them."""
        half = tf.constant(32, tf.uint64)

        def fold(bits: tf.Tensor) -> tf.Tensor:
            high = tf.bitwise.right_shift(bits, half)
            return tf.bitwise.bitwise_xor(bits, high)

        bits = fold(tf.bitcast(keys, tf.uint64))
        bits = fold(bits * tf.constant(_MIXER, tf.uint64))
        if self.offset:
            bits += tf.constant(self.offset, tf.uint64)
        return tf.maximum(tf.bitcast(bits, tf.int64), _LOWEST + 2)

    def _rows_at(self, places: tf.Tensor) -> tf.Tensor:
        scales = None
        if self.scales is not None:
            scales = tf.gather(self.scales, places)
        stored = tf.gather(self.rows, places)
        return as_rows(stored, scales, self.header.dtype, self.stored_dtype)

    def _default_row(self, default: Any) -> tuple[float, ...] | None:
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
        return tuple(row.astype(np.float64).tolist())

    def _place_of(self, row: tuple[float, ...]) -> tf.Tensor:
        rows = self.first_rows.value
        if row not in rows:
            rows.append(row)
        return tf.constant(rows.index(row), self._place_dtype)

    def _with_initial_rows(
        self, rows: tf.Tensor, keys: tf.Tensor, found: tf.Tensor
    ) -> tf.Tensor:
        """Puts their initial rows where keys are absent."""
        header = self.header

        def draw() -> tf.Tensor:
            where = tf.where(tf.logical_not(found))
            drawn = initial_rows(tf.gather_nd(keys, where), header)
            return tf.tensor_scatter_nd_update(rows, where, drawn)

        return tf.cond(tf.reduce_all(found), lambda: tf.identity(rows), draw)


class _Untracked:
    """Keeps a value out of TensorFlow's sight."""

    def __init__(self, value: Any) -> None:
        self.value = value


def mixed_keys(keys: Keys, offset: int) -> Keys:
    """Mixes the bits of keys, so that low bits depend on all others.

    Args:
        keys: Keys.
        offset: Added in the end.

    Returns:
        Other keys, distinct for distinct ones.
    """
    bits = keys.view(np.uint64)
    bits = _folded(_folded(bits) * np.uint64(_MIXER)) + np.uint64(offset)
    mixed: Keys = bits.view(np.int64)
    return mixed


def _folded(bits: Any) -> Any:
    return bits ^ (bits >> np.uint64(32))


def _free_offset(tables: Sequence[table_lib.Table]) -> tuple[int, Keys]:
    """Chooses an offset for which no record has a key that is reserved.

    Args:
        tables: The tables.

    Returns:
        The offset, and the keys that the reserved ones come of.
    """
    reserved = np.arange(_LOWEST, _LOWEST + 3, dtype=np.int64)
    inverse = np.uint64(pow(_MIXER, -1, 2**64))
    for offset in itertools.count():
        bits = reserved.view(np.uint64) - np.uint64(offset)
        keys = _folded(_folded(bits) * inverse).view(np.int64)
        missing = tf.constant(keys)
        for table in tables:
            missing = _ops.table_missing(table.resource_handle, missing)
        if len(missing) == len(keys):
            return offset, keys
    raise AssertionError


class StockTables:
    """Makes a `StockTable` of each table that is read while it stands in.

    Args:
        quantize: How rows are stored.

    Attributes:
        made: What was made, in order.
        refusal: Why a lookup was refused, if one was.
    """

    def __init__(self, quantize: str | None) -> None:
        self.made: list[StockTable] = []
        self.refusal: StockOpsError | None = None
        self._quantize = quantize
        self._by_tables: dict[tuple[int, ...], StockTable] = {}

    def read(
        self, tables: Sequence[Any], keys: tf.Tensor, default: Any
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads rows; see `embedra.table.StandIn`.

        Args:
            tables: The tables that hold one map between them.
            keys: Keys.
            default: What absent keys read as.

        Returns:
            Rows, and which keys are there.
        """
        if is_nested():
            self.refusal = nested_error(f"Table {tables[0].name!r} is read")
            raise self.refusal
        identity = tuple(id(table) for table in tables)
        stock = self._by_tables.get(identity)
        if stock is None:
            # In a thread of its own: the function that is being traced would
            # take the variables for its own.
            with ThreadPoolExecutor(1) as thread:
                making = thread.submit(StockTable, tables, self._quantize)
            stock = making.result()
            self._by_tables[identity] = stock
            self.made.append(stock)
        return stock.read(keys, default)
