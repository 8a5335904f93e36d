"""plan_of: what a layer is to look up, and what it gives for that."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from embedra.lookup import Request, to_bags, without_padding


class Plan(NamedTuple):
    """A call of a layer, but for its lookup.

    Attributes:
        layer: The `Embedding`.
        request: What to look up.
        restore: Gives rows the structure of the ids.
    """

    layer: Any
    request: Request
    restore: Callable[[tf.Tensor], Any]

    def finish(self, rows: tf.Tensor) -> Any:
        """Returns what the layer's call does.

        Args:
            rows: As they were looked up.

        Returns:
            Rows of the layer's compute dtype.
        """
        layer, request = self.layer, self.request
        if layer.embeddings_regularizer is not None and request.insert:
            layer.add_loss(
                request.reader.penalty(
                    request.keys, layer.embeddings_regularizer
                )
            )
        return self.restore(tf.cast(rows, layer.compute_dtype))


def plan_of(layer: Any, ids: Any, weights: Any, training: bool | None) -> Plan:
    """Plans a call of an `Embedding`.

    Args:
        layer: The layer.
        ids: As its `call` takes them.
        weights: As its `call` takes them.
        training: As its `call` takes it.

    Returns:
        The plan.

    Raises:
        ValueError: If `weights` or sparse ids come without a combiner.
    """
    insert = None if training is None else bool(training)
    if not layer.trainable:
        insert = False
    if layer.combiner is not None:
        return _pooled(layer, ids, weights, insert)
    _check_needs_no_combiner(layer, ids, weights)
    if isinstance(ids, tf.RaggedTensor):
        keys = layer.reader.keys(ids.flat_values, insert)
        request = Request(layer.reader, keys, insert)
        return Plan(layer, request, ids.with_flat_values)
    request = Request(layer.reader, layer.reader.keys(ids, insert), insert)
    return Plan(layer, request, lambda rows: rows)


def _pooled(layer: Any, ids: Any, weights: Any, insert: bool | None) -> Plan:
    bags = to_bags(ids, weights, layer.owner)
    if layer.mask_zero:
        bags = without_padding(bags)
    request = Request(
        layer.reader,
        layer.reader.keys(bags.ids, insert),
        insert,
        layer.combiner,
        bags.row_splits,
        bags.weights,
    )
    return Plan(layer, request, bags.restore)


def _check_needs_no_combiner(layer: Any, ids: Any, weights: Any) -> None:
    if weights is not None:
        msg = (
            f"{layer.owner} was given `weights`, but has no combiner to use "
            'them. Set combiner="sum", "mean" or "sqrtn".'
        )
        raise ValueError(msg)
    if isinstance(ids, tf.SparseTensor):
        msg = (
            f"{layer.owner} was given sparse ids, but has no combiner. Set "
            'combiner="sum", "mean" or "sqrtn", or pass '
            "tf.RaggedTensor.from_sparse(ids)."
        )
        raise ValueError(msg)
