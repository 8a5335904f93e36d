"""Whether arguments are numbers; those of NumPy are, truth values are not."""

import numbers
from typing import Any


def is_integer(value: Any) -> bool:
    """Returns whether something is an integer.

    Args:
        value: Anything.
    """
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Returns whether something is a number.

    Args:
        value: Anything.
    """
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
