"""Wrappers of `tf.compat.v1.train` optimizers."""

from typing import Any

import tensorflow as tf

from ._block_rows import ScratchRows
from ._fused import FusedRule
from ._ranks import without_empty
from ._substitution import (
    Substitution,
    class_over,
    inner_variables,
    no_colocation,
)
from ._support import UnsupportedOptimizerError


_TRAIN: Any = tf.compat.v1.train


class TableOptimizerV1(Substitution):
    """What is put before the class of a `tf.compat.v1.train` optimizer.

    Works in TF1 graphs, eagerly, and in functions.
    """

    stand_in = ScratchRows

    def sums_by_itself(self) -> bool:
        """Whether the rule sums gradients of a row, as kernels do."""
        module = self.wrapped_class.__module__
        return module.startswith("tensorflow.") and (
            self._fused_rule() is not None
        )

    def compute_gradients(
        self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Computes gradients, as the optimizer inside does.

        Args:
            loss: The loss, or a function that gives it.
            var_list: Variables, by default all trainable ones.
            *args: See `tf.compat.v1.train.Optimizer.compute_gradients`.
            **kwargs: See there.

        Returns:
            Pairs of gradients and variables.
        """
        pairs = super().compute_gradients(
            loss, inner_variables(var_list), *args, **kwargs
        )
        gradients, variables = zip(*pairs, strict=True)
        # A norm to clip by would spread what is no number.
        numbers = without_empty(self, gradients, variables)
        return list(zip(numbers, variables, strict=True))

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Updates tables and dense variables.

        Args:
            grads_and_vars: Pairs of gradients and variables.
            global_step: Counts the steps, or None.
            name: Of the operation.
            **kwargs: See `tf.compat.v1.train.Optimizer.apply_gradients`.

        Returns:
            The operation to run in a TF1 graph.
        """
        step = None
        if global_step is not None:
            step = tf.cast(tf.convert_to_tensor(global_step), tf.int64) + 1
        with self.one_at_a_time():
            with tf.name_scope(name or self.get_name()):
                pairs = self.substitute(grads_and_vars, step)
            return super().apply_gradients(
                pairs, global_step=global_step, name=name, **kwargs
            )

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        apply_dense = super()._resource_apply_dense
        if not isinstance(handle, ScratchRows):
            return apply_dense(grad, handle)

        def rule() -> Any:
            return apply_dense(grad, handle)

        fused = self._fused_rule()
        with no_colocation():
            if fused is None:
                return handle.block.update(rule)
            rate = self._learning_rate_tensor
            return handle.block.update_fused(fused, grad, rate)

    def _fused_rule(self) -> FusedRule | None:
        """Returns the kernel for the rule, where there is the same."""
        cls: Any = self.wrapped_class
        rule = cls._resource_apply_dense
        if rule is _TRAIN.GradientDescentOptimizer._resource_apply_dense:
            return FusedRule("sgd", {})
        if rule is _TRAIN.AdagradOptimizer._resource_apply_dense:
            initial = self._initial_accumulator_value
            numbers = {"initial_accumulator": initial, "epsilon": 0.0}
            return FusedRule("adagrad", numbers)
        return None

    # Slots of stand-ins are in the tables.

    def get_slot(self, var: Any, name: str) -> Any:
        """Returns a slot of a variable.

        Args:
            var: The variable.
            name: Name of the slot.

        Returns:
            The slot, or None if there is none of that name.
        """
        if isinstance(var, ScratchRows):
            return var.slots.get(name)
        return super().get_slot(var, name)

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        if isinstance(var, ScratchRows):
            return var.block.add_slot(slot_name, 0.0, self)
        return super()._zeros_slot(var, slot_name, op_name)

    def _get_or_make_slot(
        self, var: Any, val: Any, slot_name: str, op_name: str
    ) -> Any:
        if isinstance(var, ScratchRows):
            return var.block.add_slot(slot_name, val, self)
        return super()._get_or_make_slot(var, val, slot_name, op_name)

    def _get_or_make_slot_with_initializer(
        self,
        var: Any,
        initializer: Any,
        shape: Any,
        dtype: Any,
        slot_name: str,
        op_name: str,
    ) -> Any:
        if isinstance(var, ScratchRows):
            return var.block.add_slot(slot_name, initializer, self)
        return super()._get_or_make_slot_with_initializer(
            var, initializer, shape, dtype, slot_name, op_name
        )

    def _create_non_slot_variable(
        self, initial_value: Any, name: str, colocate_with: Any
    ) -> Any:
        # A stand-in is where the step is made; the number is where the
        # variables are, and outlives the step.
        if isinstance(colocate_with, ScratchRows):
            colocate_with = colocate_with.block.variable.value
        return super()._create_non_slot_variable(
            initial_value, name, colocate_with
        )


def check_wrappable(optimizer: tf.compat.v1.train.Optimizer) -> None:
    """Raises for optimizers that hand over to another one.

    Args:
        optimizer: The optimizer.

    Raises:
        UnsupportedOptimizerError: It says what to wrap instead.
    """
    inside = next(
        (
            value
            for value in vars(optimizer).values()
            if isinstance(value, tf.compat.v1.train.Optimizer)
        ),
        None,
    )
    if inside is None:
        return
    name = type(optimizer).__name__
    msg = (
        f"{name} hands over to {type(inside).__name__}, which makes the steps. "
        "Wrap that one: "
        f"{name}(DynamicEmbeddingOptimizer({type(inside).__name__}(...)))."
    )
    if isinstance(optimizer, tf.compat.v1.train.SyncReplicasOptimizer):
        msg = (
            f"{name} gathers gradients by the shape of their variable, which "
            "tables do not have. Use the optimizer inside without it: updates "
            "of rows are atomic."
        )
    raise UnsupportedOptimizerError(msg)


def for_tables(optimizer_class: Any) -> Any:
    """Makes a class of optimizers that know of tables from one that does not.

    Args:
        optimizer_class: A subclass of `tf.compat.v1.train.Optimizer`.

    Returns:
        A subclass, with the same arguments. Its instances are what
        `DynamicEmbeddingOptimizer` makes of those of the class.

    Raises:
        TypeError: If it is something else.

    Example:
        >>> optimizer = for_tables(_TRAIN.AdamOptimizer)(0.01, beta1=0.8)
        >>> optimizer.handles_tables, optimizer.get_name()
        (True, 'Adam')
    """
    is_class = isinstance(optimizer_class, type)
    if not is_class or not issubclass(optimizer_class, _TRAIN.Optimizer):
        msg = (
            "`for_tables` takes a subclass of tf.compat.v1.train.Optimizer "
            "(the class, not an instance). Received: "
            f"{optimizer_class!r}."
        )
        raise TypeError(msg)
    if issubclass(optimizer_class, Substitution):
        return optimizer_class
    return class_over(optimizer_class, TableOptimizerV1)
