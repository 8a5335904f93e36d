"""The update by any elementwise Keras optimizer, the user's own included.

Rows and slots of the touched keys are read, the optimizer's own `update_step`
is run on them as if they were a variable, and the results are written back.
"""

import threading
from typing import Any

import keras
import tensorflow as tf

from embedra import _ops, table as table_lib

from ._outside import outside_functions
from ._rows import Rows
from ._runner import runner_of
from ._support import unsupported_state


# Threads that meet a pair at once get the same updater.
_MAKING = threading.RLock()


class RowUpdater:
    """Runs one optimizer on blocks of rows of one table.

    Args:
        table: The table; the optimizer's slots are added to it.
        optimizer: The optimizer. It is only read: its numbers, schedule and
            iterations are looked up at each step.

    Raises:
        UnsupportedOptimizerError: If its state does not fit rows.
    """

    def __init__(
        self, table: table_lib.Table, optimizer: keras.optimizers.Optimizer
    ) -> None:
        self._table = table
        self._row = Rows(table.dim, "rows")
        # Of one step at a time, also while functions are traced.
        self._lock = threading.RLock()
        outside_functions(lambda: self._build(optimizer))
        self._specs = [
            table_lib.Slot(slot.name, table.dim, slot.initial)
            for slot in self._slots
        ]

    def _build(self, optimizer: keras.optimizers.Optimizer) -> None:
        """Makes a runner and what it keeps."""
        self._runner = runner_of(optimizer)
        try:
            self._runner.build([self._row])
        except Exception as error:
            why = f"building its state for rows failed ({error})."
            raise unsupported_state(optimizer, self._table.name, why) from error
        self._slots: list[Rows] = self._runner.row_slots
        if any(rows.tensor is not None for rows in self._slots):
            why = "its state starts from the values of the variable."
            raise unsupported_state(optimizer, self._table.name, why)
        self._add_scalars()

    def _add_scalars(self) -> None:
        """Has numbers kept once per variable saved with the table."""
        for index, variable in enumerate(self._runner.extra_variables()):
            name = f"{type(self._runner).__name__}_{index}"
            self._table.scalars.add(name, variable)

    def update(
        self,
        positions: tf.Tensor,
        gradients: tf.Tensor,
        weight_decay: Any,
    ) -> None:
        """Updates rows.

        Args:
            positions: Positions of the rows, unique, `int64`, shape `(n,)`.
            gradients: Their summed and clipped gradients, `float32`,
                shape `(n, dim)`.
            weight_decay: Decoupled weight decay, or None.
        """
        with self._lock:
            self._update(positions, gradients, weight_decay)

    def _update(
        self,
        positions: tf.Tensor,
        gradients: tf.Tensor,
        weight_decay: Any,
    ) -> None:
        handle = self._table.resource_handle
        self._table.set_slots(self._specs)
        names = [slot.name for slot in self._specs]
        rows, slots = _ops.table_read_records(
            handle, positions, names, dim=self._table.dim
        )
        learning_rate = tf.cast(self._runner.learning_rate, tf.float32)
        self._runner.follow()
        try:
            self._row.tensor = rows
            for slot, tensor in zip(self._slots, slots, strict=True):
                slot.tensor = tensor
            if positions.shape[0] == 0:
                # Keras fails on matrices without rows, but has to be run for
                # what it keeps once per variable.
                gradients = self._one_row_of_zeros(gradients)
            if weight_decay is not None:
                self._row.assign_sub(
                    self._row.tensor * weight_decay * learning_rate
                )
            self._runner._backend_update_step(
                [gradients], [self._row], learning_rate
            )
            if positions.shape[0] == 0:
                return
            _ops.table_write_records(
                handle,
                positions,
                self._row.tensor,
                [slot.tensor for slot in self._slots],
                names,
                dim=self._table.dim,
            )
        finally:
            for stand_in in (self._row, *self._slots):
                stand_in.tensor = None

    def _one_row_of_zeros(self, gradients: tf.Tensor) -> tf.Tensor:
        """Replaces rows, slots and gradients by one row; returns the latter."""
        for stand_in in (self._row, *self._slots):
            stand_in.tensor = tf.pad(stand_in.tensor, [[0, 1], [0, 0]])
        return tf.pad(gradients, [[0, 1], [0, 0]])


def row_updater(
    table: table_lib.Table, optimizer: keras.optimizers.Optimizer
) -> RowUpdater:
    """Returns the updater of a pair, making it the first time.

    Args:
        table: The table.
        optimizer: The optimizer.

    Returns:
        The updater.
    """
    with _MAKING:
        updater: RowUpdater | None = table.companions.get(optimizer)
        if updater is None:
            updater = RowUpdater(table, optimizer)
            table.companions[optimizer] = updater
        return updater
