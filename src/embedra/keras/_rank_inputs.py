"""What `fit`, `evaluate` and `predict` are given, for several ranks."""

from typing import Any

import keras
import tensorflow as tf

from embedra.distribute import Communicator

from ._keras_data import Adapted, split_for_validation
from ._rank_callbacks import Epochs, with_first
from ._rank_data import is_rank_data, rank_data


def fit_data(
    given: dict[str, Any], communicator: Communicator
) -> dict[str, Any]:
    """Has the data of `fit` last as long on all ranks.

    Args:
        given: Arguments of `keras.Model.fit` by name, with data of this rank.
        communicator: Of the ranks.

    Returns:
        The same arguments, with data of `rank_data`. If they are that already,
        as they were given.

    Raises:
        ValueError: On all ranks, if they are not to train as long.
    """
    x = given.get("x")
    if is_rank_data(x):
        return given
    validates = given.get("validation_data") is not None
    _check_alike(
        "fit",
        {
            "epochs": given.get("epochs", 1),
            "initial_epoch": given.get("initial_epoch") or 0,
            "steps_per_epoch": given.get("steps_per_epoch"),
            "validation_steps": given.get("validation_steps"),
            "validation data": validates or bool(given.get("validation_split")),
        },
        communicator,
    )
    given = dict(given)
    batch_size = given.pop("batch_size", None)
    arrays = (x, given.pop("y", None), given.pop("sample_weight", None))
    split = given.pop("validation_split", None)
    if split and given.get("validation_data") is None:
        arrays, given["validation_data"] = split_for_validation(arrays, split)
    training = Adapted(
        *arrays,
        batch_size=batch_size,
        steps=given.get("steps_per_epoch"),
        shuffle=given.pop("shuffle", True),
        class_weight=given.pop("class_weight", None),
    )
    data = rank_data(training.dataset, training.batches, communicator)
    given |= {"x": data, "shuffle": False}
    validation = None
    if given.get("validation_data") is not None:
        own_size = given.pop("validation_batch_size", None)
        validation = Adapted(
            *keras.utils.unpack_x_y_sample_weight(given["validation_data"]),
            batch_size=own_size or batch_size,
            steps=given.get("validation_steps"),
        )
        given["validation_data"] = rank_data(
            validation.dataset, validation.batches, communicator
        )
    epochs = Epochs(training, validation)
    given["callbacks"] = with_first(given.get("callbacks"), epochs)
    return given


def evaluation_data(
    method: str, given: dict[str, Any], communicator: Communicator
) -> dict[str, Any]:
    """Has the data of `evaluate` or `predict` last as long on all ranks.

    Args:
        method: Which of them it is.
        given: Its arguments by name, with data of this rank.
        communicator: Of the ranks.

    Returns:
        The same arguments, with data of `rank_data`. If they are that already,
        as those of a validation in `fit` are, as they were given.

    Raises:
        ValueError: On all ranks, if they are not to go on as long.
    """
    if is_rank_data(given.get("x")):
        return given
    _check_alike(method, {"steps": given.get("steps")}, communicator)
    given = dict(given)
    data = Adapted(
        given["x"],
        given.pop("y", None),
        given.pop("sample_weight", None),
        batch_size=given.pop("batch_size", None),
        steps=given.get("steps"),
    )
    given["x"] = rank_data(data.dataset, data.batches, communicator)
    epochs = Epochs(other=data)
    given["callbacks"] = with_first(given.get("callbacks"), epochs)
    return given


def _check_alike(
    method: str, given: dict[str, int | None], communicator: Communicator
) -> None:
    """Raises, on all ranks, if a method was given other numbers on some."""
    own = [-1 if number is None else int(number) for number in given.values()]
    of_all, _ = communicator.all_gather_v(
        tf.constant([own], tf.int64), label=f"arguments of {method}"
    )
    for name, numbers in zip(given, of_all.numpy().T, strict=True):
        other = next((r for r, n in enumerate(numbers) if n != numbers[0]), 0)
        if other:
            first, second = (
                _shown(name, int(numbers[rank])) for rank in (0, other)
            )
            msg = (
                f"All ranks must give `{method}` the same {name}, as its "
                f"steps are those of all. Rank 0 has {first}, rank {other} "
                f"{second}. Where data are uneven, leave numbers of steps out: "
                "an epoch ends when the data of all ranks have ended."
            )
            raise ValueError(msg)


def _shown(name: str, number: int) -> str:
    if name == "validation data":
        return "some" if number else "none"
    return "None" if number < 0 else str(number)
