"""RowReader: differentiable lookups in one table."""

from typing import Any

import tensorflow as tf

from embedra import _ops, table as table_lib
from embedra.optimizers import TableVariable


class RowReader:
    """Looks up keys so that tapes record it for the table's variable.

    Args:
        table: The table.
        variable: Stands for the table's rows among a model's variables.
        default: What absent keys read as: "initializer", "zeros" or a row.
    """

    def __init__(
        self,
        table: table_lib.Table,
        variable: TableVariable,
        default: str | list[float],
    ) -> None:
        self._table = table
        self._variable = variable
        self._default: Any = default
        if default in ("initializer", "zeros"):
            self._default = None if default == "initializer" else 0.0

    def keys(self, ids: Any, insert: bool) -> tf.Tensor:
        """Converts dense ids to keys, ready to be looked up.

        Args:
            ids: Integers or strings.
            insert: Whether the lookup to come inserts.

        Returns:
            Keys, `int64`.
        """
        keys = table_lib.to_keys(ids, f"Layer {self._table.name!r}")
        if insert:
            self._table.create_missing(keys)
        return keys

    def rows(self, keys: tf.Tensor, insert: bool) -> tf.Tensor:
        """Reads rows.

        Args:
            keys: Keys of any shape.
            insert: Whether absent keys are created.

        Returns:
            Rows of the table's dtype, shape `keys.shape + (dim,)`.
        """
        found = _ops.table_lookup(
            [self._table.resource_handle],
            [self._watched_handle()],
            [keys],
            [self._table.default_row(self._default)],
            dims=[self._table.dim],
            dtype=self._table.dtype,
            insert=insert,
        )
        return found.rows[0]

    def pooled(
        self,
        keys: tf.Tensor,
        row_splits: tf.Tensor,
        weights: tf.Tensor,
        insert: bool,
        combiner: str,
    ) -> tf.Tensor:
        """Reads and combines rows in one pass.

        Args:
            keys: Keys, shape `(n,)`.
            row_splits: Where bags begin and end, `int64`, shape `(bags + 1,)`.
            weights: `float32`, shape `(n,)`, or `(0,)` for none.
            insert: Whether absent keys are created.
            combiner: "sum", "mean" or "sqrtn".

        Returns:
            `float32`, shape `(bags, dim)`.
        """
        found = _ops.table_pooled_lookup(
            [self._table.resource_handle],
            [self._watched_handle()],
            [keys],
            [row_splits],
            [weights],
            [self._table.default_row(self._default)],
            dims=[self._table.dim],
            dtype=self._table.dtype,
            insert=insert,
            combiner=combiner,
        )
        return found.pooled[0]

    def _watched_handle(self) -> tf.Tensor:
        """Returns the variable's handle, after telling tapes of its use."""
        variable = self._variable.value
        variable.read_value()
        return variable.handle
