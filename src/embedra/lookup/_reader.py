"""RowReader: differentiable lookups in one table."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from embedra import _ops, table as table_lib
from embedra._checks import check_one_of
from embedra.distribute import Communicator, send_to_owners
from embedra.optimizers import TableVariable
from embedra.scopes import WIRE_DTYPES, current_options

from ._combine import combine
from ._requests import Request, look_up


class RowReader:
    """Looks up keys so that tapes record it for the table's variable.

    A table that is split over the ranks of a job is read on all of them: they
    must make the same lookups in the same order, if need be of no keys.

    Args:
        table: The table.
        variable: Stands for the table's rows among a model's variables.
        default: What absent keys read as: "initializer", "zeros" or a row.
        wire_dtype: What rows of a table that is split, and their gradients, are
            sent as; None for what `embedra.scope(wire_dtype=...)` says.

    Raises:
        ValueError: If there is no such `wire_dtype`.

    Attributes:
        table: The table.
        wire_dtype: What its rows are sent as.
    """

    def __init__(
        self,
        table: table_lib.Table,
        variable: TableVariable,
        default: str | list[float],
        wire_dtype: str | None = None,
    ) -> None:
        self.table = table
        self.wire_dtype = check_one_of(
            "wire_dtype",
            wire_dtype or current_options().wire_dtype,
            WIRE_DTYPES,
        )
        self._variable = variable
        self._default: Any = default
        if default in ("initializer", "zeros"):
            self._default = None if default == "initializer" else 0.0

    @property
    def ranks(self) -> Communicator | None:
        """Those from which rows are read; None if they are all here."""
        ranks = self.table.communicator
        if ranks is None or ranks.size == 1:
            return None
        return None if table_lib.current_stand_in() else ranks

    def keys(self, ids: Any, insert: bool | None) -> tf.Tensor:
        """Converts dense ids to keys, ready to be looked up.

        Args:
            ids: Integers or strings.
            insert: Whether the lookup to come inserts.

        Returns:
            Keys, `int64`.
        """
        keys = table_lib.to_keys(ids, f"Layer {self.table.name!r}")
        return keys if self.ranks else self.created(keys, insert)

    def created(self, keys: tf.Tensor, insert: bool | None) -> tf.Tensor:
        """Creates keys that are absent here, where a lookup cannot.

        Args:
            keys: This process's own, any shape.
            insert: Whether the lookup to come inserts.

        Returns:
            The keys; in a TF1 graph they come after the creation.
        """
        if insert and table_lib.current_stand_in() is None:
            return self.table.create_missing(keys)
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
        if self.ranks is None:
            return self.own_rows(keys, insert)
        return look_up([Request(self, keys, insert)])[0]

    def pooled(
        self,
        keys: tf.Tensor,
        row_splits: tf.Tensor,
        weights: tf.Tensor,
        insert: bool | None,
        combiner: str,
    ) -> tf.Tensor:
        """Reads and combines rows.

        Args:
            keys: Keys, shape `(n,)`.
            row_splits: Where bags begin and end, `int64`, shape `(bags + 1,)`.
            weights: `float32`, shape `(n,)`, or `(0,)` for none.
            insert: As for `rows`.
            combiner: "sum", "mean" or "sqrtn".

        Returns:
            `float32`, shape `(bags, dim)`.
        """
        bags = row_splits, weights
        if self.ranks is None:
            return self.own_pooled(keys, *bags, insert, combiner)
        return look_up([Request(self, keys, insert, combiner, *bags)])[0]

    def penalty(
        self, keys: tf.Tensor, regularizer: Callable[[tf.Tensor], tf.Tensor]
    ) -> tf.Tensor:
        """Applies a regularizer to the rows of a batch, each of them once.

        Rows of a table that is split are penalized by their owners, and the
        penalties are added up: each rank gets that of the keys of all, once.

        Args:
            keys: Keys of any shape.
            regularizer: Given rows, `float32`, shape `(n, dim)`, gives a
                scalar.

        Returns:
            The penalty.
        """
        ranks = self.ranks
        label = f"{self.table.name} regularized"
        if ranks is None:
            keys = tf.unique(tf.reshape(keys, (-1,)))[0]
        else:
            keys = send_to_owners(ranks, keys, label=label)
        rows = tf.cast(self.own_rows(keys, insert=False), tf.float32)
        penalty = regularizer(rows)
        if ranks is None:
            return penalty
        mean = ranks.all_reduce(penalty, "mean", label=label)
        # The gradients of the ranks' losses are averaged. The penalty, which is
        # in all of them, is their sum, but its gradient that of the mean.
        return mean + tf.stop_gradient(mean * float(ranks.size - 1))

    def own_rows(self, keys: tf.Tensor, insert: bool | None) -> tf.Tensor:
        """Reads rows of what this process has of the table.

        Arguments and result are those of `rows`.
        """
        stand_in = table_lib.current_stand_in()
        if stand_in is not None:
            return stand_in.read([self.table], keys, self._default)[0]
        return self._run(self._rows, keys, insert)

    def own_pooled(
        self,
        keys: tf.Tensor,
        row_splits: tf.Tensor,
        weights: tf.Tensor,
        insert: bool | None,
        combiner: str,
    ) -> tf.Tensor:
        """Reads and combines, in one pass, rows of what this process has.

        Arguments and result are those of `pooled`.
        """
        if table_lib.current_stand_in() is not None:
            rows = tf.cast(self.own_rows(keys, insert), tf.float32)
            return combine(rows, row_splits, weights, combiner)

        def read(
            handle: tf.Tensor,
            keys: tf.Tensor,
            weights: tf.Tensor = weights,
            **mode: bool,
        ) -> tf.Tensor:
            found = _ops.table_pooled_lookup(
                [self.table.resource_handle],
                [handle],
                [keys],
                [row_splits],
                [weights],
                [self.default_row()],
                dims=[self.table.dim],
                dtype=self.table.dtype,
                combiner=combiner,
                **mode,
            )
            return found.pooled[0]

        return self._run(read, keys, insert, weights)

    def default_row(self) -> tf.Tensor:
        """Returns what absent keys read as, as the lookup ops take it."""
        return self.table.default_row(self._default)

    def watched_handle(self) -> tf.Tensor:
        """Returns the variable's handle, after telling tapes of its use."""
        variable = self._variable.value
        variable.read_value()
        return variable.handle

    def _rows(
        self, handle: tf.Tensor, keys: tf.Tensor, **mode: bool
    ) -> tf.Tensor:
        found = _ops.table_lookup(
            [self.table.resource_handle],
            [handle],
            [keys],
            [self.default_row()],
            dims=[self.table.dim],
            dtype=self.table.dtype,
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
        if insert is None and self.table.initializer.function is not None:
            return self._insert_by_python(look_up, keys, *others)
        return look_up(
            self.watched_handle(),
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
                created = self.table.create_missing(keys)
                with tf.GradientTape() as tape:
                    tape.watch(others)
                    handle = self.watched_handle()
                    again = look_up(handle, created, *others, insert=True)
                return tape.gradient(
                    again, [self._variable.value, *others], upstream[0]
                )

            # No variable takes part here: the handle only fills the place.
            handle = self.table.resource_handle
            return look_up(handle, keys, *others, insert=False), gradient

        return read(self._variable.value.read_value(), *others)
