"""StockTables: what stands in for all tables that a model reads."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tensorflow as tf

from ._stock_ops import StockOpsError, is_nested, nested_error
from ._stock_table import StockTable


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
            # AutoGraph, which follows calls of what it converts, stops here.
            make = tf.autograph.experimental.do_not_convert(self._make)
            stock = self._by_tables[identity] = make(tables)
        return stock.read(keys, default)

    def _make(self, tables: Sequence[Any]) -> StockTable:
        # In a thread of its own: the function that is being traced would take
        # the variables for its own.
        with ThreadPoolExecutor(1) as thread:
            making = thread.submit(StockTable, tables, self._quantize)
        self.made.append(making.result())
        return self.made[-1]
