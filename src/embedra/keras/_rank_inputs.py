"""What `fit`, `evaluate` and `predict` are given, for several ranks."""

from typing import Any

import keras

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
    """
    x = given.get("x")
    if is_rank_data(x):
        return given
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
    given |= {"x": rank_data(training.dataset, communicator), "shuffle": False}
    validation = None
    if given.get("validation_data") is not None:
        own_size = given.pop("validation_batch_size", None)
        validation = Adapted(
            *keras.utils.unpack_x_y_sample_weight(given["validation_data"]),
            batch_size=own_size or batch_size,
            steps=given.get("validation_steps"),
        )
        data = rank_data(validation.dataset, communicator)
        given["validation_data"] = data
    epochs = Epochs(training, validation)
    given["callbacks"] = with_first(given.get("callbacks"), epochs)
    return given


def evaluation_data(
    given: dict[str, Any], communicator: Communicator
) -> dict[str, Any]:
    """Has the data of `evaluate` or `predict` last as long on all ranks.

    Args:
        given: Their arguments by name, with data of this rank.
        communicator: Of the ranks.

    Returns:
        The same arguments, with data of `rank_data`. If they are that already,
        as those of a validation in `fit` are, as they were given.
    """
    if is_rank_data(given.get("x")):
        return given
    given = dict(given)
    data = Adapted(
        given["x"],
        given.pop("y", None),
        given.pop("sample_weight", None),
        batch_size=given.pop("batch_size", None),
        steps=given.get("steps"),
    )
    given["x"] = rank_data(data.dataset, communicator)
    epochs = Epochs(other=data)
    given["callbacks"] = with_first(given.get("callbacks"), epochs)
    return given
