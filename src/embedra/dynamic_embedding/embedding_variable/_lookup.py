"""Lookups of embedding variables, with the arguments of `tf.nn`."""

from typing import Any

import tensorflow as tf

from embedra.dynamic_embedding._pooling import (
    COMBINERS,
    fill_empty,
    has_weights,
)
from embedra.lookup import Bags, kept_of, to_bags

from ._variable import EmbeddingVariable


def embedding_lookup(
    params: EmbeddingVariable,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Any:
    """Looks up rows.

    Args:
        params: The variable.
        ids: Ids, dense or ragged, of any shape.
        partition_strategy: Unused.
        name: Name of the ops.
        validate_indices: Unused: every id is valid.
        max_norm: Longest L2 norm of a row that is returned, or None.

    Returns:
        Rows, shape `ids.shape + (dim,)`.

    Raises:
        KeyDtypeError: If the ids are of a wrong dtype.
        TypeError: If they are sparse.

    Example:
        >>> user = EmbeddingVariable("user", 2, initializer=0.5)
        >>> embedding_lookup(user, [7, 8]).numpy().tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    del partition_strategy, validate_indices
    if isinstance(ids, tf.SparseTensor):
        msg = (
            f"embedding_lookup of {params!r} needs dense or ragged ids. "
            "Received: a SparseTensor. Use embedding_lookup_sparse."
        )
        raise TypeError(msg)
    with tf.name_scope(name or "embedding_lookup"):
        if isinstance(ids, tf.RaggedTensor):
            flat = params.rows(ids.flat_values, max_norm=max_norm)
            return ids.with_flat_values(flat)
        return params.rows(ids, max_norm=max_norm)


def embedding_lookup_sparse(
    params: EmbeddingVariable,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: float | None = None,
) -> Any:
    """Looks up rows and combines those of each row of sparse or ragged ids.

    There is a row for each row of the ids, zeros where that has none.

    Args:
        params: The variable.
        sp_ids: Sparse ids in row-major order, or ragged ones.
        sp_weights: Weights, of the structure of the ids, or None.
        partition_strategy: Unused.
        name: Name of the ops.
        combiner: "sum", "mean" (by default) or "sqrtn".
        max_norm: Longest L2 norm of a row before it is combined, or None.

    Returns:
        Rows, shape `(rows of the ids, dim)`.

    Raises:
        KeyDtypeError: If the ids are of a wrong dtype.
        ValueError: If the combiner is unknown, or the weights have another
            structure.

    Example:
        >>> user = EmbeddingVariable("user", 2, initializer=0.5)
        >>> ids = tf.SparseTensor([[0, 0], [0, 1]], [7, 8], [2, 2])
        >>> embedding_lookup_sparse(user, ids, None).numpy().tolist()
        [[0.5, 0.5], [0.0, 0.0]]
    """
    del partition_strategy
    combiner = _checked_combiner(params, combiner)
    with tf.name_scope(name or "embedding_lookup_sparse"):
        bags = to_bags(sp_ids, sp_weights, repr(params))
        bags = bags._replace(ids=params.variable.keys_of(bags.ids))
        return _restored(params, bags, combiner, max_norm)


def safe_embedding_lookup_sparse(
    embedding_weights: EmbeddingVariable,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: Any = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Any:
    """Looks up rows and combines them along the last dimension of the ids.

    Negative ids are ids like any other; those whose weight is not positive are
    left out, unless the combiner is "sum", and what is left without ids gets
    the row of `default_id`, or zeros.

    Args:
        embedding_weights: The variable.
        sparse_ids: Sparse ids in row-major order, or ragged ones.
        sparse_weights: Weights, of the structure of the ids, or None.
        combiner: "sum", "mean" or "sqrtn".
        default_id: Id whose row stands where there are no ids, or None.
        name: Name of the ops.
        partition_strategy: Unused.
        max_norm: Longest L2 norm of a row before it is combined, or None.

    Returns:
        Rows, shape `sparse_ids.shape[:-1] + (dim,)`.

    Raises:
        KeyDtypeError: If the ids are of a wrong dtype.
        ValueError: If the combiner is unknown, or the weights have another
            structure.

    Example:
        >>> user = EmbeddingVariable("user", 2, initializer=0.5)
        >>> ids = tf.SparseTensor([[0, 0], [0, 1]], [7, 8], [2, 2])
        >>> rows = safe_embedding_lookup_sparse(user, ids, default_id=0)
        >>> rows.numpy().tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    del partition_strategy
    params = embedding_weights
    combiner = _checked_combiner(params, combiner)
    with tf.name_scope(name or "safe_embedding_lookup_sparse"):
        bags = to_bags(sparse_ids, sparse_weights, repr(params))
        if combiner != "sum" and has_weights(bags):
            bags = kept_of(bags, bags.weights > 0)
        bags = bags._replace(ids=params.variable.keys_of(bags.ids))
        if default_id is not None:
            default = params.variable.keys_of(default_id)
            bags = fill_empty(bags, tf.reshape(default, (1,)))
        return _restored(params, bags, combiner, max_norm)


def _restored(
    params: EmbeddingVariable,
    bags: Bags,
    combiner: str,
    max_norm: float | None,
) -> Any:
    pooled = params.pooled(bags, combiner, max_norm=max_norm)
    return bags.restore(tf.cast(pooled, params.dtype))


def _checked_combiner(params: EmbeddingVariable, combiner: str | None) -> str:
    combiner = combiner or "mean"
    if combiner in COMBINERS:
        return combiner
    msg = (
        f"`combiner` of a lookup in {params!r} must be one of {COMBINERS}. "
        f"Received: {combiner!r}."
    )
    raise ValueError(msg)
