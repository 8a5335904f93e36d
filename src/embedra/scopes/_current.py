"""The options that hold in this thread or task."""

import contextlib
import contextvars
import functools
from collections.abc import Iterator, Mapping
from typing import Any

from ._cluster import current_cluster
from ._options import Options


_set: contextvars.ContextVar[Options | None] = contextvars.ContextVar(
    "embedra_options", default=None
)


def current_options() -> Options:
    """Returns the options that hold here; `embedra.scope` sets them.

    Example:
        >>> current_options().mode
        'train'
    """
    return _set.get() or _defaults()


# They are asked for at each eager lookup.
@functools.cache
def _defaults() -> Options:
    return Options.from_environment()


@contextlib.contextmanager
def holding(options: Mapping[str, Any]) -> Iterator[None]:
    """Sets options for a block; see `embedra.scope`.

    Args:
        options: Values by name.

    Yields:
        Nothing.

    Raises:
        TypeError: If an option is unknown.
        ValueError: If the value of an option is wrong.
        NotImplementedError: If tables are to be split over several processes.
    """
    replaced = current_options().replaced(options)
    if options.get("sharding"):
        _check_one_process()
    token = _set.set(replaced)
    try:
        yield
    finally:
        _set.reset(token)


def _check_one_process() -> None:
    count = current_cluster().world_size
    if count > 1:
        msg = (
            f"This is one of {count} processes, but tables are not yet split "
            "over processes. Start one process, or leave out `sharding`."
        )
        raise NotImplementedError(msg)
