"""DynamicEmbeddingOptimizer: the explicit way to train tables."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from embedra import _ops

from ._apply import step_inputs
from ._clip import (
    clip_jointly,
    clip_limits,
    clipped_before,
    set_clip_limits,
    values_of,
)
from ._legacy_keras import TfKerasLegacyTableOptimizer
from ._ranks import agreed, over_ranks, weighed, without_empty
from ._substitution import Substitution, seen_as, wrap
from ._support import UnsupportedOptimizerError
from ._tf_keras import TfKerasTableOptimizer
from ._tf_keras_saving import check_wrappable as check_tf_keras
from ._together import update_together
from ._trained_tables import (
    TableGradient,
    split_tables,
    table_variable_of,
)
from ._v1 import TableOptimizerV1, check_wrappable as check_v1
from ._variable import TableVariable


_CONFIG = "optimizer"
_CLIPPING = "clipnorm_and_clipvalue"

# At run time `TableOptimizer` is a mixin, so that it comes first in the order.
_Optimizer: Any = keras.optimizers.Optimizer if TYPE_CHECKING else object


def DynamicEmbeddingOptimizer(optimizer: Any) -> Any:  # noqa: N802
    """Makes an optimizer that knows of tables.

    Plain Keras optimizers train tables as they are. This adds what they cannot
    do: `global_clipnorm` over tables and dense weights together (rows that are
    looked up several times counted once), and `gradient_accumulation_steps`.

    Optimizers of tf_keras, current and legacy, and those of
    `tf.compat.v1.train` train tables only by this: their clipping, schedules
    and counters then take the touched rows for one dense variable.

    Args:
        optimizer: A Keras optimizer, its name or its config; or an optimizer
            of tf_keras or `tf.compat.v1.train`. The result shares its
            variables; use the result from then on.

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
    if isinstance(optimizer, TableOptimizer | Substitution):
        return optimizer
    wrapper = _wrapper_of(optimizer)
    if wrapper is not None:
        return wrap(optimizer, wrapper)
    optimizer = keras.optimizers.get(optimizer)
    if optimizer.global_clipnorm and optimizer.gradient_accumulation_steps:
        msg = (
            f"Optimizer {type(optimizer).__name__} has both global_clipnorm="
            f"{optimizer.global_clipnorm} and gradient_accumulation_steps="
            f"{optimizer.gradient_accumulation_steps}; with tables only one of "
            "them can be used. Use `clipnorm` with gradient accumulation."
        )
        raise UnsupportedOptimizerError(msg)
    is_loss_scale = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    mixin = TableLossScaleOptimizer if is_loss_scale else TableOptimizer
    wrapped = wrap(optimizer, mixin)
    if is_loss_scale:
        wrapped.inner_optimizer = DynamicEmbeddingOptimizer(
            optimizer.inner_optimizer
        )
    return wrapped


