"""How many rows to decode at once, so that they take about as many bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from ._arrow_types import TypeMismatchError, take_apart
from ._containers import Container


# Of decoded rows that are handed from thread to thread at once.
_CHUNK_BYTES = 16 << 20
_CHUNK_ROWS = 65_536
# Rows of the first chunks of text: how often it repeats is seen there.
_FIRST_ROWS = 4096
# Chunks smaller than that may be of a few odd rows.
_TELLING_BYTES = 1 << 20
# Units are read in one go if the sizes of their rows differ by less.
_ALIKE = 4


class Stretch(NamedTuple):
    """Units that are read in one go.

    Attributes:
        units: Their numbers.
        rows: Rows of a chunk.
        row_bytes: Bytes of a row by what the file states.
    """

    units: tuple[int, ...]
    rows: int
    row_bytes: float


class ChunkSizes:
    """Chooses the rows of a chunk, and learns from chunks that were read.

    Files state how many bytes columns have as they are stored. Where text
    repeats, it is stored once and has far more in memory.

    Args:
        batch_size: Rows of a batch.
    """

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        self._growth = 1.0
        self._learned = False

    def stretches(
        self, container: Container, units: Sequence[int], names: Sequence[str]
    ) -> Iterator[Stretch]:
        """Units that follow one another, with the chunks that suit them.

        What is learned of one counts for those that follow.

        Args:
            container: The file.
            units: Numbers of the units.
            names: The columns to read.
        """
        rest = list(units)
        if not self._learned and _has_text(container.schema, names):
            first = self._stretch(container, rest[:1], names)
            yield first._replace(rows=min(first.rows, _FIRST_ROWS))
            rest = rest[1:]
        while rest:
            found = self._stretch(container, rest, names)
            yield found
            rest = rest[len(found.units) :]

    def _stretch(
        self, container: Container, units: Sequence[int], names: Sequence[str]
    ) -> Stretch:
        """The first of some units, and those behind it that are alike."""
        sizes = [container.row_bytes(units[0], names)]
        most, least = sizes[0], sizes[0]
        for unit in units[1:]:
            size = container.row_bytes(unit, names)
            if max(most, size) > _ALIKE * min(least, size):
                break
            most, least = max(most, size), min(least, size)
            sizes.append(size)
        rows = self._rows(most * self._growth)
        return Stretch(tuple(units[: len(sizes)]), rows, most)

    def learn(self, stretch: Stretch, chunk: pa.RecordBatch) -> None:
        """Has later chunks be smaller where one was larger than stated."""
        self._learned = True
        if chunk.nbytes > _TELLING_BYTES:
            growth = chunk.nbytes / (chunk.num_rows * stretch.row_bytes)
            self._growth = max(self._growth, growth)

    def _rows(self, row_bytes: float) -> int:
        rows = min(_CHUNK_ROWS, int(_CHUNK_BYTES / row_bytes) + 1)
        size = self._batch_size
        # Whole batches, so that few need to be put together.
        return rows if rows < size else rows // size * size


def _has_text(schema: pa.Schema, names: Sequence[str]) -> bool:
    return any(_is_text(schema.field(name).type) for name in names)


def _is_text(kind: pa.DataType) -> bool:
    try:
        return bool(pa.types.is_binary(take_apart(kind).value))
    except TypeMismatchError:
        return False
