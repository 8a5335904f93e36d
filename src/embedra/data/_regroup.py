"""Runs of rows regrouped: into windows that are shuffled, and into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa


def regroup(
    chunks: Iterable[pa.RecordBatch], rows: int, *, keep_rest: bool = True
) -> Iterator[pa.RecordBatch]:
    """Cuts a stream into runs of a size; copies only where two runs meet.

    Args:
        chunks: The rows.
        rows: Rows of each run.
        keep_rest: Whether the last run may be smaller; else it is left out.

    Yields:
        The runs.
    """
    pending: list[pa.RecordBatch] = []
    count = 0
    for chunk in chunks:
        start = 0
        while chunk.num_rows - start >= rows - count:
            taken = chunk.slice(start, rows - count)
            start += taken.num_rows
            yield _joined([*pending, taken])
            pending, count = [], 0
        if start < chunk.num_rows:
            pending.append(chunk.slice(start))
            count += pending[-1].num_rows
    if count and keep_rest:
        yield _joined(pending)


def shuffle_windows(
    chunks: Iterable[pa.RecordBatch],
    rows: int,
    seed: tuple[int, ...],
    first: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Shuffles the rows of each window of a stream.

    Args:
        chunks: The rows.
        rows: Rows of a window.
        seed: The order of a window depends on it and on its number.
        first: Number of the first window.

    Yields:
        The windows.
    """
    for number, window in enumerate(regroup(chunks, rows), first):
        rng = np.random.default_rng((*seed, number))
        yield window.take(pa.array(rng.permutation(window.num_rows)))


def drop_rows(
    chunks: Iterable[pa.RecordBatch], rows: int
) -> Iterator[pa.RecordBatch]:
    """Leaves out the first rows of a stream."""
    for chunk in chunks:
        if rows < chunk.num_rows:
            yield chunk.slice(rows)
        rows = max(rows - chunk.num_rows, 0)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    columns = zip(*(batch.columns for batch in batches), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays(arrays) for arrays in columns],
        schema=batches[0].schema,
    )
