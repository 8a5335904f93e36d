"""Rules of `tf.compat.v1.train` that Keras 3 has in no or another form."""

from typing import Any

import keras
from keras import ops

from ._rowwise_adagrad import dense_like, keeps_own_state


@keras.saving.register_keras_serializable(package="embedra")
class MomentumV1(keras.optimizers.Optimizer):
    """Momentum that accumulates gradients, not steps.

    The two are the same until the learning rate changes.

    Args:
        learning_rate: A float, a schedule, or a callable.
        momentum: Share of the accumulated gradients that is kept.
        nesterov: Whether to step by Nesterov's rule.
        **kwargs: Those of `keras.optimizers.Optimizer`.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: float = 0.9,
        nesterov: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.nesterov = nesterov

    def build(self, variables: list[Any]) -> None:
        """Makes the accumulators.

        Args:
            variables: The model's trainable variables.
        """
        if self.built:
            return
        super().build(variables)
        self._accumulators = _slots(self, variables, "accumulator")

    def update_step(
        self, gradient: Any, variable: Any, learning_rate: Any
    ) -> None:
        """Updates one variable.

        Args:
            gradient: Its gradient.
            variable: The variable.
            learning_rate: Of this step.
        """
        gradient = dense_like(gradient, variable)
        rate = ops.cast(learning_rate, variable.dtype)
        slot = self._accumulators[self._get_variable_index(variable)]
        accumulated = ops.add(ops.multiply(slot, self.momentum), gradient)
        self.assign(slot, accumulated)
        step = accumulated
        if self.nesterov:
            step = ops.add(gradient, ops.multiply(accumulated, self.momentum))
        self.assign_sub(variable, ops.multiply(step, rate))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {
            **super().get_config(),
            "momentum": self.momentum,
            "nesterov": self.nesterov,
        }


@keras.saving.register_keras_serializable(package="embedra")
class RMSpropV1(keras.optimizers.RMSprop):
    """RMSprop whose mean of squares starts at one, not at zero."""

    def build(self, variables: list[Any]) -> None:
        """Makes the slots.

        Args:
            variables: The model's trainable variables.
        """
        if self.built:
            return
        keras.optimizers.Optimizer.build(self, variables)
        self._velocities = _slots(self, variables, "velocity", "ones")
        self._momentums = []
        if self.momentum > 0:
            self._momentums = _slots(self, variables, "momentum")
        self._average_gradients = []
        if self.centered:
            self._average_gradients = _slots(
                self, variables, "average_gradient"
            )


@keras.saving.register_keras_serializable(package="embedra")
class ProximalV1(keras.optimizers.Optimizer):
    """Gradient descent, or Adagrad, with proximal L1 and L2 penalties.

    Args:
        learning_rate: A float, a schedule, or a callable.
        l1: Strength of the L1 penalty.
        l2: Strength of the L2 penalty.
        initial_accumulator_value: Start of Adagrad's accumulators; None for
            gradient descent.
        **kwargs: Those of `keras.optimizers.Optimizer`.

    References:
        Duchi and Singer, "Efficient learning using forward-backward
        splitting", NIPS 2009.
    """

    def __init__(
        self,
        learning_rate: Any,
        l1: float = 0.0,
        l2: float = 0.0,
        initial_accumulator_value: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.l1 = l1
        self.l2 = l2
        self.initial_accumulator_value = initial_accumulator_value

    def build(self, variables: list[Any]) -> None:
        """Makes the accumulators.

        Args:
            variables: The model's trainable variables.
        """
        if self.built:
            return
        super().build(variables)
        self._accumulators = []
        if self.initial_accumulator_value is not None:
            start = keras.initializers.Constant(self.initial_accumulator_value)
            self._accumulators = _slots(self, variables, "accumulator", start)

    def update_step(
        self, gradient: Any, variable: Any, learning_rate: Any
    ) -> None:
        """Updates one variable.

        Args:
            gradient: Its gradient.
            variable: The variable.
            learning_rate: Of this step.
        """
        gradient = dense_like(gradient, variable)
        rate = ops.cast(learning_rate, variable.dtype)
        step_rate = rate
        if self._accumulators:
            slot = self._accumulators[self._get_variable_index(variable)]
            self.assign_add(slot, ops.square(gradient))
            step_rate = ops.divide(rate, ops.sqrt(slot))
        moved = ops.subtract(variable, ops.multiply(gradient, step_rate))
        # The penalties are by the step's own rate, of each element.
        size = ops.maximum(ops.abs(moved) - step_rate * self.l1, 0.0)
        size = ops.divide(size, 1.0 + step_rate * self.l2)
        self.assign(variable, ops.multiply(ops.sign(moved), size))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {
            **super().get_config(),
            "l1": self.l1,
            "l2": self.l2,
            "initial_accumulator_value": self.initial_accumulator_value,
        }


def _slots(
    optimizer: Any, variables: list[Any], name: str, initializer: Any = "zeros"
) -> list[Any]:
    """Makes a slot for each variable; tables keep theirs in their records."""
    return [
        None
        if keeps_own_state(variable)
        else optimizer.add_variable_from_reference(
            variable, name, initializer=initializer
        )
        for variable in variables
    ]
