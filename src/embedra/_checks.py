"""Argument checks that raise errors carrying the received value."""

from collections.abc import Collection, Mapping, Sized


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
