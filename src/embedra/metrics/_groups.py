"""AUC of each group of examples, exactly; and a store that examples grow in."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from embedra.distribute import Communicator

from ._inputs import check_as_many, examples


# A string's group is its hash; that two share one is as good as impossible.
_HASHES = 2**63 - 1


class GroupExamples(NamedTuple):
    """Examples and their groups.

    Attributes:
        groups: int64, shape `(n,)`.
        values: Prediction, weight as a positive, weight as a negative example;
            float64, shape `(n, 3)`.
    """

    groups: tf.Tensor
    values: tf.Tensor


def group_examples(
    labels: Any, predictions: Any, groups: Any, weights: Any
) -> GroupExamples:
    """Returns a batch as it is stored.

    Args:
        labels: In [0, 1]; booleans, or numbers.
        predictions: Scores of any range, as many.
        groups: Integers or strings, as many; None for one group of all.
        weights: As many, or one for all, or None for 1.

    Raises:
        TypeError: If groups are neither integers nor strings.
        ValueError: If there are not as many labels or groups as predictions.
    """
    found = examples(labels, predictions, weights)
    if groups is None:
        groups = tf.zeros_like(found.predictions, tf.int64)
    groups = tf.convert_to_tensor(groups)
    check_as_many("groups", groups, tf.convert_to_tensor(predictions))
    if groups.dtype == tf.string:
        groups = tf.strings.to_hash_bucket_fast(groups, _HASHES)
    elif not groups.dtype.is_integer:
        msg = (
            "Groups must be integers or strings. Received: groups of dtype "
            f"{groups.dtype.name}."
        )
        raise TypeError(msg)
    # Not those of `found`, which are float32: scores may differ by less.
    scores = tf.reshape(tf.cast(predictions, tf.float64), [-1])
    values = [
        tf.debugging.check_numerics(scores, "predictions"),
        found.weights * found.labels,
        found.weights * (1.0 - found.labels),
    ]
    return GroupExamples(
        tf.reshape(tf.cast(groups, tf.int64), [-1]), tf.stack(values, axis=1)
    )


def grouped_auc(given: GroupExamples) -> tf.Tensor:
    """Returns the mean of the AUC of groups, weighted by their size.

    Args:
        given: The examples.

    Returns:
        The mean, a float64 scalar; 0 if no group has examples of both kinds.
    """
    order = tf.argsort(given.values[:, 0], stable=True)
    # A stable sort keeps predictions in order within their group.
    order = tf.gather(
        order, tf.argsort(tf.gather(given.groups, order), stable=True)
    )
    groups = tf.gather(given.groups, order)
    values = tf.gather(given.values, order)
    new_group = _differs(groups)
    # Examples of a group whose predictions are the same.
    tie = tf.cumsum(tf.cast(new_group | _differs(values[:, 0]), tf.int32)) - 1
    group = tf.cumsum(tf.cast(new_group, tf.int32)) - 1
    of_ties = tf.math.segment_sum(values[:, 1:], tie)
    group_of_tie = tf.math.segment_max(group, tie)
    of_groups = tf.math.segment_sum(of_ties, group_of_tie)
    positives, negatives = of_ties[:, 0], of_ties[:, 1]
    before = tf.cumsum(negatives, exclusive=True) - tf.gather(
        tf.cumsum(of_groups[:, 1], exclusive=True), group_of_tie
    )
    # Each positive example wins against the negative ones before it, and half
    # against those of its own prediction.
    won = tf.math.segment_sum(
        positives * (before + negatives / 2.0), group_of_tie
    )
    pairs = of_groups[:, 0] * of_groups[:, 1]
    sizes = tf.where(pairs > 0, tf.reduce_sum(of_groups, axis=1), 0.0)
    total = tf.reduce_sum(sizes * tf.math.divide_no_nan(won, pairs))
    return tf.math.divide_no_nan(total, tf.reduce_sum(sizes))


def _differs(values: tf.Tensor) -> tf.Tensor:
    """Returns where a value is not the one before it; the first one is."""
    first = tf.ones_like(values[:1], tf.bool)
    # Not `!=`: in a TF1 graph that asks whether they are one tensor.
    return tf.concat([first, tf.not_equal(values[1:], values[:-1])], axis=0)


class ExampleStore:
    """Examples of all batches since a reset, in variables that double in size.

    Args:
        make_variable: Makes a variable, given its first value, its name and
            its shape.
    """

    def __init__(self, make_variable: Callable[..., tf.Variable]) -> None:
        self._size = make_variable(tf.constant(0, tf.int64), "size", None)
        self._groups = make_variable(
            tf.zeros([0], tf.int64), "groups", tf.TensorShape([None])
        )
        self._values = make_variable(
            tf.zeros([0, 3], tf.float64), "values", tf.TensorShape([None, 3])
        )

    @property
    def variables(self) -> list[tf.Variable]:
        """The variables."""
        return [self._size, self._groups, self._values]

    def add(self, batch: GroupExamples) -> tf.Operation:
        """Stores a batch.

        Args:
            batch: The examples.

        Returns:
            The operation, in a TF1 graph.
        """
        start = self._size.read_value()
        count = tf.size(batch.groups, tf.int64)
        capacity = tf.size(self._groups.read_value(), tf.int64)
        missing = start + count - capacity
        grown = tf.cond(
            missing > 0,
            lambda: self._grow(tf.maximum(missing, capacity)),
            lambda: tf.constant(value=False),
        )
        with tf.control_dependencies([grown]):
            where = tf.range(start, start + count)[:, tf.newaxis]
            written = [
                tf.raw_ops.ResourceScatterNdUpdate(
                    ref=variable.handle, indices=where, updates=column
                )
                for variable, column in zip(
                    (self._groups, self._values), batch, strict=True
                )
            ]
        with tf.control_dependencies([w for w in written if w is not None]):
            size = self._size.assign(start + count, read_value=False)
        return tf.group(*written, size)

    def _grow(self, by: tf.Tensor) -> tf.Tensor:
        by = tf.cast(by, tf.int32)
        grown = []
        for variable in (self._groups, self._values):
            value = variable.read_value()
            more = tf.zeros(
                tf.concat([[by], tf.shape(value)[1:]], 0), value.dtype
            )
            grown.append(
                variable.assign(tf.concat([value, more], 0), read_value=False)
            )
        with tf.control_dependencies([op for op in grown if op is not None]):
            return tf.constant(value=True)

    def read(self) -> GroupExamples:
        """Returns what is stored."""
        size = self._size.read_value()
        return GroupExamples(
            self._groups.read_value()[:size], self._values.read_value()[:size]
        )

    def gather(self, communicator: Communicator, label: str) -> tf.Operation:
        """Stores what all ranks do, in a TF1 graph. All of them must run it.

        Args:
            communicator: Of the ranks.
            label: Name in messages.

        Returns:
            The operation.
        """
        own = self.read()
        groups, _ = communicator.all_gather_v(own.groups, label=label)
        values, _ = communicator.all_gather_v(own.values, label=label)
        # What is stored is read before.
        with tf.control_dependencies([groups, values]):
            return tf.group(
                self._groups.assign(groups, read_value=False),
                self._values.assign(values, read_value=False),
                self._size.assign(tf.size(groups, tf.int64), read_value=False),
            )

    def reset(self) -> None:
        """Forgets all examples, and gives their memory back."""
        self._size.assign(0)
        self._groups.assign(tf.zeros([0], tf.int64))
        self._values.assign(tf.zeros([0, 3], tf.float64))
