"""RowwiseAdagrad: Adagrad with one accumulator per row."""

from typing import Any

import keras
import tensorflow as tf
from keras import ops


@keras.saving.register_keras_serializable(package="embedra")
class RowwiseAdagrad(keras.optimizers.Optimizer):
    """Adagrad that keeps one number per row instead of one per element.

    The accumulator of a row grows by the mean of its squared gradient. For
    rows of width `dim` this needs `1 / dim` of Adagrad's memory and trains
    embeddings about as well. On dense variables of two and more dimensions a
    row is the last axis; vectors and scalars are updated as by Adagrad.

    Args:
        learning_rate: A float, a schedule, or a callable.
        initial_accumulator_value: Start of the accumulators, not negative.
        epsilon: Added to the accumulators before the root.
        **kwargs: Those of `keras.optimizers.Optimizer`: `weight_decay`,
            `clipnorm`, `name` and so on.

    Raises:
        ValueError: If `initial_accumulator_value` is negative.

    Example:
        >>> import keras
        >>> import embedra
        >>> layer = embedra.layers.Embedding(8)
        >>> model = keras.Sequential([layer, keras.layers.Dense(1)])
        >>> model.compile(embedra.optimizers.RowwiseAdagrad(0.05), "mse")

    References:
        Mudigere et al., "Software-hardware co-design for fast and scalable
        training of deep learning recommendation models", ISCA 2022.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        if initial_accumulator_value < 0:
            msg = (
                "`initial_accumulator_value` must not be negative. Received: "
                f"{initial_accumulator_value}"
            )
            raise ValueError(msg)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon

    def build(self, variables: list[Any]) -> None:
        """Makes the accumulators.

        Args:
            variables: The model's trainable variables.
        """
        if self.built:
            return
        super().build(variables)
        self._accumulators = [self._accumulator(v) for v in variables]

    def _accumulator(self, variable: Any) -> Any:
        if keeps_own_state(variable):
            return None
        shape = tuple(variable.shape)
        if len(shape) > 1:
            shape = (*shape[:-1], 1)
        return self.add_variable(
            shape=shape,
            initializer=keras.initializers.Constant(
                self.initial_accumulator_value
            ),
            dtype=variable.dtype,
            name="accumulator",
        )

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
        accumulator = self._accumulators[self._get_variable_index(variable)]
        square = ops.square(gradient)
        if len(variable.shape) > 1:
            square = ops.mean(square, axis=-1, keepdims=True)
        self.assign_add(accumulator, square)
        root = ops.sqrt(ops.add(accumulator, self.epsilon))
        self.assign_sub(variable, ops.divide(rate * gradient, root))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments."""
        return {
            **super().get_config(),
            "initial_accumulator_value": self.initial_accumulator_value,
            "epsilon": self.epsilon,
        }


def keeps_own_state(variable: Any) -> bool:
    """Returns whether a variable has no slots: a table has them in its records.

    Args:
        variable: A Keras variable.
    """
    return bool(getattr(variable, "overwrite_with_gradient", False))


def dense_like(gradient: Any, variable: Any) -> Any:
    """Returns a gradient as a dense tensor of a variable's dtype.

    Args:
        gradient: Dense, or slices.
        variable: The variable.
    """
    if isinstance(gradient, tf.IndexedSlices):
        gradient = tf.convert_to_tensor(gradient)
    return ops.cast(gradient, variable.dtype)
