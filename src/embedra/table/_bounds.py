"""Bounds: how many records a table keeps, and which go first."""

from typing import Any, NamedTuple

import numpy as np


# What makes a record go first: the oldest last use, or the fewest uses.
ORDERS = ("recency", "frequency")


class Bound(NamedTuple):
    """What keeps a table from growing without end.

    Attributes:
        max_capacity: Records to hold at most, 0 for no bound.
        eviction: Which records go first, "recency" or "frequency".
    """

    max_capacity: int
    eviction: str


def checked_bound(max_capacity: Any, eviction: Any, name: str) -> Bound:
    """Returns the bound of a table, or raises ValueError."""
    is_count = isinstance(max_capacity, int | np.integer)
    if not is_count or isinstance(max_capacity, bool) or max_capacity < 0:
        msg = (
            f"`max_capacity` of table {name!r} must be a number of records, or "
            f"0 for no bound. Received: {max_capacity!r}"
        )
        raise ValueError(msg)
    return Bound(int(max_capacity), checked_order(eviction, "eviction", name))


def checked_order(order: Any, what: str, name: str) -> str:
    """Returns the name of an order, or raises ValueError."""
    if order not in ORDERS:
        msg = (
            f"`{what}` of table {name!r} must be one of {ORDERS}. Received: "
            f"{order!r}"
        )
        raise ValueError(msg)
    return str(order)
