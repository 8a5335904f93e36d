"""Kinds of the values of a RunConfig."""

import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ._numbers import is_integer, is_real


_PATH = (
    "a path",
    lambda value: isinstance(value, str | os.PathLike) and str(value) != "",
)
_INTEGER = ("an integer", is_integer)
_NUMBER = ("a number", is_real)
_PROTO = (
    "a tf.compat.v1.ConfigProto",
    lambda value: isinstance(value, tf.compat.v1.ConfigProto),
)

# None is a value of each of them.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "model_dir": _PATH,
    "tf_random_seed": _INTEGER,
    "save_summary_steps": _INTEGER,
    "save_checkpoints_steps": _INTEGER,
    "save_checkpoints_secs": _NUMBER,
    "session_config": _PROTO,
    "keep_checkpoint_max": _INTEGER,
    "keep_checkpoint_every_n_hours": _NUMBER,
    "log_step_count_steps": _INTEGER,
    "device_fn": ("a function of an operation", callable),
}


def check_kinds(config: Any) -> None:
    """Raises TypeError if a value is none of what its argument takes.

    Args:
        config: A `RunConfig`.
    """
    for name, (kind, is_one) in _KINDS.items():
        value = getattr(config, name)
        if value is not None and not is_one(value):
            msg = f"`{name}` must be {kind} or None. Received: {value!r}."
            raise TypeError(msg)
