"""RowRunner: a Keras optimizer's update rule, freed of its variables."""

import weakref
from typing import TYPE_CHECKING, Any

import keras

from ._rows import Rows


# At run time `RowRunner` is a mixin, so that it comes first in the order.
_Optimizer: Any = keras.optimizers.Optimizer if TYPE_CHECKING else object


# What says how far an optimizer is built, or is done outside of its step.
_NOT_FOLLOWED = ("built", "name", "use_ema", "gradient_accumulation_steps")


def runner_of(optimizer: keras.optimizers.Optimizer) -> Any:
    """Makes a runner of an optimizer's class that follows the optimizer.

    Args:
        optimizer: The optimizer; it is only read.

    Returns:
        An unbuilt optimizer of a subclass of `RowRunner` and its class.
    """
    base = getattr(optimizer, "wrapped_class", type(optimizer))
    cls: Any = type(base.__name__, (RowRunner, base), {})
    runner = cls.__new__(cls)
    # Past Keras's own __setattr__, which would track and checkpoint them.
    runner.__dict__["source"] = weakref.ref(optimizer)
    runner.__dict__["row_slots"] = []
    keras.optimizers.Optimizer.__init__(runner, learning_rate=0.0)
    for name, value in vars(optimizer).items():
        if name not in vars(runner):
            runner.__dict__[name] = value
    runner.follow()
    return runner


class RowRunner(_Optimizer):
    """What `runner_of` puts before an optimizer's class.

    Slots are `Rows`, kept in `row_slots`. Iterations, learning rate and plain
    numbers are those of the optimizer that is followed.
    """

    @property
    def iterations(self) -> Any:
        """Of the optimizer that is followed."""
        return self.__dict__["source"]().iterations

    @property
    def learning_rate(self) -> Any:
        """Of the optimizer that is followed."""
        return self.__dict__["source"]().learning_rate

    def follow(self) -> None:
        """Takes over the plain hyper-parameters as they are now."""
        for name, value in vars(self.__dict__["source"]()).items():
            followed = not name.startswith("_") and name not in _NOT_FOLLOWED
            if followed and isinstance(value, bool | int | float | None):
                self.__dict__[name] = value

    def extra_variables(self) -> list[Any]:
        """Returns the variables that the rule keeps once, not for each row."""
        shared = {id(self._iterations), id(self._learning_rate)}
        return [v for v in self.variables if id(v) not in shared]

    def add_variable_from_reference(
        self,
        reference_variable: Rows,
        name: str | None = None,
        initializer: Any = "zeros",
    ) -> Rows:
        """Adds a slot.

        Args:
            reference_variable: The rows.
            name: Name of the slot.
            initializer: Of the slot; it must give one constant.

        Returns:
            A stand-in for the slot's variable.

        Raises:
            ValueError: If the slot does not start as a constant.
        """
        initial = keras.initializers.get(initializer)(shape=(2,))
        first, second = (float(value) for value in initial)
        if first != second:
            msg = f"slot {name!r} does not start as a constant"
            raise ValueError(msg)
        slots: list[Rows] = self.__dict__["row_slots"]
        name = name or "slot"
        if any(slot.name == name for slot in slots):
            name = f"{name}_{len(slots)}"
        slots.append(Rows(reference_variable.dim, name, first))
        return slots[-1]

    # The two steps that Keras's TensorFlow optimizer puts around
    # `update_step`, for distribution strategies, which rows have no part in.

    def _distributed_tf_update_step(
        self, distribution: Any, grads_and_vars: Any, learning_rate: Any
    ) -> None:
        del distribution
        for gradient, rows in grads_and_vars:
            self.update_step(gradient, rows, learning_rate)

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> Any:
        return grads_and_vars
