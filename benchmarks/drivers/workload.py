"""The workload that every system gets: keys, id batches and labels.

NumPy only, so that it imports in each system's own environment. Everything
is a pure function of constants, so that all processes see the same numbers.

Ids are drawn from a Zipf law over ranks; rank `r` of key space `s` becomes the
key `spread(s, r)`, a fixed point of the 63-bit integers. Systems with static
tables take `id % rows`, which is the cheapest that they could do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np


if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = [
    "BAG_DIM",
    "BAG_SPACE",
    "BATCH",
    "DIM",
    "FEATURES",
    "HIDDEN",
    "LEARNING_RATE",
    "Bags",
    "ClickBatches",
    "bags",
    "clicks",
    "key_chunks",
    "spread",
]

FEATURES = 26
DIM = 16
BATCH = 4096
HIDDEN = (256, 128)
LEARNING_RATE = {"adam": 1e-3, "adagrad": 1e-2}
BAG_DIM = 64
BAG_SPACE = 1000
MEAN_BAG = 50
ZIPF_EXPONENT = 1.05
CLICK_RATE = 0.3
CHUNK = 65_536
SEED = 7


@dataclass(frozen=True)
class ClickBatches:
    """Batches of single-valued features.

    Attributes:
        ids: `int64`, shape `(batches, BATCH, features)`.
        labels: `float32` 0 or 1, shape `(batches, BATCH, 1)`.
    """

    ids: NDArray[np.int64]
    labels: NDArray[np.float32]


@dataclass(frozen=True)
class Bags:
    """One batch of a multi-hot feature.

    Attributes:
        ids: `int64`, shape `(n,)`.
        row_splits: `int64`, shape `(BATCH + 1,)`, as in a ragged tensor.
    """

    ids: NDArray[np.int64]
    row_splits: NDArray[np.int64]


def spread(space: int, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Maps ranks of a key space to keys all over the 63-bit integers.

    The mix is the finalizer of SplitMix64, a bijection of 64 bits, less the
    lowest bit of its result.

    Args:
        space: Number of the key space (a feature has its own).
        ranks: Ranks from 0, any shape.

    Returns:
        Non-negative keys of the same shape.
    """
    mixed = ranks.astype(np.uint64) + np.uint64(space << 32)
    with np.errstate(over="ignore"):
        mixed += np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(1)).astype(np.int64)


def key_chunks(space: int, count: int) -> Iterator[NDArray[np.int64]]:
    """Yields the keys of ranks `[0, count)` in chunks, to fill a table."""
    for start in range(0, count, CHUNK):
        stop = min(start + CHUNK, count)
        yield spread(space, np.arange(start, stop))


def clicks(
    keys: int, *, features: int = FEATURES, batches: int, uniform: bool = False
) -> ClickBatches:
    """Draws click batches; feature `f` uses key space `f`.

    Args:
        keys: Keys of each feature.
        features: Number of features.
        batches: Number of batches.
        uniform: Draw all keys alike instead of by the Zipf law, so that the
            number of distinct keys in a batch hardly depends on `keys`.

    Returns:
        The batches.
    """
    random = np.random.default_rng([SEED, keys, int(uniform)])
    draws = random.random((features, batches, BATCH))
    ranks = (draws * keys).astype(np.int64) if uniform else _zipf(draws, keys)
    ids = np.stack([spread(f, ranks[f]) for f in range(features)], axis=-1)
    labels = random.random((batches, BATCH, 1)) < CLICK_RATE
    return ClickBatches(ids, labels.astype(np.float32))


def bags(keys: int, *, batches: int) -> list[Bags]:
    """Draws batches of bags with a Poisson number of ids, at least one."""
    random = np.random.default_rng([SEED, keys])
    drawn = []
    for _ in range(batches):
        lengths = np.maximum(random.poisson(MEAN_BAG, BATCH), 1)
        splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        ranks = _zipf(random.random(splits[-1]), keys)
        drawn.append(Bags(spread(BAG_SPACE, ranks), splits))
    return drawn


def _zipf(draws: NDArray[np.float64], keys: int) -> NDArray[np.int64]:
    """Turns uniform draws into ranks with P(r) ~ (r + 1) ** -exponent."""
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -ZIPF_EXPONENT
    cumulative = np.cumsum(weights)
    ranks = np.searchsorted(cumulative / cumulative[-1], draws)
    return np.minimum(ranks, keys - 1).astype(np.int64)
