"""What `fit` is asked to do about checkpoints."""

import os
from dataclasses import dataclass
from typing import Any

import keras

from embedra._checks import check_flag, check_number, checked_path

from ._added_logs import added_logs, callbacks_of
from ._monitor import Monitor


# Those of `keras.Model.fit` after `callbacks`, in its order.
FIT_ARGUMENTS = (
    "validation_split",
    "validation_data",
    "shuffle",
    "class_weight",
    "sample_weight",
    "initial_epoch",
    "steps_per_epoch",
    "validation_steps",
    "validation_batch_size",
    "validation_freq",
)


@dataclass(frozen=True)
class FitSettings:
    """What `fit` was asked to do about checkpoints.

    Attributes:
        directory: Where checkpoints are kept.
        keep_max: How many; None for as many as by default.
        keep_every_n_hours: One more for each so many hours, or None.
        every_n_steps: Steps between saves within an epoch; None for none.
        monitor: What the best epoch is chosen by.
        best_only: Whether only the best epochs are kept.
        restore_best: Whether the model is that of the best epoch at the end.
        validates: Whether there are logs of validation.
        added_logs: Names of logs that callbacks add; None if they may be any.
    """

    directory: str
    keep_max: int | None
    keep_every_n_hours: float | None
    every_n_steps: int | None
    monitor: Monitor
    best_only: bool
    restore_best: bool
    validates: bool
    added_logs: frozenset[str] | None


def fit_settings(
    directory: str | os.PathLike[str],
    keep_max: int | None,
    keep_every_n_hours: float | None,
    every_n_steps: int | None,
    monitor: Any,
    mode: str,
    callbacks: Any,
    *,
    best_only: bool,
    restore_best: bool,
    validates: bool,
) -> FitSettings:
    """Checks what `fit` was given; see there.

    Args:
        directory: `checkpoint_dir`.
        keep_max: `keep_checkpoint_max`.
        keep_every_n_hours: `keep_checkpoint_every_n_hours`.
        every_n_steps: `save_checkpoints_steps`.
        monitor: `monitor`.
        mode: `mode`.
        callbacks: `callbacks`.
        best_only: `save_best_only`.
        restore_best: `restore_best_weights`.
        validates: Whether there are logs of validation.

    Returns:
        The settings.

    Raises:
        TypeError: If one is of another type.
        ValueError: If one is out of range.
    """
    if keep_max is not None:
        check_number("keep_checkpoint_max", keep_max, whole=True)
    if keep_every_n_hours is not None:
        check_number("keep_checkpoint_every_n_hours", keep_every_n_hours)
    if every_n_steps is not None:
        check_number("save_checkpoints_steps", every_n_steps, whole=True)
    check_flag("save_best_only", best_only)
    check_flag("restore_best_weights", restore_best)
    if not isinstance(monitor, str):
        msg = f"`monitor` must be the name of a log. Received: {monitor!r}."
        raise TypeError(msg)
    if restore_best and not best_only:
        msg = (
            "`restore_best_weights` needs save_best_only=True, by which the "
            "best epochs are kept."
        )
        raise ValueError(msg)
    if mode == "auto" and not best_only:
        # Nothing depends on it: the name need not tell.
        mode = "min"
    return FitSettings(
        _absolute(directory),
        keep_max,
        keep_every_n_hours,
        every_n_steps,
        Monitor(monitor, mode),
        best_only,
        restore_best,
        validates,
        added_logs(callbacks),
    )


def fit_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Names the arguments of `fit` that come after `callbacks`.

    Args:
        args: Those that were given by place.
        kwargs: Those that were given by name.

    Returns:
        All of them.

    Raises:
        TypeError: If there are too many, or one is given twice.
    """
    if len(args) > len(FIT_ARGUMENTS):
        msg = (
            f"`fit` was given {len(args)} arguments by place after "
            f"`callbacks`, and takes {len(FIT_ARGUMENTS)}: "
            f"{', '.join(FIT_ARGUMENTS)}."
        )
        raise TypeError(msg)
    given = dict(zip(FIT_ARGUMENTS, args, strict=False))
    twice = sorted(given.keys() & kwargs.keys())
    if twice:
        msg = f"`fit` was given {', '.join(twice)} by place and by name."
        raise TypeError(msg)
    return given | kwargs


def check_epochs(epochs: Any, initial_epoch: Any) -> None:
    """Raises unless the epochs to train are whole numbers.

    Args:
        epochs: How many there are to be.
        initial_epoch: How many of them are not done; None for 0.

    Raises:
        TypeError: If one is no whole number.
        ValueError: If one is negative.
    """
    check_number("epochs", epochs, whole=True, zero=True)
    if initial_epoch is not None:
        check_number("initial_epoch", initial_epoch, whole=True, zero=True)


def with_last(callbacks: Any, last: keras.callbacks.Callback) -> Any:
    """Adds a callback that comes after all others.

    Args:
        callbacks: What `fit` was given.
        last: The one to add.

    Returns:
        The callbacks.
    """
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks.append(last)
        return callbacks
    return [*callbacks_of(callbacks), last]


def _absolute(directory: Any) -> str:
    """Returns a folder that stays the same when a callback changes ours."""
    path = checked_path("checkpoint_dir", directory)
    return path if "://" in path else os.path.abspath(path)
