"""Data of a rank, which go on with batches of no rows when they have ended."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from embedra.distribute import (
    Communicator,
    RankBatch,
    is_none_spec,
    lasting_batches,
)


def is_rank_data(data: Any) -> bool:
    """Whether data are those that `rank_data` makes.

    Args:
        data: Anything.
    """
    return isinstance(data, tf.data.Dataset) and isinstance(
        data.element_spec, RankBatch
    )


def rank_data(
    data: tf.data.Dataset, batches: int | None, communicator: Communicator
) -> tf.data.Dataset:
    """Makes data last as long on all ranks. All of them must call it.

    Args:
        data: Batches of this rank.
        batches: How many they are; None if that is not known.
        communicator: Of the ranks.

    Returns:
        A dataset of `RankBatch`, with as many batches as the rank with most
        has; without end if that is not known before they are read.

    Raises:
        TypeError: If nothing is known of a batch of no rows.
    """
    padded = lasting_batches(data)
    unknown, longest = communicator.all_reduce(
        tf.constant([batches is None, batches or 0], tf.int64),
        "max",
        label="number of batches",
    ).numpy()
    return padded if unknown else padded.take(longest)


@contextlib.contextmanager
def ending(*steps: int | None) -> Iterator[None]:
    """Has Keras not warn that data end, unless so many steps were asked for.

    It does so wherever the number of batches is not known before, and here also
    where the last ones have no rows on any rank.

    Args:
        *steps: Of the epochs, as `fit` and the like were given them.
    """
    with warnings.catch_warnings():
        if all(number is None for number in steps):
            warnings.filterwarnings("ignore", "Your input ran out of data")
        yield


def batch_spec(iterator: tf.data.Iterator) -> Any:
    """Returns the specs of the batches that a model is given.

    Args:
        iterator: Over data of any kind.
    """
    spec = iterator.element_spec
    if not isinstance(spec, RankBatch):
        return spec
    return tf.nest.map_structure(
        lambda part: None if is_none_spec(part) else part, spec.batch
    )


def rows_of(batch: Any) -> int:
    """Returns how many rows a batch has: as Keras does, by its first tensor.

    Args:
        batch: A batch, of eager tensors or arrays.
    """
    leaf = next(part for part in tf.nest.flatten(batch) if part is not None)
    if isinstance(leaf, tf.RaggedTensor):
        return int(leaf.nrows())
    if isinstance(leaf, tf.SparseTensor):
        return int(leaf.dense_shape[0])
    shape = tuple(leaf.shape)
    return int(shape[0]) if shape else 1
