"""The options that hold in this thread or task."""

import contextlib
import contextvars
import functools
from collections.abc import Iterator, Mapping
from typing import Any

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
    """
    replaced = current_options().replaced(options)
    token = _set.set(replaced)
    try:
        yield
    finally:
        _set.reset(token)
