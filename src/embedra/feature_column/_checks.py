"""Checks of arguments that need no column."""

import numbers
from typing import Any


def check_parts(key: str, number: Any) -> None:
    """Raises ValueError unless a column can be asked to be in so many parts.

    Args:
        key: Name of the column.
        number: How many parts.
    """
    is_integer = isinstance(number, numbers.Integral)
    if is_integer and not isinstance(number, bool) and int(number) > 0:
        return
    msg = (
        f"`partition_num` of column {key!r} must be an integer from 1 on, or "
        f"None. Received: {number!r}."
    )
    raise ValueError(msg)
