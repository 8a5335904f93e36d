"""Argument checks that raise errors carrying the received value."""

import inspect
import math
import os
from collections.abc import Callable, Collection, Mapping, Sized
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_positive(name: str, value: int) -> int:
    """Returns `value` if it is a positive integer.

    Args:
        name: Argument name as the caller wrote it.
        value: Value to check.

    Returns:
        `value`, unchanged.

    Raises:
        ValueError: If `value` is zero or negative.
    """
    if value <= 0:
        msg = f"`{name}` must be positive. Received: {name}={value}."
        raise ValueError(msg)
    return value


def check_number(
    name: str, value: Any, *, whole: bool = False, zero: bool = False
) -> None:
    """Raises unless a value is a positive number that is finite.

    Args:
        name: Argument name as the caller wrote it.
        value: Value to check.
        whole: Whether it must be an integer.
        zero: Whether it may be zero.

    Raises:
        TypeError: If it is no number, or not an integer.
        ValueError: If it is out of range.
    """
    kind = Integral if whole else Real
    if isinstance(value, bool) or not isinstance(value, kind):
        what = "a whole number" if whole else "a number"
        msg = f"`{name}` must be {what}. Received: {name}={value!r}."
        raise TypeError(msg)
    if value < 0 or (value == 0 and not zero) or not math.isfinite(value):
        what = "not be negative" if zero else "be positive"
        if not math.isfinite(value):
            what = "be finite"
        msg = f"`{name}` must {what}. Received: {name}={value!r}."
        raise ValueError(msg)


def check_flag(name: str, value: Any) -> None:
    """Raises unless a value is True or False.

    Args:
        name: Argument name as the caller wrote it.
        value: Value to check.

    Raises:
        TypeError: If it is something else.
    """
    if not isinstance(value, bool | np.bool_):
        msg = f"`{name}` must be True or False. Received: {name}={value!r}."
        raise TypeError(msg)


def checked_path(name: str, value: Any) -> str:
    """Returns a path as a string.

    Args:
        name: Argument name as the caller wrote it.
        value: A string or `os.PathLike`.

    Raises:
        TypeError: If it is something else, as bytes, or empty.
    """
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str) or not path:
        msg = f"`{name}` must be a path. Received: {name}={value!r}."
        raise TypeError(msg)
    return path


def check_takes_nothing(name: str, function: Callable[..., Any]) -> None:
    """Raises unless a function can be called without arguments.

    Args:
        name: Argument name as the caller wrote it.
        function: The function that was given, which says what is served.

    Raises:
        TypeError: If it cannot.
    """
    try:
        inspect.signature(function).bind()
    except TypeError:
        msg = (
            f"`{name}` may be a function without arguments, which returns what "
            "is served. To serve a function of tensors, have it return "
            '{"serving_default": (function, spec, ...)}, with a spec for '
            f"each argument. Received: {name}={function!r}."
        )
        raise TypeError(msg) from None


def check_one_of(name: str, value: str, choices: Collection[str]) -> str:
    """Returns `value` if it is one of `choices`.

    Args:
        name: Argument name as the caller wrote it.
        value: Value to check.
        choices: Accepted values.

    Returns:
        `value`, unchanged.

    Raises:
        ValueError: If `value` is not in `choices`.
    """
    if value not in choices:
        msg = (
            f"`{name}` must be one of {sorted(choices)}. "
            f"Received: {name}={value!r}."
        )
        raise ValueError(msg)
    return value


def check_same_length(**lists: Sized) -> int:
    """Returns the length that all `lists` share.

    Args:
        **lists: Lists by their argument names.

    Returns:
        The common length.

    Raises:
        ValueError: If they differ.
    """
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) != 1:
        given = ", ".join(f"len({k})={v}" for k, v in lengths.items())
        wanted = ", ".join(f"`{name}`" for name in lengths)
        msg = f"{wanted} must have the same length. Received: {given}."
        raise ValueError(msg)
    return next(iter(lengths.values()))


def check_keras_backend(found: str) -> None:
    """Raises unless Keras runs on TensorFlow.

    Args:
        found: Keras's backend, as `keras.config.backend()` gives it.

    Raises:
        ImportError: If it is another.
    """
    if found != "tensorflow":
        msg = (
            f"Embedra needs Keras on TensorFlow, but its backend is {found!r}. "
            "Set the environment variable KERAS_BACKEND=tensorflow, or "
            '"backend": "tensorflow" in ~/.keras/keras.json.'
        )
        raise ImportError(msg)


def missing_name(
    module: str, name: str, gone: Mapping[str, str], page: str
) -> AttributeError:
    """Returns the error for a name that a module does not have.

    Args:
        module: Name of the module.
        name: The name.
        gone: What to use in place of names that users come with.
        page: The document that lists these.

    Returns:
        The error, with the advice if there is one.
    """
    msg = f"module {module!r} has no attribute {name!r}"
    if name in gone:
        msg = f"{msg}: {gone[name]}; see {page}"
    return AttributeError(msg, name=name)