def _wrapper_of(optimizer: Any) -> type[Substitution] | None:
    """Returns what to put before an optimizer's class if it is not Keras 3's.

    Args:
        optimizer: Anything.

    Returns:
        The class, or None.
    """
    if isinstance(optimizer, tf.compat.v1.train.Optimizer):
        check_v1(optimizer)
        return TableOptimizerV1
    check_tf_keras(optimizer)
    wrappers = (TfKerasTableOptimizer, TfKerasLegacyTableOptimizer)
    return next((w for w in wrappers if w.suits(optimizer)), None)


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
        plain = seen_as(self, self.wrapped_class)
        limits = clip_limits(self)
        if limits is not None:
            # Keras's constructor would refuse both limits.
            plain.clipnorm = plain.clipvalue = None
        config = {_CONFIG: keras.saving.serialize_keras_object(plain)}
        return config if limits is None else config | {_CLIPPING: limits}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> Any:
        """Rebuilds an optimizer from `get_config`."""
        optimizer = DynamicEmbeddingOptimizer(
            keras.saving.deserialize_keras_object(
                config[_CONFIG], custom_objects=custom_objects
            )
        )
        if _CLIPPING in config:
            set_clip_limits(optimizer, *config[_CLIPPING])
        return optimizer

    def scale_loss(self, loss: Any) -> Any:
        """Scales a loss as the optimizer inside does, and by this rank's part.

        Args:
            loss: Mean over this rank's examples.

        Returns:
            What to differentiate.
        """
        return weighed(self, super().scale_loss(loss))

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Updates tables and dense weights.

        In a job of several ranks all of them must call it; the step is that of
        the mean of their gradients.

        Args:
            grads: Gradients, one per variable.
            trainable_variables: The variables, or None for those that the
                optimizer was built with.

        Raises:
            ValueError: If no variable has a gradient.
        """
        if trainable_variables is None:
            trainable_variables = self._trainable_variables
        variables = [_or_itself(v) for v in trainable_variables]
        grads = list(grads)
        if all(grad is None for grad in grads):
            msg = (
                "No gradients were provided for any variable: "
                f"{[v.name for v in variables]}. Look rows up in the tape, for "
                "training, and let the loss depend on them."
            )
            raise ValueError(msg)
        if not self.built:
            self.build(variables)
        tables, dense = split_tables(zip(grads, variables, strict=True))
        tables, dense = over_ranks(self, tables, dense)
        if self.gradient_accumulation_steps:
            self._accumulate(tables, variables)
        else:
            if self.global_clipnorm:
                tables, dense = clip_jointly(self, tables, dense)
            self._update(tables)
        if any(grad is not None for grad, _ in dense):
            super().apply(*zip(*dense, strict=True))
        else:
            self._iterations.assign_add(1)

    def _clip_gradients(self, grads: Any) -> Any:
        """Clips by norm, then by value; Keras does only one of both."""
        clipped = super()._clip_gradients(grads)
        if not (self.clipnorm and self.clipvalue):
            return clipped
        limit = self.clipvalue
        return [
            g if g is None else keras.ops.clip(g, -limit, limit)
            for g in clipped
        ]

    def _update(self, gradients: list[TableGradient]) -> None:
        """Makes a step on tables. Dense weights, and the count, come after."""
        if self.__dict__.get("clips_all"):
            gradients = clipped_before(self, gradients)
        inputs = step_inputs(self)
        by_variable: dict[int, list[TableGradient]] = {}
        for gradient in update_together(self, gradients, inputs):
            by_variable.setdefault(id(gradient.variable), []).append(gradient)
        for parts in by_variable.values():
            variable = parts[0].variable
            tables = [(g.table, g.slices) for g in parts]
            variable.update_all(self, tables, inputs)
            variable.finish_step()

    def _accumulate(
        self, gradients: list[TableGradient], variables: list[Any]
    ) -> None:
        """Accumulates gradients, and makes a step at every n-th call."""
        steps = self.gradient_accumulation_steps
        for _, table, slices in gradients:
            _ops.table_accumulate_gradients(
                table.resource_handle,
                slices.indices,
                tf.cast(slices.values, tf.float32),
            )

        def update() -> tf.Tensor:
            self._update(_taken(tables.values(), steps))
            return tf.constant(True)

        # A table that this batch leaves out may have gradients from others.
        tables = {
            id(table): (variable, table)
            for variable in variables
            if isinstance(variable, TableVariable)
            for table in variable.tables
        }
        if tables:
            is_update = (self._iterations + 1) % steps == 0
            tf.cond(is_update, update, lambda: tf.constant(False))


class TableLossScaleOptimizer(TableOptimizer):
    """The same for `LossScaleOptimizer`: the optimizer inside does the work."""

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Unscales gradients and hands them to the optimizer inside."""
        if trainable_variables is None:
            trainable_variables = self._trainable_variables
        grads = without_empty(self, grads, trainable_variables)
        keras.optimizers.LossScaleOptimizer.apply(
            self, grads, trainable_variables
        )

    def check_finite(self, grads: Any) -> Any:
        """Returns whether all gradients are finite, reading only their rows."""
        finite = super().check_finite(
            [g if g is None else values_of(g) for g in grads]
        )
        return agreed(finite)


def _or_itself(variable: Any) -> Any:
    """Returns the `TableVariable` that a variable stands for, or the same."""
    found = table_variable_of(variable)
    return variable if found is None else found


def _taken(tables: Iterable[Any], steps: int) -> list[TableGradient]:
    """Takes accumulated gradients, as means over the steps."""
    gradients = []
    for variable, table in tables:
        positions, sums = _ops.table_take_gradients(
            table.resource_handle, dim=table.dim
        )
        slices = tf.IndexedSlices(sums / steps, positions)
        gradients.append(TableGradient(variable, table, slices))
    return gradients
