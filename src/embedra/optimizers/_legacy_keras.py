"""Wrappers of the legacy optimizers of tf_keras (`OptimizerV2`)."""

import inspect
import sys
from typing import Any

import tensorflow as tf

from ._block_rows import ScratchRows
from ._substitution import inner_variables, no_colocation
from ._tf_keras_saving import TfKerasWrapper, tf_keras


class TfKerasLegacyTableOptimizer(TfKerasWrapper):
    """What is put before the class of a legacy optimizer of tf_keras."""

    stand_in = ScratchRows

    @classmethod
    def suits(cls, optimizer: Any) -> bool:
        """Returns whether this is the wrapper for an optimizer.

        Args:
            optimizer: Any optimizer.
        """
        return "tf_keras" in sys.modules and isinstance(
            optimizer, tf_keras().optimizers.legacy.Optimizer
        )

    def _compute_gradients(
        self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
    ) -> Any:
        return super()._compute_gradients(
            loss, inner_variables(var_list), grad_loss, tape
        )

    def apply_gradients(
        self, grads_and_vars: Any, name: str | None = None, **kwargs: Any
    ) -> Any:
        """Updates tables and dense variables.

        Args:
            grads_and_vars: Pairs of gradients and variables.
            name: Of the operation.
            **kwargs: See `tf_keras.optimizers.legacy.Optimizer`.

        Returns:
            The operation to run in a TF1 graph.
        """
        with tf.init_scope():
            iterations = self.iterations
        step = tf.cast(iterations, tf.int64) + 1
        with self.one_at_a_time():
            pairs = self.substitute(grads_and_vars, step)
            return super().apply_gradients(pairs, name=name, **kwargs)

    def add_slot(
        self,
        var: Any,
        slot_name: str,
        initializer: Any = "zeros",
        **kwargs: Any,
    ) -> Any:
        """Adds a slot.

        Args:
            var: Whose slot it is.
            slot_name: Name of the slot.
            initializer: What it starts from.
            **kwargs: See `tf_keras.optimizers.legacy.Optimizer.add_slot`.

        Returns:
            The slot's variable, or what stands for it.
        """
        if not isinstance(var, ScratchRows):
            return super().add_slot(var, slot_name, initializer, **kwargs)
        if isinstance(initializer, str):
            initializer = tf_keras().initializers.get(initializer)
        return var.block.add_slot(slot_name, initializer, self)

    def get_slot(self, var: Any, slot_name: str) -> Any:
        """Returns a slot of a variable.

        Args:
            var: The variable.
            slot_name: Name of the slot.

        Returns:
            The slot's variable, or what stands for it.
        """
        if isinstance(var, ScratchRows):
            return var.slots[slot_name]
        return super().get_slot(var, slot_name)

    def _resource_apply_dense(
        self, grad: Any, var: Any, apply_state: Any = None
    ) -> Any:
        apply = super()._resource_apply_dense
        state = {}
        if "apply_state" in inspect.signature(apply).parameters:
            state["apply_state"] = apply_state
        if not isinstance(var, ScratchRows):
            return apply(grad, var, **state)

        def rule() -> Any:
            return apply(grad, var, **state)

        with no_colocation():
            return var.block.update(rule)
