"""Parts of a file that are read in one go.

Arrow cuts a stream of several row groups into batches without regard to where
one ends and the next begins. Read one by one, each would end with a small
batch, and all that follow would have to be put together from two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ._containers import Container
from ._plan import Part


@dataclass(frozen=True)
class Run:
    """Some rows of units that follow one another.

    Attributes:
        container: Number of the file.
        units: Numbers of the units.
        sizes: Rows of each unit; None where that is not known.
        start: First row, counted from the beginning of the first unit.
        stop: The row after the last; None for the end.
        every: Of these rows, one in so many.
        offset: The first of those.
    """

    container: int
    units: tuple[int, ...]
    sizes: tuple[int | None, ...]
    start: int = 0
    stop: int | None = None
    every: int = 1
    offset: int = 0

    def place(self, row: int) -> tuple[int, int]:
        """The unit of a row, and the row counted from its beginning."""
        for unit, size in zip(self.units, self.sizes, strict=True):
            if size is None or row < size:
                return unit, row
            row -= size
        return self.units[-1], row + (self.sizes[-1] or 0)


def runs_of(
    parts: Sequence[Part], containers: Sequence[Container], *, join: bool
) -> list[Run]:
    """Puts parts of a file together where one goes on from the other.

    Args:
        parts: The rows, in order.
        containers: The files.
        join: Whether to; else each part is a run.
    """
    runs: list[Run] = []
    for part in parts:
        sizes = containers[part.container].unit_rows
        last = runs[-1] if runs else None
        if (
            join
            and last is not None
            and containers[part.container].joins
            and _goes_on(last, part)
        ):
            runs[-1] = _joined(last, part, sizes[part.unit])
        else:
            runs.append(
                Run(
                    part.container,
                    (part.unit,),
                    (sizes[part.unit],),
                    part.start,
                    part.stop,
                    part.every,
                    part.offset,
                )
            )
    return runs


def _goes_on(run: Run, part: Part) -> bool:
    known = [size for size in run.sizes if size is not None]
    return (
        part.container == run.container
        and part.unit == run.units[-1] + 1
        and part.start == 0
        and run.stop == sum(known)
    )


def _joined(run: Run, part: Part, size: int | None) -> Run:
    return Run(
        run.container,
        (*run.units, part.unit),
        (*run.sizes, size),
        run.start,
        (run.stop or 0) + part.rows,
    )
