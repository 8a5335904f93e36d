"""TableVariable: how a table appears among a model's trainable variables."""

import warnings
from typing import Any

import keras
import tensorflow as tf

from embedra import table as table_lib

from ._apply import StepInputs, apply_gradients, step_inputs
from ._caller import calling_optimizer
from ._clip import TablePart, clip_over_tables
from ._inner import as_rows_of
from ._support import UnsupportedOptimizerError, check_supported


class TableVariable(keras.Variable):
    """A variable of no elements that stands for the rows of a table.

    Lookups take its handle, so that a tape gives it their gradients. Keras
    optimizers hand it that gradient through `assign`, since its
    `overwrite_with_gradient` is true, and the rows are updated.

    Args:
        table: The table.
        name: Name of the variable.
        optimizer: What updates the rows in place of the model's optimizer.
        constraint: Applied to touched rows after each update.
    """

    def __init__(
        self,
        table: table_lib.Table,
        *,
        name: str = "embeddings",
        optimizer: keras.optimizers.Optimizer | None = None,
        constraint: Any = None,
    ) -> None:
        self.table = table
        self.optimizer = optimizer
        self.row_constraint = constraint
        self._has_warned = False
        super().__init__(
            initializer="zeros",
            shape=(0, table.dim),
            dtype="float32",
            autocast=False,
            name=name,
        )
        # The whole of which the plain one is a part; Keras asks for it.
        self._of_replicas = self.value
        self._value = _plain(self.value)
        # Optimizers other than those of Keras 3 are given the inner variable.
        as_rows_of(self.value, self)

    @property
    def overwrite_with_gradient(self) -> bool:
        """Whether optimizers hand over the gradient as it is: yes.

        Except that a `LossScaleOptimizer`, which asks too, shall unscale it.
        The question is also the first occasion to refuse an optimizer.
        """
        optimizer = calling_optimizer()
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            return False
        if optimizer is not None:
            check_supported(optimizer, self.table.name)
        return True

    def assign(self, value: Any) -> Any:
        """Updates rows by a gradient, with the optimizer that is calling.

        Args:
            value: `tf.IndexedSlices` of rows of gradients and positions; other
                values are assigned to the (empty) variable itself, with a
                warning that the rows are not in them.

        Returns:
            The variable's value.

        Raises:
            RuntimeError: If no Keras optimizer is calling.
            UnsupportedOptimizerError: If the table is split over ranks, whose
                dense weights a plain Keras optimizer would let drift apart.
        """
        if not isinstance(value, tf.IndexedSlices):
            self._check_plain_value(value)
            return super().assign(value)
        optimizer = calling_optimizer()
        if optimizer is None:
            msg = (
                f"A gradient was assigned to table {self.table.name!r}, but no "
                "Keras optimizer was found to be calling. Use "
                "embedra.DynamicEmbeddingOptimizer(optimizer), or call "
                "embedra.optimizers.apply_gradients(table, optimizer, "
                "gradients)."
            )
            raise RuntimeError(msg)
        self._check_all_here(optimizer)
        self._check_only_one(optimizer)
        self.update_all(optimizer, self.by_table(value))
        self.finish_step()
        return self.value

    # By these the optimizers of tf_keras and TF1 reach for it. Wrapped ones do
    # not, and others are told so by the inner variable.

    @property
    def _unique_id(self) -> Any:
        return self.value._unique_id

    @property
    def device(self) -> str:
        """Device of the inner variable."""
        return str(self.value.device)

    # It has no content: checkpoints hold none of it, and none of it is missed
    # where one is restored.

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {}

    @property
    def tables(self) -> list[table_lib.Table]:
        """The tables whose rows the variable stands for."""
        return [self.table]

    def by_table(
        self, gradient: tf.IndexedSlices
    ) -> list[tuple[table_lib.Table, tf.IndexedSlices]]:
        """Splits a gradient of this variable by the tables it stands for.

        Args:
            gradient: As a tape gives it.

        Returns:
            Each table with rows of gradients and positions of records.
        """
        return [(self.table, gradient)]

    def update_all(
        self,
        optimizer: keras.optimizers.Optimizer,
        parts: list[TablePart],
        inputs: StepInputs | None = None,
    ) -> None:
        """Updates rows of all tables by the gradient of a step.

        Args:
            optimizer: The model's.
            parts: The tables that the variable stands for, and their gradients.
            inputs: The optimizer's `step_inputs`; they are read if None.
        """
        if inputs is None or self.optimizer is not None:
            inputs = step_inputs(self.optimizer or optimizer)
        for table, slices in clip_over_tables(
            self.optimizer or optimizer, parts
        ):
            self._update(optimizer, table, slices, inputs)

    def _update(
        self,
        optimizer: keras.optimizers.Optimizer,
        table: table_lib.Table,
        gradients: tf.IndexedSlices,
        inputs: StepInputs,
    ) -> None:
        """Updates rows of a table by a gradient.

        Args:
            optimizer: The model's; the variable's own one, if there is one,
                makes the step in its place.
            table: One of those the variable stands for.
            gradients: Rows of gradients and positions.
            inputs: `step_inputs` of the optimizer that makes the step.
        """
        loss_scale = optimizer.loss_scale_factor
        apply_gradients(
            table,
            self.optimizer or optimizer,
            gradients,
            variable=self,
            scale=None if loss_scale is None else 1.0 / loss_scale,
            constraint=self.row_constraint,
            inputs=inputs,
        )

    def finish_step(self) -> None:
        """Counts the step, if the variable has an optimizer of its own."""
        if self.optimizer is not None:
            self.optimizer.iterations.assign_add(1)

    def _check_only_one(self, optimizer: keras.optimizers.Optimizer) -> None:
        """Raises if a plain optimizer would step the table more than once."""
        for other in optimizer._trainable_variables:
            # A lookup in a `tf.function` gives what stands for the variable.
            other = getattr(other, "table_variable", other)
            if other is self or getattr(other, "table", None) is not self.table:
                continue
            msg = (
                f"Variables {self.path!r} and {other.path!r} both stand for "
                f"table {self.table.name!r}: optimizer "
                f"{type(optimizer).__name__} would step its rows once for "
                "each. Use embedra.DynamicEmbeddingOptimizer(optimizer), which "
                "joins their gradients."
            )
            raise UnsupportedOptimizerError(msg)

    def _check_all_here(self, optimizer: keras.optimizers.Optimizer) -> None:
        """Raises if a plain optimizer would step a table of several ranks."""
        ranks = self.table.communicator
        if ranks is None or ranks.size == 1:
            return
        msg = (
            f"Table {self.table.name!r} is split over {ranks.size} ranks, and "
            f"optimizer {type(optimizer).__name__} does not add up the "
            "gradients of the dense weights that they share. Use "
            "embedra.DynamicEmbeddingOptimizer(optimizer), or an "
            "embedra.keras.Model, which does so."
        )
        raise UnsupportedOptimizerError(msg)

    def _check_plain_value(self, value: Any) -> None:
        """Tells what assigning a value that is no gradient does not do.

        Args:
            value: What `set_weights`, or an optimizer, assigns.

        Raises:
            TypeError: If it is a gradient that was made dense.
        """
        shape: Any = getattr(value, "shape", ())
        if len(shape) == 2 and shape[0] != 0:
            msg = (
                f"The gradient of table {self.table.name!r} arrived as a dense "
                f"tensor of shape {tuple(shape)}. Keep it as the "
                "tf.IndexedSlices that the tape gave: transform its `values`."
            )
            raise TypeError(msg)
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"The rows of table {self.table.name!r} are not part of "
                "get_weights() and set_weights(): they stay as they are. Use "
                "save_weights() and load_weights(), and in place of "
                "EarlyStopping(restore_best_weights=True) use "
                "ModelCheckpoint(save_best_only=True).",
                UserWarning,
                stacklevel=3,
            )


def _plain(variable: Any) -> tf.Variable:
    """Returns the variable in one that a strategy of one replica has made.

    That is known only inside of the strategy. A table is outside of it.
    """
    if not isinstance(variable, tf.distribute.DistributedValues):
        return variable
    (plain,) = variable.values
    return plain
