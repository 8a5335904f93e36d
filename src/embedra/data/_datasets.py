"""HybridBackend's datasets that are made of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from embedra.scopes import context


class _DatasetOf(tf.data.Dataset):
    """A dataset that is another one, under a class of its own."""

    def __init__(self, data: tf.data.Dataset) -> None:
        self._data = data
        super().__init__(tf.data.experimental.to_variant(data))

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._data]

    @property
    def element_spec(self) -> Any:
        """Types and shapes of all tensors."""
        return self._data.element_spec


class RebatchDataset(_DatasetOf):
    """Rows in batches of another size; `rebatch` does the same.

    Args:
        input_dataset: A dataset of batches.
        batch_size: Rows of the new batches.
        min_batch_size: Taken for HybridBackend's signature; only the last
            batch may be smaller.
        fields: Taken for HybridBackend's signature; the dataset knows its
            own.
        drop_remainder: Whether to leave out a last, smaller batch.
        num_parallel_scans: Taken for HybridBackend's signature.

    Raises:
        ValueError: If `min_batch_size` is another than `batch_size`.

    Example:
        >>> data = RebatchDataset(tf.data.Dataset.range(5).batch(2), 3)
        >>> [batch.numpy().tolist() for batch in data]
        [[0, 1, 2], [3, 4]]
    """

    def __init__(
        self,
        input_dataset: tf.data.Dataset,
        batch_size: int,
        min_batch_size: int | None = None,
        fields: Sequence[Any] | None = None,
        drop_remainder: bool = False,
        num_parallel_scans: int = 1,
    ) -> None:
        del fields, num_parallel_scans
        if min_batch_size not in (None, batch_size):
            msg = (
                "All batches but the last have batch_size rows: leave "
                f"min_batch_size out. Received: batch_size={batch_size}, "
                f"min_batch_size={min_batch_size}."
            )
            raise ValueError(msg)
        super().__init__(
            input_dataset.rebatch(batch_size, drop_remainder=drop_remainder)
        )


class SyncReplicasDataset(_DatasetOf):
    """A dataset of which the end is the same on all ranks, in one process.

    In a job of several ranks it is not needed: `fit` of `embedra.keras.Model`,
    estimators, and iterators of `make_one_shot_iterator` in TF1 graphs go on,
    with batches without rows, until no rank has rows.

    Args:
        input_dataset: A dataset.
        world: Number of ranks; default: those of the job.
        rank: This rank; default: that of this process.

    Raises:
        NotImplementedError: If there are several ranks: an exchange within
            `tf.data` would be out of order with those of the training.
    """

    def __init__(
        self,
        input_dataset: tf.data.Dataset,
        world: int | None = None,
        rank: int | None = None,
    ) -> None:
        del rank
        ranks = context.world_size if world is None else world
        if ranks > 1:
            msg = (
                f"SyncReplicasDataset is for one rank; there are {ranks}. "
                "Give the dataset itself to `fit` of embedra.keras.Model, an "
                "estimator, or `make_one_shot_iterator` in a TF1 graph, which "
                "agree on its end at each step; in a loop of your own, have "
                "all ranks take as many steps, as `dataset.take(steps)`."
            )
            raise NotImplementedError(msg)
        super().__init__(input_dataset)
