"""StandIn: what lookups read from in place of tables.

A model that is exported is traced once more. While that is done, its lookups
are to become other ops than those of a native table. Whatever reads rows asks
here first.
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import tensorflow as tf


class StandIn(Protocol):
    """Reads rows in place of tables; never changes them."""

    def read(
        self, tables: Sequence[Any], keys: tf.Tensor, default: Any
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads rows.

        Args:
            tables: The tables that hold one map between them.
            keys: Keys, `int64`, any shape.
            default: What absent keys read as: a number, a row, or None for the
                row that they would start with.

        Returns:
            Rows of the tables' dtype, shape `keys.shape + (dim,)`, and which
            keys are there, `bool`, of the shape of the keys.
        """
        ...


class _Current(threading.local):
    stand_in: StandIn | None = None


_CURRENT = _Current()


def current_stand_in() -> StandIn | None:
    """Returns what lookups of this thread read from; None for the tables."""
    return _CURRENT.stand_in


@contextlib.contextmanager
def reading_from(stand_in: StandIn) -> Iterator[None]:
    """Makes lookups that this thread traces read from something else.

    Functions that were traced before are not affected.

    Args:
        stand_in: What to read from.
    """
    before = _CURRENT.stand_in
    _CURRENT.stand_in = stand_in
    try:
        yield
    finally:
        _CURRENT.stand_in = before
