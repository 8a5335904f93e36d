"""GroupedAUC, for Keras 3."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import keras
import tensorflow as tf

from embedra.distribute import Communicator

from ._groups import (
    ExampleStore,
    GroupExamples,
    group_examples,
    grouped_auc,
)


@keras.saving.register_keras_serializable(package="embedra")
class GroupedAUC(keras.metrics.Metric):
    """Mean of the AUC of groups of examples, weighted by their size ("GAUC").

    A group is usually a user. Its AUC is the share of its pairs of a positive
    and a negative example in which the positive one has the higher prediction,
    with half a pair where both are the same. A group's weight is the number of
    its examples; groups that have only positive, or only negative examples,
    have no AUC and do not count. So defined by Zhu et al., "Optimized Cost per
    Click in Taobao Display Advertising", KDD 2017, and Zhou et al., "Deep
    Interest Network for Click-Through Rate Prediction", KDD 2018.

    The value is exact: all examples are kept until a reset, 32 bytes each, in
    the dtype float64.

    Args:
        name: Of the metric.
        dtype: Of the result.

    Example:
        >>> metric = GroupedAUC()
        >>> metric.update_state([0, 1], [0.1, 0.9], groups=["ann", "ann"])
        >>> metric.update_state([1, 0], [0.2, 0.3], groups=["bob", "bob"])
        >>> float(metric.result())
        0.5
    """

    def __init__(self, name: str = "gauc", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        # More is better, also to Keras's `mode="auto"`.
        self._direction = "up"
        with tf.init_scope():
            self._store = ExampleStore(_variable)

    def update_state(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> None:
        """Keeps a batch.

        Args:
            y_true: Labels in [0, 1].
            y_pred: Predictions of any range, as many.
            sample_weight: Of examples; one for each, or one for all.
            groups: The group of each example, integers or strings.

        Raises:
            TypeError: If groups are neither integers nor strings.
            ValueError: If there are no groups, or not as many.
        """
        if groups is None:
            msg = (
                f"Metric {self.name!r} needs the group of each example: call "
                "`update_state(labels, predictions, groups=...)`. Keras's "
                "`compile` has no way to hand it over."
            )
            raise ValueError(msg)
        self._store.add(group_examples(y_true, y_pred, groups, sample_weight))

    def merge_state(self, metrics: Iterable["GroupedAUC"]) -> None:
        """Keeps what other metrics keep, too.

        Args:
            metrics: The metrics.
        """
        for metric in metrics:
            self._store.add(metric._store.read())

    @contextlib.contextmanager
    def over_ranks(self, communicator: Communicator) -> Iterator[None]:
        """Keeps, for a while, what the metrics of all ranks keep.

        `fit` and `evaluate` of `embedra.keras.Model` read it so.

        Args:
            communicator: Of the ranks, all of which must call this.

        Yields:
            When it does. Afterwards it keeps what it did before.
        """
        own = self._store.read()
        of_all = GroupExamples(
            *(
                communicator.all_gather_v(part, label=self.name)[0]
                for part in own
            )
        )
        self._hold(of_all)
        try:
            yield
        finally:
            self._hold(own)

    def _hold(self, examples: GroupExamples) -> None:
        self._store.reset()
        self._store.add(examples)

    def result(self) -> tf.Tensor:
        """Returns the mean; 0 if no group has examples of both kinds."""
        return tf.cast(grouped_auc(self._store.read()), self.dtype)

    def reset_state(self) -> None:
        """Forgets all examples."""
        self._store.reset()


def _variable(initial_value: tf.Tensor, name: str, shape: Any) -> tf.Variable:
    return tf.Variable(initial_value, trainable=False, name=name, shape=shape)
