"""TableVariable: how a table appears among a model's trainable variables."""

import warnings
from typing import Any

import keras
import tensorflow as tf

from embedra import table as table_lib

from ._apply import apply_gradients
from ._caller import calling_optimizer
from ._support import check_supported


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
            shape=(0,),
            dtype="float32",
            autocast=False,
            name=name,
        )

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
        self.update(optimizer, value)
        return self.value

    def update(
        self,
        optimizer: keras.optimizers.Optimizer,
        gradients: tf.IndexedSlices,
    ) -> None:
        """Updates rows by a gradient.

        Args:
            optimizer: The model's; the variable's own one, if there is one,
                makes the step in its place.
            gradients: Rows of gradients and positions.
        """
        own = self.optimizer
        loss_scale = optimizer.loss_scale_factor
        apply_gradients(
            self.table,
            own or optimizer,
            gradients,
            variable=self,
            scale=None if loss_scale is None else 1.0 / loss_scale,
            constraint=self.row_constraint,
        )
        if own is not None:
            own.iterations.assign_add(1)

    def _check_plain_value(self, value: Any) -> None:
        """Tells what assigning a value that is no gradient does not do.

        Args:
            value: What `set_weights`, or an optimizer, assigns.

        Raises:
            TypeError: If it is a gradient that was made dense.
        """
        shape = getattr(value, "shape", ())
        if len(shape) == 2:
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
