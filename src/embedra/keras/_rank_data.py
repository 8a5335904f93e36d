"""Data of a rank, which go on with batches of no rows when they have ended."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from embedra.distribute import Communicator


_NONE = tf.type_spec_from_value(None)


class RankBatch(NamedTuple):
    """A batch of one rank.

    Attributes:
        present: Whether it is of the data; else they have ended before.
        batch: The batch, or one of no rows.
    """

    present: Any
    batch: Any


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
    # Datasets unpack plain tuples, also those of one.
    is_tuple = type(data.element_spec) is tuple

    @tf.autograph.experimental.do_not_convert
    def present(*parts: Any) -> RankBatch:
        batch = parts if is_tuple else parts[0]
        return RankBatch(tf.constant(True), _without_optionals(batch))

    own = data.map(present)
    structure = own.element_spec.batch

    @tf.autograph.experimental.do_not_convert
    def absent(_: Any) -> RankBatch:
        return RankBatch(tf.constant(False), empty_batch(structure))

    padding = tf.data.Dataset.from_tensors(0).map(absent).repeat()
    unknown, longest = communicator.all_reduce(
        tf.constant([batches is None, batches or 0], tf.int64),
        "max",
        label="number of batches",
    ).numpy()
    padded = own.concatenate(padding)
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


def _without_optionals(batch: Any) -> Any:
    """Has None in a batch for what Keras puts in the place of None."""
    return tf.nest.map_structure(
        lambda leaf: (
            None if isinstance(leaf, tf.experimental.Optional) else leaf
        ),
        batch,
    )


def batch_spec(iterator: tf.data.Iterator) -> Any:
    """Returns the specs of the batches that a model is given.

    Args:
        iterator: Over data of any kind.
    """
    spec = iterator.element_spec
    if not isinstance(spec, RankBatch):
        return spec
    return tf.nest.map_structure(
        lambda part: None if is_none(part) else part, spec.batch
    )


def empty_batch(structure: Any) -> Any:
    """Returns a batch of no rows.

    Args:
        structure: Specs of a batch.

    Returns:
        Tensors, of those specs but for the number of rows.

    Raises:
        TypeError: If one is of a kind of which nothing is known.
    """
    return tf.nest.map_structure(_empty, structure)


def _empty(spec: Any) -> Any:
    if isinstance(spec, tf.RaggedTensorSpec) and spec.shape.rank is not None:
        values = tf.zeros(_sizes(spec.shape[spec.ragged_rank :]), spec.dtype)
        ragged = values
        for _ in range(spec.ragged_rank):
            splits = tf.zeros([1], spec.row_splits_dtype)
            ragged = tf.RaggedTensor.from_row_splits(
                ragged, splits, validate=False
            )
        return ragged
    if isinstance(spec, tf.SparseTensorSpec) and spec.shape.rank is not None:
        return tf.SparseTensor(
            tf.zeros([0, spec.shape.rank], tf.int64),
            tf.zeros([0], spec.dtype),
            tf.constant(_sizes(spec.shape), tf.int64),
        )
    if isinstance(spec, tf.TensorSpec) and spec.shape.rank is not None:
        return tf.zeros(_sizes(spec.shape), spec.dtype)
    if is_none(spec):
        return None
    msg = (
        "With several ranks, one whose data have ended takes part with batches "
        f"of no rows, but it is not known what that is for {spec}. Give data "
        "of dense, ragged or sparse tensors, of a known number of dimensions."
    )
    raise TypeError(msg)


def is_none(spec: Any) -> bool:
    """Whether a spec is that of None, for which there is no public name.

    Args:
        spec: A spec.
    """
    return isinstance(spec, type(_NONE))


def _sizes(shape: Any) -> list[int]:
    """Sizes of no rows. One of 0 within a row would not let it be reshaped."""
    sizes = shape.as_list()
    return [0, *(size or 1 for size in sizes[1:])] if sizes else []


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
