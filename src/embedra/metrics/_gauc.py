"""gauc, for TF1 graphs."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ._graph import check_graph, collect, metric_variable
from ._groups import ExampleStore, group_examples, grouped_auc


_STORES = "embedra/example_stores"


def gauc(
    labels: Any,
    predictions: Any,
    indicators: Any = None,
    metrics_collections: Sequence[str] | None = None,
    updates_collections: Sequence[str] | None = None,
    name: str | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the mean of the AUC of groups, over all examples of a group.

    See `embedra.metrics.GroupedAUC` for its definition. HybridBackend takes
    each run of one indicator in a batch for a group, and leaves out the first
    and the last one; here a group may be spread over batches, in any order.

    Args:
        labels: In [0, 1]; as many as predictions.
        predictions: Scores; within a group only their order counts.
        indicators: The group of each example, such as a user's id: integers or
            strings. By default all are of one group.
        metrics_collections: Collections that the value is added to.
        updates_collections: Collections that the update is added to.
        name: Of the variable scope.

    Returns:
        The value over all batches that were counted, a float32 scalar, which
        sorts all their examples (they are kept, 32 bytes each); and what counts
        a batch when it runs, and gives the value of that batch alone.

    Raises:
        RuntimeError: When executing eagerly.
        TypeError: If groups are neither integers nor strings.
        ValueError: If there are not as many labels or groups as predictions.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default():
        ...     value, update = gauc(
        ...         [0, 1, 1, 0], [0.1, 0.9, 0.2, 0.3], [7, 7, 8, 8]
        ...     )
        ...     with tf.compat.v1.Session() as session:
        ...         session.run(tf.compat.v1.local_variables_initializer())
        ...         _ = session.run(update)
        ...         float(session.run(value))
        0.5
    """
    check_graph("gauc", "embedra.metrics.GroupedAUC")
    with tf.compat.v1.variable_scope(name, "gauc"):
        batch = group_examples(labels, predictions, indicators, None)
        store = ExampleStore(metric_variable)
        tf.compat.v1.add_to_collection(_STORES, store)
        value = tf.cast(grouped_auc(store.read()), tf.float32, "value")
        with tf.control_dependencies([store.add(batch)]):
            update = tf.cast(grouped_auc(batch), tf.float32, "update_op")
    return collect(value, update, metrics_collections, updates_collections)


def example_stores() -> list[ExampleStore]:
    """Returns what metrics of the current TF1 graph keep examples in.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default():
        ...     _ = gauc([0, 1], [0.1, 0.9])
        ...     len(example_stores())
        1
    """
    return list(tf.compat.v1.get_collection(_STORES))
