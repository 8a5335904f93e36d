"""RowBlock: the touched rows of a variable's tables, as a dense variable."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from embedra import _ops, table as table_lib

from ._apply import constrain_rows
from ._block_rows import BlockRows
from ._fused import FusedRule
from ._slot_initial import constant_initial
from ._support import UnsupportedOptimizerError
from ._variable import TableVariable


class RowBlock:
    """What an optimizer gets to see of the tables of one variable.

    In a step the block's `row` takes the place of the variable among those
    that the optimizer is given, with the summed gradients of the touched rows.
    So all that the optimizer does with gradients, numbers and counters is done
    as for dense variables. Only when its rule runs are rows and slots read
    from the tables, and they are written back after it.

    Args:
        variable: Stands for the tables.
        kind: Class of the stand-ins, `BlockRows` or `ScratchRows`.
    """

    def __init__(
        self, variable: TableVariable, kind: type[BlockRows] = BlockRows
    ) -> None:
        self.variable = variable
        self.tables = list(variable.tables)
        self.dim = self.tables[0].dim
        self._kind = kind
        self.row = kind(self, variable.value.name.split(":")[0])
        self._positions: list[tf.Tensor] = []
        # Number of the step that tables note; theirs plus 1 if it is None.
        self.step: Any = None

    @property
    def slots(self) -> list[BlockRows]:
        """Stand-ins for the slots."""
        return list(self.row.slots.values())

    def add_slot(self, name: str, initial: Any, optimizer: Any) -> BlockRows:
        """Adds a slot, if there is none of that name yet.

        Args:
            name: Name of the slot.
            initial: What it starts from: a number, a tensor, or an initializer
                that is called with a shape and a dtype.
            optimizer: Whose slot it is, for messages.

        Returns:
            A stand-in for the slot's variable.

        Raises:
            UnsupportedOptimizerError: If it does not start as a constant.
        """
        found = self.row.slots.get(name)
        if found is None:
            value = constant_initial(initial, self.dim)
            if value is None:
                msg = (
                    f"Optimizer {type(optimizer).__name__} cannot update table "
                    f"{self.tables[0].name!r}: its slot {name!r} does not "
                    "start as one constant."
                )
                raise UnsupportedOptimizerError(msg)
            found = self._kind(self, name, value)
            self.row.slots[name] = found
        return found

    def take(
        self, gradients: dict[int, tf.IndexedSlices], *, deduplicate: bool
    ) -> Any:
        """Takes the gradients of a step.

        Args:
            gradients: By the `id` of the table.
            deduplicate: Whether to sum those of equal rows, which only
                `update_fused` does by itself.

        Returns:
            Gradients of the touched rows, `float32`, shape
            `(n, dim)`; or None if there are none for these tables.
        """
        if not any(id(table) in gradients for table in self.tables):
            return None
        self._positions = []
        sums = []
        for table in self.tables:
            positions, values = self._positions_and_values(
                table, gradients.get(id(table)), deduplicate
            )
            self._positions.append(positions)
            sums.append(values)
        self.row.open()
        for slot in self.slots:
            slot.open()
        return sums[0] if len(sums) == 1 else tf.concat(sums, axis=0)

    def _positions_and_values(
        self,
        table: table_lib.Table,
        gradient: tf.IndexedSlices | None,
        deduplicate: bool,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        if gradient is None:
            nothing = tf.zeros((0, self.dim), tf.float32)
            return tf.zeros((0,), tf.int64), nothing
        positions = tf.cast(gradient.indices, tf.int64)
        values = tf.cast(gradient.values, tf.float32)
        if not deduplicate:
            return positions, values
        unique, sums = _ops.table_deduplicate(
            [table.resource_handle], [positions], [values], dims=[self.dim]
        )
        return unique[0], tf.ensure_shape(sums[0], (None, self.dim))

    def update(self, rule: Callable[[], Any]) -> Any:
        """Runs an optimizer's rule on the rows, and stores what comes of it.

        Args:
            rule: Works on `row` and `slots`; may return an operation.

        Returns:
            The operation to run in a TF1 graph, None when eager.
        """
        loaded = self._load()
        with tf.control_dependencies(_operations(loaded)):
            done = rule()
        with tf.control_dependencies(_operations([done])):
            stored = self._store()
        with tf.control_dependencies(_operations(stored)):
            closed = [r.close() for r in (self.row, *self.slots)]
        if tf.executing_eagerly():
            return None
        return tf.group(*_operations([*stored, *closed]))

    def update_fused(
        self,
        rule: FusedRule,
        gradients: tf.Tensor,
        learning_rate: Any,
        weight_decay: float = 0.0,
    ) -> Any:
        """Makes a step by a kernel of the core.

        Args:
            rule: The kernel and its numbers.
            gradients: What became of those that `take` gave.
            learning_rate: Of this step.
            weight_decay: Decoupled weight decay.

        Returns:
            The operation to run in a TF1 graph, None when eager.
        """
        done = []
        parts = self._split(gradients)
        for table, positions, part in zip(
            self.tables, self._positions, parts, strict=True
        ):
            update = _ops.table_update(
                [table.resource_handle],
                [positions],
                [part],
                learning_rate=tf.cast(learning_rate, tf.float32),
                step=self._step_of(table),
                optimizer=rule.name,
                weight_decay=weight_decay,
                **rule.hyperparameters,
            )
            done.append(update)
        with tf.control_dependencies(_operations(done)):
            constrained = self._constrain()
        closed = [r.close() for r in (self.row, *self.slots)]
        if tf.executing_eagerly():
            return None
        return tf.group(*_operations([*done, *constrained, *closed]))

    def _constrain(self) -> list[Any]:
        """Applies the variable's constraint to the touched rows."""
        constraint = self.variable.row_constraint
        if constraint is None:
            return []
        return [
            constrain_rows(table, positions, constraint)
            for table, positions in zip(
                self.tables, self._positions, strict=True
            )
        ]

    def _split(self, values: tf.Tensor) -> list[tf.Tensor]:
        """Splits what belongs to the touched rows by table."""
        if len(self.tables) == 1:
            return [values]
        sizes = [tf.size(positions) for positions in self._positions]
        parts: list[tf.Tensor] = tf.split(values, sizes, axis=0)
        return parts

    def _step_of(self, table: table_lib.Table) -> Any:
        if self.step is not None:
            return self.step
        return _ops.table_step(table.resource_handle) + 1

    def _load(self) -> list[Any]:
        """Reads rows and slots."""
        slots = self.slots
        specs = [
            table_lib.Slot(slot.name, self.dim, slot.initial) for slot in slots
        ]
        columns = []
        for table, positions in zip(self.tables, self._positions, strict=True):
            layout = table.set_slots(specs)
            with tf.control_dependencies(_operations([layout])):
                rows, values = _ops.table_read_records(
                    table.resource_handle,
                    positions,
                    [slot.name for slot in slots],
                    dim=self.dim,
                )
            columns.append([rows, *values])
        assigned = []
        for stand_in, parts in zip(
            (self.row, *slots), zip(*columns, strict=True), strict=True
        ):
            stand_in.tensor = (
                parts[0] if len(parts) == 1 else tf.concat(parts, axis=0)
            )
            assigned.append(getattr(stand_in, "_filled", None))
        return assigned

    def _store(self) -> list[Any]:
        """Writes rows and slots."""
        slots = self.slots
        parts = [self._split(rows.tensor) for rows in (self.row, *slots)]
        written = []
        for i, table in enumerate(self.tables):
            write = _ops.table_write_records(
                table.resource_handle,
                self._positions[i],
                parts[0][i],
                [part[i] for part in parts[1:]],
                [slot.name for slot in slots],
                dim=self.dim,
            )
            clock = _ops.table_set_step(
                table.resource_handle, self._step_of(table)
            )
            written += [write, clock]
        with tf.control_dependencies(_operations(written)):
            return [*written, *self._constrain()]


def _operations(candidates: list[Any]) -> list[Any]:
    """Leaves out what eager ops return."""
    return [
        c
        for c in candidates
        if isinstance(c, tf.Operation) or tf.is_symbolic_tensor(c)
    ]
