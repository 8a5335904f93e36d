"""The readers that a dataset is made of."""

from __future__ import annotations

from collections.abc import Iterator

import tensorflow as tf

from ._row_dataset import RowDataset


def set_epoch(data: tf.data.Dataset, epoch: int) -> bool:
    """Says with which epoch the next iteration over a dataset begins.

    A training that goes on in another process reads its rows in the order of
    that epoch then, as if it had not been broken.

    Args:
        data: A dataset made of readers of this package by any
            transformations, or of none.
        epoch: The epoch, from 0.

    Returns:
        Whether there is a reader among what it is made of.

    Example:
        >>> from embedra.data import read_table
        >>> set_epoch(read_table({"x": [1, 2]}).prefetch(1), 3)
        True
    """
    readers = list(_readers(data))
    for reader in readers:
        reader.epoch = epoch
    return bool(readers)


def _readers(data: tf.data.Dataset) -> Iterator[RowDataset]:
    if isinstance(data, RowDataset):
        yield data
        return
    # What TensorFlow asks of each class of datasets; it has no public name.
    for source in data._inputs():
        yield from _readers(source)
