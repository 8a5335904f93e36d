"""RowReader: differentiable lookups in one table."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from embedra import _ops, table as table_lib
from embedra.optimizers import TableVariable

from ._combine import combine


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
        if insert and table_lib.current_stand_in() is None:
            return self._table.create_missing(keys)
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
        stand_in = table_lib.current_stand_in()
        if stand_in is not None:
            return stand_in.read([self._table], keys, self._default)[0]
        return self._run(self._rows, keys, insert)

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
        if table_lib.current_stand_in() is not None:
            rows = tf.cast(self.rows(keys, insert), tf.float32)
            return combine(rows, row_splits, weights, combiner)

        def look_up(
            handle: tf.Tensor,
            keys: tf.Tensor,
            weights: tf.Tensor = weights,
            **mode: bool,
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
                combiner=combiner,
                **mode,
            )
            return found.pooled[0]

        return self._run(look_up, keys, insert, weights)

    def _rows(
        self, handle: tf.Tensor, keys: tf.Tensor, **mode: bool
    ) -> tf.Tensor:
        found = _ops.table_lookup(
            [self._table.resource_handle],
            [handle],
            [keys],
            [self._table.default_row(self._default)],
            dims=[self._table.dim],
            dtype=self._table.dtype,
            **mode,
        )
        return found.rows[0]

    def _run(
        self,
        look_up: Callable[..., tf.Tensor],
        keys: tf.Tensor,
        insert: bool | None,
        *others: tf.Tensor,
    ) -> tf.Tensor:
        """Looks up in the way that `insert` asks for.

        It is not known whether a call without `training` belongs to a training
        step. If a gradient is computed, it does: absent keys are then created
        by the gradient.

        Args:
            look_up: Given a handle that stands for the rows, keys and `others`,
                gives rows.
            keys: Keys that are looked up.
            insert: As for `rows`.
            *others: Tensors that the rows depend on.

        Returns:
            Rows.
        """
        if insert is None and self._table.initializer.function is not None:
            return self._insert_by_python(look_up, keys, *others)
        return look_up(
            self._watched_handle(),
            keys,
            *others,
            insert=bool(insert),
            insert_in_gradient=insert is None,
        )

    def _insert_by_python(
        self, look_up: Callable[..., tf.Tensor], keys: tf.Tensor, *others: Any
    ) -> tf.Tensor:
        """Looks up, and calls a Python initializer if gradients are wanted.

        The op that looks up cannot do that, so that the lookup is done once
        more in the gradient.
        """

        @tf.custom_gradient
        def read(_: tf.Tensor, *others: tf.Tensor) -> Any:
            def gradient(*upstream: tf.Tensor) -> Any:
                created = self._table.create_missing(keys)
                with tf.GradientTape() as tape:
                    tape.watch(others)
                    handle = self._watched_handle()
                    again = look_up(handle, created, *others, insert=True)
                return tape.gradient(
                    again, [self._variable.value, *others], upstream[0]
                )

            # No variable takes part here: the handle only fills the place.
            handle = self._table.resource_handle
            return look_up(handle, keys, *others, insert=False), gradient

        return read(self._variable.value.read_value(), *others)

    def _watched_handle(self) -> tf.Tensor:
        """Returns the variable's handle, after telling tapes of its use."""
        variable = self._variable.value
        variable.read_value()
        return variable.handle
