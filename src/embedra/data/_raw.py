"""Undecoded rows, as the file sources hand them to the decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa


class Fault(NamedTuple):
    """Why a row cannot be used.

    Attributes:
        line: Its line (text) or row (Parquet) in the file, from 1.
        reason: What was found and what was expected.
    """

    line: int
    reason: str


@dataclass(frozen=True)
class RawRows:
    """A run of rows as Arrow columns.

    Attributes:
        columns: Name to values; every array has `count` of them.
        count: The number of rows.
        line_of: From the position of a row in this run to its line.
        faults: Lines near this run that could not even be split into columns.
    """

    columns: Mapping[str, pa.Array]
    count: int
    line_of: Callable[[int], int]
    faults: Sequence[Fault] = ()
