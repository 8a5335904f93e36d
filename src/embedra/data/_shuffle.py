"""Rows regrouped into batches, shuffled within a bounded buffer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ._block import Block


def rebatch(blocks: Iterable[Block], batch_size: int) -> Iterator[Block]:
    """Cuts a stream of blocks into batches; the last may be smaller."""
    pending: list[Block] = []
    count = 0
    for block in blocks:
        pending.append(block)
        count += len(block)
        if count < batch_size:
            continue
        rows = Block.concatenate(pending)
        whole = count - count % batch_size
        for start in range(0, whole, batch_size):
            yield rows.take(slice(start, start + batch_size))
        pending, count = [rows.take(slice(whole, None))], count - whole
    if count:
        yield Block.concatenate(pending)


def shuffle(
    blocks: Iterable[Block], buffer_rows: int, rng: np.random.Generator
) -> Iterator[Block]:
    """Shuffles rows within a buffer; files up to its size, completely.

    Each time the buffer is full, half of it leaves in random order and the
    other half stays to mix with what comes.

    Args:
        blocks: The rows.
        buffer_rows: Rows held at most, plus one block.
        rng: The source of the order.

    Yields:
        The same rows, each once.
    """
    pending: list[Block] = []
    count = 0
    for block in blocks:
        pending.append(block)
        count += len(block)
        if count < buffer_rows:
            continue
        rows = Block.concatenate(pending)
        rows = rows.take(rng.permutation(count))
        half = count // 2
        yield rows.take(slice(0, half))
        pending, count = [rows.take(slice(half, None))], count - half
    if count:
        yield Block.concatenate(pending).take(rng.permutation(count))
