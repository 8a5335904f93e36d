"""What `fit` is asked to do about checkpoints."""

import os
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import keras

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
    _check_number("keep_checkpoint_max", keep_max, Integral)
    _check_number("keep_checkpoint_every_n_hours", keep_every_n_hours, Real)
    _check_number("save_checkpoints_steps", every_n_steps, Integral)
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


def _check_number(name: str, value: Any, kind: type) -> None:
    """Raises if an argument is neither None nor a positive number."""
    if value is None:
        return
    if not isinstance(value, kind) or isinstance(value, bool):
        what = "a whole number" if kind is Integral else "a number"
        msg = f"`{name}` must be {what}. Received: {value!r}."
        raise TypeError(msg)
    if value <= 0:  # type: ignore[operator]
        msg = f"`{name}` must be positive. Received: {value!r}."
        raise ValueError(msg)


def _absolute(directory: Any) -> str:
    """Returns a folder that stays the same when a callback changes ours."""
    path: Any = os.fspath(directory)
    if not isinstance(path, str) or not path:
        msg = f"`checkpoint_dir` must be a path. Received: {directory!r}."
        raise TypeError(msg)
    return path if "://" in path else os.path.abspath(path)
