"""DynamicEmbeddingOptimizer: the explicit way to train tables."""

from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from embedra import _ops

from ._support import UnsupportedOptimizerError
from ._variable import TableVariable


_CONFIG = "optimizer"

# At run time `TableOptimizer` is a mixin, so that it comes first in the order.
_Optimizer: Any = keras.optimizers.Optimizer if TYPE_CHECKING else object


def DynamicEmbeddingOptimizer(optimizer: Any) -> Any:  # noqa: N802
    """Makes an optimizer that knows of tables.

    Plain Keras optimizers train tables as they are. This adds what they cannot
    do: `global_clipnorm` over tables and dense weights together (rows that are
    looked up several times counted once), and `gradient_accumulation_steps`.

    Args:
        optimizer: A Keras optimizer, its name or its config. The result shares
            its variables; use the result from then on.

    Returns:
        An instance of a subclass of the optimizer's class, for `compile` and
        for custom loops. One that already knows of tables is returned as is.

    Raises:
        UnsupportedOptimizerError: If both settings are asked for at once.

    Example:
        >>> import keras
        >>> optimizer = DynamicEmbeddingOptimizer(
        ...     keras.optimizers.Adam(global_clipnorm=1.0)
        ... )
        >>> isinstance(optimizer, keras.optimizers.Adam)
        True
    """
    optimizer = keras.optimizers.get(optimizer)
    if isinstance(optimizer, TableOptimizer):
        return optimizer
    if optimizer.global_clipnorm and optimizer.gradient_accumulation_steps:
        msg = (
            f"Optimizer {type(optimizer).__name__} has both global_clipnorm="
            f"{optimizer.global_clipnorm} and gradient_accumulation_steps="
            f"{optimizer.gradient_accumulation_steps}; with tables only one of "
            "them can be used. Use `clipnorm` with gradient accumulation."
        )
        raise UnsupportedOptimizerError(msg)
    base = type(optimizer)
    is_loss_scale = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    mixin = TableLossScaleOptimizer if is_loss_scale else TableOptimizer
    wrapped = _seen_as(
        optimizer,
        type(f"DynamicEmbedding{base.__name__}", (mixin, base), {}),
    )
    if is_loss_scale:
        wrapped.inner_optimizer = DynamicEmbeddingOptimizer(
            optimizer.inner_optimizer
        )
    return wrapped


class TableOptimizer(_Optimizer):
    """What `DynamicEmbeddingOptimizer` puts before an optimizer's class.

    It is saved as its optimizer's config, so that a new process can rebuild it
    for optimizer classes of any origin.
    """

    handles_tables = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # All subclasses are saved under one name: `from_config` is the same.
        keras.saving.register_keras_serializable(
            package="embedra", name="DynamicEmbeddingOptimizer"
        )(cls)

    @property
    def wrapped_class(self) -> type:
        """The optimizer's own class."""
        mro = type(self).__mro__
        return next(c for c in mro if not issubclass(c, TableOptimizer))

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the optimizer inside."""
        plain = _seen_as(self, self.wrapped_class)
        return {_CONFIG: keras.saving.serialize_keras_object(plain)}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> Any:
        """Rebuilds an optimizer from `get_config`."""
        return DynamicEmbeddingOptimizer(
            keras.saving.deserialize_keras_object(
                config[_CONFIG], custom_objects=custom_objects
            )
        )

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Updates tables and dense weights.

        Args:
            grads: Gradients, one per variable.
            trainable_variables: The variables, or None for those that the
                optimizer was built with.
        """
        if trainable_variables is None:
            trainable_variables = self._trainable_variables
        variables = list(trainable_variables)
        grads = list(grads)
        if not self.built:
            self.build(variables)
        if self.gradient_accumulation_steps:
            self._accumulate(grads, variables)
        elif self.global_clipnorm:
            super().apply(self._clip_jointly(grads, variables), variables)
        else:
            super().apply(grads, variables)

    def _clip_jointly(
        self, grads: list[Any], variables: list[Any]
    ) -> list[Any]:
        """Scales all gradients by the norm over tables and dense weights."""
        grads = _deduplicated(grads, variables)
        values = [_values(grad) for grad in grads if grad is not None]
        norm = tf.linalg.global_norm(values)
        if self.loss_scale_factor is not None:
            norm /= self.loss_scale_factor
        # Keras clips the dense gradients once more, by which they, now
        # shorter than the limit, are not changed.
        factor = self.global_clipnorm / tf.maximum(norm, self.global_clipnorm)
        return [None if g is None else _scaled(g, factor) for g in grads]

    def _accumulate(self, grads: list[Any], variables: list[Any]) -> None:
        """Accumulates gradients, and makes a step at every n-th call."""
        steps = self.gradient_accumulation_steps
        tables: list[Any] = []
        dense: list[Any] = []
        for grad, variable in zip(grads, variables, strict=True):
            is_table = isinstance(variable, TableVariable)
            (tables if is_table else dense).append((grad, variable))
        for grad, variable in tables:
            if grad is not None:
                _ops.table_accumulate_gradients(
                    variable.table.resource_handle,
                    grad.indices,
                    tf.cast(grad.values, tf.float32),
                )

        def update() -> tf.Tensor:
            for _, variable in tables:
                variable.update(self, _taken(variable, steps))
            return tf.constant(True)

        if tables:
            is_update = (self._iterations + 1) % steps == 0
            tf.cond(is_update, update, lambda: tf.constant(False))
        if dense:
            super().apply(*zip(*dense, strict=True))
        else:
            self._iterations.assign_add(1)


class TableLossScaleOptimizer(TableOptimizer):
    """The same for `LossScaleOptimizer`: the optimizer inside does the work."""

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Unscales gradients and hands them to the optimizer inside."""
        keras.optimizers.LossScaleOptimizer.apply(
            self, grads, trainable_variables
        )

    def check_finite(self, grads: Any) -> Any:
        """Returns whether all gradients are finite, reading only their rows."""
        return super().check_finite(
            [g if g is None else _values(g) for g in grads]
        )


def _seen_as(optimizer: Any, cls: Any) -> Any:
    """Returns an optimizer of class `cls` with the same state."""
    view = cls.__new__(cls)
    view.__dict__.update(vars(optimizer))
    return view


def _values(grad: Any) -> Any:
    return grad.values if isinstance(grad, tf.IndexedSlices) else grad


def _scaled(grad: Any, factor: tf.Tensor) -> Any:
    values = _values(grad) * tf.cast(factor, grad.dtype)
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(values, grad.indices, grad.dense_shape)
    return values


def _deduplicated(grads: list[Any], variables: list[Any]) -> list[Any]:
    """Sums the gradients of equal rows, for all tables in one op."""
    where = [
        i
        for i, variable in enumerate(variables)
        if isinstance(variable, TableVariable) and grads[i] is not None
    ]
    if not where:
        return grads
    tables = [variables[i].table for i in where]
    unique, sums = _ops.table_deduplicate(
        [table.resource_handle for table in tables],
        [grads[i].indices for i in where],
        [tf.cast(grads[i].values, tf.float32) for i in where],
        dims=[table.dim for table in tables],
    )
    grads = list(grads)
    for i, indices, values in zip(where, unique, sums, strict=True):
        grads[i] = tf.IndexedSlices(values, indices, grads[i].dense_shape)
    return grads


def _taken(variable: TableVariable, steps: int) -> tf.IndexedSlices:
    """Takes a table's accumulated gradients, as means over the steps."""
    positions, sums = _ops.table_take_gradients(
        variable.table.resource_handle, dim=variable.table.dim
    )
    return tf.IndexedSlices(sums / steps, positions)
