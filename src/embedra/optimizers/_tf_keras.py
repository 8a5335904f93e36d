"""Wrappers of the current optimizers of tf_keras."""

import sys
from typing import Any

import tensorflow as tf

from ._block_rows import BlockRows
from ._fused import FusedRule, fused_rule_of
from ._substitution import inner_variables
from ._support import unsupported_average, unsupported_state
from ._tf_keras_saving import TfKerasWrapper, tf_keras


# Optimizers of which Keras 3 has the same, and under what name.
_SAME_AS_IN_KERAS_3 = {
    "SGD": "SGD",
    "Adagrad": "Adagrad",
    "Adam": "Adam",
    "AdamW": "Adam",
    "Ftrl": "Ftrl",
    "RMSprop": "RMSprop",
}


class TfKerasTableOptimizer(TfKerasWrapper):
    """What is put before the class of a current optimizer of tf_keras."""

    @classmethod
    def suits(cls, optimizer: Any) -> bool:
        """Returns whether this is the wrapper for an optimizer.

        Args:
            optimizer: Any optimizer.
        """
        return "tf_keras" in sys.modules and isinstance(
            optimizer, tf_keras().optimizers.Optimizer
        )

    def check_table(self, table_name: str) -> None:
        """Raises if the optimizer cannot update a table.

        Args:
            table_name: Of the table.

        Raises:
            UnsupportedOptimizerError: It says what to use instead.
        """
        adafactor = tf_keras().optimizers.Adafactor
        if isinstance(self, adafactor):
            why = "its step is not made row by row."
            raise unsupported_state(self, table_name, why)
        if self.use_ema:
            raise unsupported_average(self.wrapped_class.__name__, table_name)

    def sums_by_itself(self) -> bool:
        """Whether the rule sums gradients of a row, and all before is linear.

        So it is for kernels, unless gradients are clipped.
        """
        clips = self.clipnorm or self.clipvalue or self.global_clipnorm
        is_library_class = self.wrapped_class.__module__.startswith("tf_keras.")
        return is_library_class and not clips and self._fused_rule() is not None

    def build(self, var_list: Any) -> None:
        """Makes the slots of dense variables, and notes those of tables.

        Args:
            var_list: All trainable variables.
        """
        super().build(self.substitute_variables(var_list))

    def add_variable_from_reference(
        self, model_variable: Any, variable_name: str, *args: Any, **kwargs: Any
    ) -> Any:
        """Adds a slot.

        Args:
            model_variable: Whose slot it is.
            variable_name: Name of the slot.
            *args: Shape and initial value.
            **kwargs: Shape and initial value.

        Returns:
            The slot's variable, or what stands for it.
        """
        if not isinstance(model_variable, BlockRows):
            return super().add_variable_from_reference(
                model_variable, variable_name, *args, **kwargs
            )
        initial = kwargs.get("initial_value", args[1] if args[1:] else None)
        return model_variable.block.add_slot(
            variable_name, 0.0 if initial is None else initial, self
        )

    def compute_gradients(
        self, loss: Any, var_list: Any, tape: Any = None
    ) -> Any:
        """Computes gradients, as the optimizer inside does.

        Args:
            loss: The loss, or a function that gives it.
            var_list: Variables, or a function that gives them.
            tape: The tape, if `loss` is a tensor.

        Returns:
            Pairs of gradients and variables.
        """
        return super().compute_gradients(loss, inner_variables(var_list), tape)

    def apply_gradients(
        self, grads_and_vars: Any, name: str | None = None, **kwargs: Any
    ) -> Any:
        """Updates tables and dense variables.

        Args:
            grads_and_vars: Pairs of gradients and variables.
            name: Of the scope.
            **kwargs: See `tf_keras.optimizers.Optimizer.apply_gradients`.

        Returns:
            The iterations.
        """
        with self.one_at_a_time():
            step = tf.cast(self.iterations, tf.int64) + 1
            pairs = self.substitute(grads_and_vars, step)
            return super().apply_gradients(pairs, name=name, **kwargs)

    def update_step(self, gradient: Any, variable: Any) -> Any:
        """Updates one variable, or the touched rows of tables.

        Args:
            gradient: Its gradient.
            variable: The variable, or what stands for tables.

        Returns:
            What the optimizer inside does.
        """
        update_step = super().update_step
        if not isinstance(variable, BlockRows):
            return update_step(gradient, variable)
        fused = self._fused_rule()
        if fused is not None:
            return variable.block.update_fused(
                fused,
                gradient,
                self.learning_rate,
                self._weight_decay_of(variable),
            )

        def rule() -> None:
            self._decay_rows(variable)
            update_step(gradient, variable)

        return variable.block.update(rule)

    def _internal_apply_gradients(self, grads_and_vars: Any) -> Any:
        # Nadam counts the factors of its product over steps. Checkpoints hold
        # the product, and not the count.
        if "_u_product_counter" in vars(self) and tf.executing_eagerly():
            self._u_product_counter = int(self.iterations) + 1
        return super()._internal_apply_gradients(grads_and_vars)

    def _update_step_xla(self, gradient: Any, variable: Any, key: Any) -> Any:
        if isinstance(variable, BlockRows):
            return self._update_step(gradient, variable)
        return super()._update_step_xla(gradient, variable, key)

    def _apply_weight_decay(self, variables: Any) -> None:
        """Leaves out rows, which are decayed when they are read."""
        super()._apply_weight_decay(
            [v for v in variables if not isinstance(v, BlockRows)]
        )

    def _decay_rows(self, row: BlockRows) -> None:
        decay = self._weight_decay_of(row)
        if decay:
            rate = tf.cast(self.learning_rate, row.dtype)
            row.assign_sub(row * decay * rate)

    def _weight_decay_of(self, row: BlockRows) -> float:
        if not self._use_weight_decay(row.block.variable.value):
            return 0.0
        return float(self.weight_decay or 0.0)

    def _fused_rule(self) -> FusedRule | None:
        """Returns the kernel for the rule: those of Keras 3 are the same."""
        cls: Any = self.wrapped_class
        if getattr(self, "adaptive_epsilon", False):
            return None
        for name, kernel in _SAME_AS_IN_KERAS_3.items():
            known = getattr(tf_keras().optimizers, name)
            if (
                cls.update_step is known.update_step
                and cls.build is known.build
            ):
                return fused_rule_of(kernel, self)
        return None

    def _var_key(self, variable: Any) -> Any:
        return super()._var_key(inner_variables(variable))
