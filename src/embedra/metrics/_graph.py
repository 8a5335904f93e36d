"""Metrics of TF1 graphs: their variables and collections."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


_KEYS: Any = tf.compat.v1.GraphKeys


def check_graph(name: str, keras_name: str) -> None:
    """Raises when executing eagerly, where there are no update operations.

    Args:
        name: Of the metric.
        keras_name: Of the Keras metric to use instead.

    Raises:
        RuntimeError: Unless a graph is being built.
    """
    if tf.executing_eagerly():
        msg = (
            f"`embedra.metrics.{name}` gives operations of a TF1 graph. When "
            f"executing eagerly, use `{keras_name}`."
        )
        raise RuntimeError(msg)


def metric_variable(
    initial_value: tf.Tensor, name: str, shape: Any = None
) -> tf.Variable:
    """Makes a variable that is no part of the model.

    It is in the collections of local variables, which sessions initialize, and
    of metric variables. Metrics of several processes are merged by summing it.

    Args:
        initial_value: Its first value.
        name: Its name.
        shape: Its shape, if it is not that of the value.
    """
    return tf.compat.v1.Variable(
        initial_value,
        trainable=False,
        collections=[_KEYS.LOCAL_VARIABLES, _KEYS.METRIC_VARIABLES],
        name=name,
        use_resource=True,
        shape=shape,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.compat.v1.VariableAggregation.SUM,
    )


def collect(
    value: tf.Tensor,
    update: tf.Tensor,
    metrics_collections: Sequence[str] | None,
    updates_collections: Sequence[str] | None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Adds a metric to collections, and returns it.

    Args:
        value: Its value.
        update: Its update operation.
        metrics_collections: Collections of values.
        updates_collections: Collections of update operations.

    Raises:
        TypeError: If the collections are no lists.
    """
    for names, tensor in (
        (metrics_collections, value),
        (updates_collections, update),
    ):
        if names is not None and not isinstance(names, list | tuple):
            msg = f"Collections must be given as a list. Received: {names!r}."
            raise TypeError(msg)
        tf.compat.v1.add_to_collections(names or (), tensor)
    return value, update
