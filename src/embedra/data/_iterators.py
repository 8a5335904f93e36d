"""The iterators of TensorFlow 1, of which `get_next` gives symbolic tensors."""

from typing import Any

import tensorflow as tf

from ._rank_iterator import rank_iterator
from ._symbolic import SymbolicBatch


class SymbolicIterator:
    """Gives symbolic batches of a dataset; see `make_one_shot_iterator`.

    Args:
        dataset: A dataset of batches.
    """

    def __init__(self, dataset: tf.data.Dataset) -> None:
        self._dataset = dataset

    @property
    def element_spec(self) -> Any:
        """What `tf.data.Dataset.element_spec` is."""
        return self._dataset.element_spec

    @property
    def initializer(self) -> None:
        """What `tf.no_op()` is without a graph: there is nothing to run."""

    def get_next(self, name: str | None = None) -> Any:
        """Returns the next batch as symbolic tensors.

        Args:
            name: Unused.

        Returns:
            The structure of the dataset's elements, of Keras tensors. Those of
            one call belong together: a model is not made of tensors of several.
        """
        del name
        return SymbolicBatch(self._dataset).structure


class Iterator:
    """The next batch of an iterator, as HybridBackend prefetches it.

    Nothing is to be started: readers make batches ahead by themselves, and
    `tf.data.Dataset.prefetch` does for other datasets.

    Args:
        inputs: An iterator, or a structure of tensors.
        capacity: Taken for HybridBackend's signature.
        num_runners: Taken for HybridBackend's signature.
        num_takers: Taken for HybridBackend's signature.
        closed_exception_types: Must be left out.
        ignored_exception_types: Must be left out.

    Raises:
        ValueError: If types of exceptions are given.

    Example:
        >>> import numpy as np
        >>> data = tf.data.Dataset.from_tensor_slices(np.arange(4)).batch(2)
        >>> Iterator(make_one_shot_iterator(data)).get_next().shape
        (None,)
    """

    class Hook(tf.compat.v1.train.SessionRunHook):
        """A hook that does nothing, as there is nothing to start."""

    def __init__(
        self,
        inputs: Any,
        capacity: int = 1,
        num_runners: int = 1,
        num_takers: int = 1,
        closed_exception_types: Any = None,
        ignored_exception_types: Any = None,
    ) -> None:
        del capacity, num_runners, num_takers
        if closed_exception_types or ignored_exception_types:
            msg = (
                "Errors of data are dealt with where they are read: "
                'on_error="skip" of a reader, or '
                "tf.data.Dataset.ignore_errors(). Received: "
                f"closed_exception_types={closed_exception_types}, "
                f"ignored_exception_types={ignored_exception_types}."
            )
            raise ValueError(msg)
        # The same tensors each time, as in HybridBackend.
        self._next = inputs
        if hasattr(inputs, "get_next"):
            self._next = inputs.get_next()

    def get_next(self) -> Any:
        """Returns the tensors of the next batch."""
        return self._next


def make_one_shot_iterator(dataset: tf.data.Dataset) -> Any:
    """Makes an iterator of which `get_next` gives inputs for a Keras model.

    In TensorFlow 1 a model could be written on the tensors that an iterator
    gives. So it can with this one: they are Keras tensors that know their
    dataset, and `fit` of an `embedra.keras.Model` that is made of them trains
    on it. In a dict, tensors are called by their keys.

    In a graph of TensorFlow 1, under `tf.Graph().as_default()` or after
    `tf.compat.v1.disable_eager_execution()`, it is TensorFlow's own. Where the
    ranks of a job train in such graphs, it ends on all of them in the same
    step: those whose data end before get batches of no rows.

    Args:
        dataset: A dataset of batches, with dense, ragged or sparse tensors.

    Returns:
        The iterator.

    Example:
        >>> import keras
        >>> import numpy as np
        >>> import embedra as hb
        >>> arrays = ({"user": np.array([3, 5])}, np.array([[0.0], [1.0]]))
        >>> dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(2)
        >>> features, labels = make_one_shot_iterator(dataset).get_next()
        >>> features["user"].name, features["user"].dtype
        ('user', 'int64')
        >>> rows = hb.layers.Embedding(4)(features["user"])
        >>> model = hb.keras.Model([features], keras.layers.Dense(1)(rows))
        >>> model.compile("sgd", "mse", target_tensors=labels)
        >>> model.fit(epochs=2, verbose=0).epoch
        [0, 1]
    """
    if tf.executing_eagerly():
        return SymbolicIterator(dataset)
    return rank_iterator(dataset, tf.compat.v1.data.make_one_shot_iterator)


def make_initializable_iterator(
    dataset: tf.data.Dataset, shared_name: str | None = None
) -> Any:
    """Makes an iterator as `make_one_shot_iterator` does.

    Args:
        dataset: A dataset of batches, with dense, ragged or sparse tensors.
        shared_name: The name under which sessions share it, in a graph of
            TensorFlow 1.

    Returns:
        The iterator. Its `initializer` is None outside of such a graph.
    """
    if tf.executing_eagerly():
        return SymbolicIterator(dataset)

    def make(dataset: tf.data.Dataset) -> Any:
        return tf.compat.v1.data.make_initializable_iterator(
            dataset, shared_name
        )

    return rank_iterator(dataset, make)
