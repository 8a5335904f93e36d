"""RankIterator: the iterator of a rank in a TF1 graph that trains."""

from typing import Any

import tensorflow as tf

from embedra.distribute import (
    Communicator,
    graph_communicator,
    lasting_batches,
    rows_of_batch,
    set_graph_share,
)
from embedra.scopes import current_options


class RankIterator:
    """Gives batches until the data of all ranks have ended.

    Then each rank gets the end of data in the same step; ranks whose data end
    before get batches of no rows. Gradients of the graph are weighed by rows.

    Args:
        iterator: Over `lasting_batches`.
        ranks: The ranks of the job, which must all take their batches in the
            same steps.
    """

    def __init__(self, iterator: Any, ranks: Communicator) -> None:
        self._iterator = iterator
        self._ranks = ranks

    @property
    def element_spec(self) -> Any:
        """What `tf.data.Dataset.element_spec` is; any number of rows."""
        return self._iterator.element_spec.batch

    @property
    def initializer(self) -> Any:
        """The operation that starts the iterator."""
        return self._iterator.initializer

    def get_next(self, name: str | None = None) -> Any:
        """Returns the next batch.

        Args:
            name: Of the operation.
        """
        present, batch = self._iterator.get_next(name)
        present = tf.cast(present, tf.int64)
        rows = present * rows_of_batch(batch)
        all_rows, all_present = tf.unstack(
            self._ranks.all_reduce(
                tf.stack([rows, present]), label="rows of the batch"
            )
        )
        set_graph_share(
            tf.math.divide_no_nan(
                tf.cast(rows, tf.float32), tf.cast(all_rows, tf.float32)
            )
        )
        checked = tf.numpy_function(_check_not_ended, [all_present], tf.int64)
        with tf.control_dependencies([checked]):
            return tf.nest.map_structure(
                lambda x: None if x is None else tf.identity(x),
                batch,
                expand_composites=True,
            )


def rank_iterator(dataset: tf.data.Dataset, make: Any) -> Any:
    """Makes an iterator of TensorFlow 1 in a graph.

    Args:
        dataset: A dataset of batches.
        make: Makes an iterator of a dataset.

    Returns:
        The iterator; a `RankIterator` where ranks of a job train.
    """
    ranks = graph_communicator()
    if ranks is None or current_options().mode != "train":
        return make(dataset)
    return RankIterator(make(lasting_batches(dataset)), ranks)


def _check_not_ended(present: Any) -> Any:
    """Raises what TensorFlow takes for the end of data.

    Args:
        present: How many ranks still have data.
    """
    if not present:
        msg = "The data of all ranks have ended."
        raise StopIteration(msg)
    return present
