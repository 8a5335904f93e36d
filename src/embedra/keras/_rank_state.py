"""What models of several ranks have in common, and keep so."""

from typing import Any

import keras
import tensorflow as tf

from embedra.distribute import Communicator, times_share


_SENT = (
    *("float64", "float32", "float16", "bfloat16"),
    *("int8", "int16", "int32", "int64", "bool"),
)


def broadcast_state(model: Any, communicator: Communicator) -> None:
    """Gives all ranks the weights and the optimizer state of rank 0.

    Random states, which are of unsigned numbers, are each rank's own, as what
    they draw is. Of tables each rank has a part, whose rows do not depend on
    who has it.

    Args:
        model: Built, and so is its optimizer.
        communicator: Of the ranks.
    """
    # An optimizer has a number in its paths, which may differ between ranks.
    named = [(weight.path, weight) for weight in model.weights]
    named += [(state.name, state) for state in model.optimizer.variables]
    for name, variable in named:
        dtype = keras.backend.standardize_dtype(variable.dtype)
        if dtype in _SENT and 0 not in variable.shape:
            variable.assign(
                communicator.broadcast(
                    tf.convert_to_tensor(variable.value),
                    label=f"first value of {name}",
                )
            )


def batch_states(model: Any) -> list[Any]:
    """Returns the weights that a training step changes without gradients.

    They are those of batch normalization and the like. What is frozen does not
    change.

    Args:
        model: Built.
    """
    frozen = {
        id(weight)
        for layer in model._flatten_layers()
        if not layer.trainable
        for weight in layer.weights
    }
    return [
        weight
        for weight in model.non_trainable_weights
        if keras.backend.is_float_dtype(weight.dtype)
        and id(weight) not in frozen
        and 0 not in weight.shape
    ]


def average_states(
    states: list[Any], communicator: Communicator, share: Any
) -> None:
    """Averages states over ranks, by the number of their examples.

    Args:
        states: Variables; changed.
        communicator: Of the ranks.
        share: This rank's part of all examples, a scalar.
    """
    sums = communicator.all_reduce(
        [times_share(state.value, share) for state in states],
        label="states of layers",
    )
    for state, mean in zip(states, sums, strict=True):
        state.assign(mean)
