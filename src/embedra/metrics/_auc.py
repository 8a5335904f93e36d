"""auc, for TF1 graphs."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ._curves import area, check_curve, histogram
from ._graph import check_graph, collect, metric_variable
from ._inputs import Examples, examples, within_0_and_1


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Sequence[str] | None = None,
    updates_collections: Sequence[str] | None = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the area under a curve, over batches.

    The numbers are those of `tf.compat.v1.metrics.auc`. Counts are kept in
    float64, by which they stay exact however long the evaluation, and a batch
    costs the same for any number of thresholds.

    Args:
        labels: Not 0 where an example is positive; as many as predictions.
        predictions: Probabilities in [0, 1].
        weights: Of examples; one for each, or one for all. 1 by default.
        num_thresholds: How many thresholds the curve is made of.
        metrics_collections: Collections that the value is added to.
        updates_collections: Collections that the update is added to.
        curve: "ROC", or "PR" for precision and recall.
        name: Of the variable scope.
        summation_method: "trapezoidal"; "careful_interpolation", which is the
            right one for "PR"; or "minoring" or "majoring", for a lower and an
            upper bound.

    Returns:
        The value over all batches that were counted, a float32 scalar; and what
        counts a batch when it runs, and gives the value.

    Raises:
        RuntimeError: When executing eagerly.
        ValueError: If an argument is out of range.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default():
        ...     value, update = auc([0, 1, 0, 1], [0.1, 0.9, 0.6, 0.5])
        ...     with tf.compat.v1.Session() as session:
        ...         session.run(tf.compat.v1.local_variables_initializer())
        ...         float(round(session.run(update), 3))
        0.75
    """
    check_graph("auc", "embedra.metrics.AUC")
    check_curve(curve, summation_method, num_thresholds)
    with tf.compat.v1.variable_scope(name, "auc"):
        batch = examples(labels, predictions, weights)
        checked = within_0_and_1(batch.predictions)
        counts = metric_variable(
            tf.zeros((2, num_thresholds + 1), tf.float64), "counts"
        )

        def value_of(tensor: tf.Tensor, name: str) -> tf.Tensor:
            found = area(tensor, curve, summation_method)
            return tf.cast(found, tf.float32, name)

        added = counts.assign_add(
            histogram(
                Examples(batch.labels, checked, batch.weights), num_thresholds
            ),
            read_value=False,
        )
        value = value_of(counts.value(), "value")
        with tf.control_dependencies([added]):
            update = value_of(counts.read_value(), "update_op")
    return collect(value, update, metrics_collections, updates_collections)
