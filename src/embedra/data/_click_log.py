"""A click log made of a known law, so that the best possible AUC is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from ._block import Block
from ._columns import Columns
from ._tensors import to_dataset


_LATENT = 4  # Width of the vectors behind the interaction of two features.


@dataclass(frozen=True)
class ClickLog:
    """An endless, reproducible stream of impressions and clicks.

    Ids of each categorical feature follow a power law over a vocabulary that
    exists from the start, and, for a share of the rows, over the ids born
    most recently: new ids appear all the time and old ones fade. Ids are
    spread over all 64 bits. The probability of a click is

        sigmoid(bias + sum_f w_f[id_f] + c . x + <u[id_0], v[id_1]>)

    with weights that are a pure function of the id, so nothing is stored.
    Any batch can be made without those before it.

    Args:
        seed: Seed of the law and of the rows.
        vocabulary_sizes: Number of ids at the start, one for each
            categorical feature.
        numeric_features: Number of standard normal features.
        exponent: Exponent of the power law, above 1.
        fresh_share: Share of the rows whose id of a feature is a recent one.
        growth: New ids of each feature in a million rows, as a share of its
            vocabulary at the start.

    Raises:
        ValueError: If there are fewer than two categorical features, or the
            exponent is not above 1.

    Example:
        >>> log = ClickLog(seed=1)
        >>> block, probabilities = log.batch(0, 1000)
        >>> block.categorical.shape, probabilities.shape
        ((1000, 6), (1000,))
    """

    seed: int = 0
    vocabulary_sizes: tuple[int, ...] = (
        20,
        500,
        5_000,
        20_000,
        100_000,
        1_000_000,
    )
    numeric_features: int = 4
    exponent: float = 1.3
    fresh_share: float = 0.1
    growth: float = 0.2

    def __post_init__(self) -> None:
        if len(self.vocabulary_sizes) < 2 or self.exponent <= 1:
            msg = (
                "A click log needs two or more vocabulary sizes and an "
                f"exponent above 1. Received: {self.vocabulary_sizes}, "
                f"exponent {self.exponent}."
            )
            raise ValueError(msg)

    @property
    def columns(self) -> Columns:
        """Names of the label and the features."""
        return Columns(
            "click",
            tuple(f"number_{i}" for i in range(self.numeric_features)),
            tuple(f"id_{i}" for i in range(len(self.vocabulary_sizes))),
        )

    def batch(
        self, index: int, batch_size: int
    ) -> tuple[Block, npt.NDArray[np.float64]]:
        """Makes the batch at a place in the stream.

        Args:
            index: Number of the batch, from 0.
            batch_size: Its rows. Batches of another size are other rows.

        Returns:
            The rows, and the true probability of a click for each, float64.
        """
        rng = np.random.default_rng((self.seed, index, batch_size))
        width = len(self.vocabulary_sizes)
        sizes = np.array(self.vocabulary_sizes, np.int64)
        age = index * batch_size / 1e6
        born = (sizes * self.growth * age).astype(np.int64)
        ranks = _power_law(
            rng.random((batch_size, width)),
            sizes.astype(np.float64),
            self.exponent,
        )
        # The newest id is the most popular of the recent ones.
        recent = sizes + born - 1 - ranks
        fresh = rng.random((batch_size, width)) < self.fresh_share
        fresh &= recent >= sizes
        features = np.arange(width, dtype=np.uint64)
        ids = _mix(
            np.where(fresh, recent, ranks).astype(np.uint64)
            + (features << np.uint64(40))
            + (np.uint64(self.seed) << np.uint64(48))
        )
        numbers = rng.standard_normal((batch_size, self.numeric_features))
        probabilities = 1 / (1 + np.exp(-self._logits(ids, numbers)))
        labels = rng.random(batch_size) < probabilities
        block = Block(
            numbers.astype(np.float32),
            ids.view(np.int64),
            labels.astype(np.float32),
        )
        return block, probabilities

    def dataset(
        self, batch_size: int, batches: int, first: int = 0
    ) -> tf.data.Dataset:
        """Some batches as a dataset of `(features, labels)`.

        Args:
            batch_size: Rows of each batch.
            batches: How many batches.
            first: Number of the first one.

        Returns:
            Features are a dict from column name to a `[batch]` tensor,
            float32 or int64; labels are `[batch]` float32.
        """

        def blocks() -> Iterator[Block]:
            for index in range(first, first + batches):
                yield self.batch(index, batch_size)[0]

        data = to_dataset(blocks, self.columns)
        return data.apply(tf.data.experimental.assert_cardinality(batches))

    def _logits(
        self,
        ids: npt.NDArray[np.uint64],
        numbers: npt.NDArray[np.float64],
    ) -> npt.NDArray[np.float64]:
        weights = np.random.default_rng(self.seed).standard_normal(
            self.numeric_features
        )
        weights *= 0.8 / max(float(np.linalg.norm(weights)), 1e-9)
        logits = -1.5 + numbers @ weights
        logits += 1.2 * _normal(ids, 0).sum(axis=1) / np.sqrt(ids.shape[1])
        for k in range(1, _LATENT + 1):
            logits += 0.4 * _normal(ids[:, 0], k) * _normal(ids[:, 1], k)
        return logits


def ideal_auc(probabilities: npt.NDArray[np.float64]) -> float:
    """The AUC to expect from one who knows the true probabilities.

    It is the chance that a random clicked row has a higher probability than
    a random row that is not clicked, over all labels that could have been
    drawn: no model does better on average.

    Args:
        probabilities: True probability of a click of each row, shape `[n]`.

    Returns:
        The expected AUC, in `[0.5, 1]`.

    Example:
        >>> ideal_auc(np.array([0.5, 0.5]))
        0.5
    """
    values, counts = np.unique(probabilities, return_counts=True)
    clicks = values * counts
    others = (1 - values) * counts
    below = np.cumsum(others) - others
    # Two rows of equal probability are ranked either way; one row has no
    # chance to be compared with itself, which is negligible.
    won = np.sum(clicks * (below + others / 2))
    return float(won / (clicks.sum() * others.sum()))


def _power_law(
    uniform: npt.NDArray[np.float64],
    sizes: npt.NDArray[np.float64],
    exponent: float,
) -> npt.NDArray[np.int64]:
    """Ranks in `[0, size)` with density falling as `rank ** -exponent`."""
    slope = 1 - exponent
    edge = (sizes + 1) ** slope
    ranks = (1 - uniform * (1 - edge)) ** (1 / slope) - 1
    return np.minimum(ranks, sizes - 1).astype(np.int64)


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A bijection that scatters 64-bit values (finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(
        0xBF58476D1CE4E5B9
    )
    values = (values ^ (values >> np.uint64(27))) * np.uint64(
        0x94D049BB133111EB
    )
    return values ^ (values >> np.uint64(31))


def _normal(
    ids: npt.NDArray[np.uint64], stream: int
) -> npt.NDArray[np.float64]:
    """About standard normal numbers that are a pure function of the ids."""
    bits = _mix(ids + np.uint64((stream + 1) * 0x9E3779B97F4A7C15 % 2**64))
    # The sum of four uniform numbers of 16 bits each, scaled to variance 1.
    parts = np.stack([bits >> np.uint64(16 * i) for i in range(4)])
    total = (parts & np.uint64(0xFFFF)).sum(axis=0) / 65536.0
    scaled: npt.NDArray[np.float64] = (total - 2.0) * np.sqrt(3.0)
    return scaled
