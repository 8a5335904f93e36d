"""Checks of the arguments of `de.Variable` that tables do not check."""

from typing import Any

from ._creators import KVCreator


def check_arguments(
    *,
    name: Any,
    devices: Any,
    partitioner: Any,
    init_size: Any,
    kv_creator: Any,
    restrict_policy: Any,
) -> None:
    """Raises unless arguments are of the right kind.

    Args:
        name: A string that is not empty.
        devices: None, a device, or several.
        partitioner: A function.
        init_size: A number of ids.
        kv_creator: None, or a `KVCreator`.
        restrict_policy: None, or a class.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range.
    """
    if not isinstance(name, str):
        msg = f"`name` of a de.Variable must be a string. Received: {name!r}."
        raise TypeError(msg)
    if not name:
        msg = "`name` of a de.Variable must not be empty."
        raise ValueError(msg)
    several = [devices] if isinstance(devices, str) else devices
    if several is not None and not _are_strings(several):
        raise _wrong_kind(name, "devices", "a device, or a list", devices)
    if not callable(partitioner):
        kind = "a function of ids and the number of devices"
        raise _wrong_kind(name, "partitioner", kind, partitioner)
    if kv_creator is not None and not isinstance(kv_creator, KVCreator):
        kind = "a creator, as de.HkvHashTableCreator(config)"
        raise _wrong_kind(name, "kv_creator", kind, kv_creator)
    if restrict_policy is not None and not callable(restrict_policy):
        kind = "a class, as de.FrequencyRestrictPolicy"
        raise _wrong_kind(name, "restrict_policy", kind, restrict_policy)
    if init_size < 0:
        msg = (
            f"`init_size` of variable {name!r} must be 0 or more. Received: "
            f"{init_size}."
        )
        raise ValueError(msg)


def _are_strings(values: Any) -> bool:
    try:
        return all(isinstance(value, str) for value in values)
    except TypeError:
        return False


def _wrong_kind(
    name: str, argument: str, kind: str, received: Any
) -> TypeError:
    return TypeError(
        f"`{argument}` of variable {name!r} must be {kind}. Received: "
        f"{received!r}."
    )
