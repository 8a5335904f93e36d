"""Which rows an epoch reads on a rank, and in what order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embedra.scopes import context

from ._containers import Container


@dataclass(frozen=True)
class Part:
    """Some rows of a unit.

    Attributes:
        container: Number of the file.
        unit: Number of the unit in it.
        start: First row.
        stop: The row after the last; None for the end.
        every: Of these rows, one in so many.
        offset: The first of those.
    """

    container: int
    unit: int
    start: int = 0
    stop: int | None = None
    every: int = 1
    offset: int = 0

    @property
    def rows(self) -> int:
        """Number of rows, where it is known.

        Raises:
            ValueError: If it is not.
        """
        if self.stop is None:
            msg = "The number of rows is known after reading only."
            raise ValueError(msg)
        return self.stop - self.start


@dataclass(frozen=True)
class Share:
    """The rows of one of several ranks.

    Args:
        count: Number of ranks.
        index: This rank, from 0.

    Raises:
        ValueError: If there is no such rank.
    """

    count: int = 1
    index: int = 0

    def __post_init__(self) -> None:
        given: tuple[Any, ...] = (self.count, self.index)
        integers = all(isinstance(n, int | np.integer) for n in given)
        if not integers or not 0 <= self.index < self.count:
            msg = (
                "partition_index is an integer in [0, partition_count). "
                f"Received: partition_index={self.index!r}, "
                f"partition_count={self.count!r}."
            )
            raise ValueError(msg)


def share_of(count: int | None, index: int | None) -> Share:
    """The share that is asked for.

    Args:
        count: Number of ranks that share the rows. Default: those of the job
            that this process is in, which is 1 where it is in none.
        index: One of them, from 0. Default: this process.

    Raises:
        ValueError: If there is no such rank, or one of two is left out where
            it could be any.
    """
    if count is None and index is None:
        return Share(context.world_size, context.rank)
    if count is None or (index is None and count != 1):
        msg = (
            "Expected partition_count and partition_index, or neither, for "
            "the share of this process in its job. Received: "
            f"partition_count={count}, partition_index={index}."
        )
        raise ValueError(msg)
    return Share(count, index or 0)


class Plan:
    """The order of the rows of each epoch.

    All units of all files, in order or shuffled in the same way on each rank,
    make one long sequence of rows. Each rank has one stretch of it, and no
    two stretches differ in length by more than a row. A unit at a border is
    read by both ranks, its rows are not. Where the number of rows of a unit is
    not known before it is read, each rank takes every so-manyth row of it.

    Args:
        containers: The files.
        share: Whose rows.
        shuffle: Whether units come in another order in each epoch.
        seed: Seed of the order.
    """

    def __init__(
        self,
        containers: Sequence[Container],
        share: Share,
        *,
        shuffle: bool,
        seed: int,
    ) -> None:
        self._share = share
        self._shuffle = shuffle
        self._seed = seed
        self._units = [
            Part(place, unit, 0, rows)
            for place, container in enumerate(containers)
            for unit, rows in enumerate(container.unit_rows)
        ]
        self._known = all(unit.stop is not None for unit in self._units)

    def rows(self) -> int | None:
        """Rows of this rank in an epoch; None where only reading tells."""
        if not self._known:
            return None
        first, last = self._stretch()
        return last - first

    def parts(self, epoch: int, drop: int = 0) -> list[Part]:
        """The rows of this rank in an epoch, in order.

        Args:
            epoch: The epoch, from 0.
            drop: Rows to leave out at the beginning; 0 where the number of
                rows is not known.
        """
        units = self._units
        if self._shuffle:
            rng = np.random.default_rng((self._seed, epoch))
            units = [units[i] for i in rng.permutation(len(units))]
        if not self._known:
            count, index = self._share.count, self._share.index
            # Another rank begins in each, so that none has all odd rows.
            return [
                replace(unit, every=count, offset=(index + i) % count)
                for i, unit in enumerate(units)
            ]
        first, last = self._stretch()
        return _cut(units, min(first + drop, last), last)

    def _stretch(self) -> tuple[int, int]:
        total = sum(unit.rows for unit in self._units)
        count, index = self._share.count, self._share.index
        return total * index // count, total * (index + 1) // count


def _cut(units: Sequence[Part], first: int, last: int) -> list[Part]:
    """Rows `[first, last)` of some units one after another."""
    parts = []
    begin = 0
    for unit in units:
        end = begin + unit.rows
        start, stop = max(first, begin), min(last, end)
        if start < stop:
            parts.append(replace(unit, start=start - begin, stop=stop - begin))
        begin = end
    return parts
