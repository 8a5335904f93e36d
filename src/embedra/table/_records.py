"""Records and counters, as they leave a table."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Slot(NamedTuple):
    """State that an optimizer keeps beside every row.

    Attributes:
        name: Name of the slot, e.g. "momentum".
        width: Elements per record: the width of a row, or 1.
        initial: Value of every element in a new record.
    """

    name: str
    width: int
    initial: float


class Records(NamedTuple):
    """A chunk of whole records.

    Attributes:
        keys: `int64`, shape `(n,)`.
        rows: Of the table's dtype, shape `(n, dim)`.
        slots: `float32`, shape `(n, width of all slots)`; or `(0, 0)`: slots
            start at their initial values.
        frequencies: Training lookups of each key, `int64`, shape `(n,)`, or
            `(0,)`: unknown.
        last_steps: The table's step at the last training lookup or when the
            record was made, `int64`, shape `(n,)`, or `(0,)`: unknown.
    """

    keys: npt.NDArray[np.int64]
    rows: npt.NDArray[Any]
    slots: npt.NDArray[np.float32]
    frequencies: npt.NDArray[np.int64]
    last_steps: npt.NDArray[np.int64]


class TableStatistics(NamedTuple):
    """Counters of a table since it was made.

    Attributes:
        size: Live records.
        capacity: Records that the index takes before it grows.
        bytes: Memory reserved for index and records.
        inserts: Records created.
        removes: Records removed.
        hits: Keys that lookups found.
        misses: Keys that lookups did not find.
        updates: Rows updated by optimizers.
        stale_gradients: Gradients dropped because their record was gone.
        evictions: Records dropped to keep to `max_capacity`.
        load_factor: Occupied share of the index.
    """

    size: int
    capacity: int
    bytes: int
    inserts: int
    removes: int
    hits: int
    misses: int
    updates: int
    stale_gradients: int
    evictions: int
    load_factor: float
