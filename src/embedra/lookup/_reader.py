"""RowReader: differentiable lookups in one table."""

from collections.abc import Callable
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

    def keys(self, ids: Any, insert: bool | None) -> tf.Tensor:
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

    def rows(self, keys: tf.Tensor, insert: bool | None) -> tf.Tensor:
        """Reads rows.

        Args:
            keys: Keys of any shape.
            insert: Whether absent keys are created: now, never, or (None) when
                a tape asks for their gradients.

        Returns:
            Rows of the table's dtype, shape `keys.shape + (dim,)`.
        """
        if insert is None:
            return self._insert_in_gradient(
                lambda handle, now: self._rows(keys, handle, now), keys
            )
        return self._rows(keys, self._watched_handle(), insert)

    def pooled(
        self,
        keys: tf.Tensor,
        row_splits: tf.Tensor,
        weights: tf.Tensor,
        insert: bool | None,
        combiner: str,
    ) -> tf.Tensor:
        """Reads and combines rows in one pass.

        Args:
            keys: Keys, shape `(n,)`.
            row_splits: Where bags begin and end, `int64`, shape `(bags + 1,)`.
            weights: `float32`, shape `(n,)`, or `(0,)` for none.
            insert: As for `rows`.
            combiner: "sum", "mean" or "sqrtn".

        Returns:
            `float32`, shape `(bags, dim)`.
        """

        def look_up(
            handle: tf.Tensor, now: bool, weights: tf.Tensor = weights
        ) -> tf.Tensor:
            found = _ops.table_pooled_lookup(
                [self._table.resource_handle],
                [handle],
                [keys],
                [row_splits],
                [weights],
                [self._table.default_row(self._default)],
                dims=[self._table.dim],
                dtype=self._table.dtype,
                insert=now,
                combiner=combiner,
            )
            return found.pooled[0]

        if insert is None:
            return self._insert_in_gradient(look_up, keys, weights)
        return look_up(self._watched_handle(), insert)

    def _rows(
        self, keys: tf.Tensor, handle: tf.Tensor, insert: bool
    ) -> tf.Tensor:
        found = _ops.table_lookup(
            [self._table.resource_handle],
            [handle],
            [keys],
            [self._table.default_row(self._default)],
            dims=[self._table.dim],
            dtype=self._table.dtype,
            insert=insert,
        )
        return found.rows[0]

    def _insert_in_gradient(
        self, look_up: Callable[..., tf.Tensor], keys: tf.Tensor, *others: Any
    ) -> tf.Tensor:
        """Looks up, and creates absent keys only if gradients are wanted.

        It is not known whether a call without `training` belongs to a training
        step. If a gradient is computed, it does: then the lookup is done once
        more, this time inserting, and its gradient taken.

        Args:
            look_up: Given a handle that stands for the rows, whether to insert,
                and `others`, gives rows.
            keys: Keys that are looked up.
            *others: Tensors that the rows depend on.

        Returns:
            What `look_up` gives without inserting.
        """

        @tf.custom_gradient
        def read(_: tf.Tensor, *others: tf.Tensor) -> Any:
            def gradient(*upstream: tf.Tensor) -> Any:
                self._table.create_missing(keys)
                with tf.GradientTape() as tape:
                    tape.watch(others)
                    again = look_up(self._watched_handle(), True, *others)
                return tape.gradient(
                    again, [self._variable.value, *others], upstream[0]
                )

            # No variable takes part here: the handle only fills the place.
            return look_up(
                self._table.resource_handle, False, *others
            ), gradient

        return read(self._variable.value.read_value(), *others)

    def _watched_handle(self) -> tf.Tensor:
        """Returns the variable's handle, after telling tapes of its use."""
        variable = self._variable.value
        variable.read_value()
        return variable.handle
