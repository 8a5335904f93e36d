"""Lookups that combine rows: embedding_lookup_sparse and its safe form."""

from typing import Any

import tensorflow as tf

from embedra import table as table_lib
from embedra.lookup import Bags, kept_of, to_bags

from ._lookup import trainable_for
from ._pooling import COMBINERS, fill_empty, has_weights, pool
from ._trainable import TrainableWrapper, as_returned
from ._variable import Variable


def embedding_lookup_sparse(
    params: Variable,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: Any = None,
    name: str | None = "embedding_lookup_sparse",
    combiner: str = "mean",
    max_norm: float | None = None,
    return_trainable: bool = False,
) -> Any:
    """Looks up rows and combines those of each row of sparse or ragged ids.

    It is `tf.nn.embedding_lookup_sparse`, except that all ids are valid, and
    that there is a row for each row of `sp_ids`, zeros where that has no ids.

    Args:
        params: The variable, or a `de.shadow_ops.ShadowVariable` of one.
        sp_ids: `tf.SparseTensor` in row-major order, of which all dimensions
            but the first are combined; or `tf.RaggedTensor` (or a dense tensor
            of rank 2 or more), of which the last dimension is.
        sp_weights: Weights, of the structure of the ids, or None.
        partition_strategy: Unused: the variable has its `partitioner`.
        name: Name of the lookup. Lookups of one name have one trainable.
        combiner: "sum" of the weighted rows, or that divided by the sum of the
            weights ("mean"), or by the root of the sum of their squares
            ("sqrtn").
        max_norm: Longest L2 norm of a row before it is combined, or None.
        return_trainable: Whether to also return what stands for the rows.

    Returns:
        Rows, shape `(rows of sp_ids, dim)`, of the variable's dtype, combined
        in float32; and, if asked for, the trainable.

    Raises:
        KeyDtypeError: If the ids are of a wrong dtype.
        ValueError: If the combiner is unknown, the ids are of too low a rank,
            or the weights have another structure.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> tag = de.Variable(dim=2, name="tag")
        >>> tag.upsert([7, 8], [[1.0, 2.0], [3.0, 4.0]])
        >>> ids = tf.SparseTensor([[0, 0], [0, 1]], [7, 8], [2, 2])
        >>> de.embedding_lookup_sparse(tag, ids, None).numpy().tolist()
        [[2.0, 3.0], [0.0, 0.0]]
    """
    del partition_strategy
    trainable = trainable_for(params, name)
    bags = _bags(trainable, sp_ids, sp_weights, combiner, fold=1)
    rows = bags.restore(pool(trainable, bags, combiner, max_norm))
    return (rows, as_returned(trainable)) if return_trainable else rows


def safe_embedding_lookup_sparse(
    embedding_weights: Variable,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: Any = None,
    name: str | None = "safe_embedding_lookup_sparse",
    partition_strategy: Any = None,
    max_norm: float | None = None,
    return_trainable: bool = False,
    mask_negative: bool = False,
) -> Any:
    """Looks up rows and combines them along the last dimension of the ids.

    It is `tf.nn.safe_embedding_lookup_sparse` for ids of which each is valid:
    ids whose weight is not positive are left out, unless the combiner is "sum",
    and what is left without ids gets the row of `default_id`, or zeros.

    Args:
        embedding_weights: The variable, or a `de.shadow_ops.ShadowVariable`.
        sparse_ids: `tf.SparseTensor` of any rank in row-major order,
            `tf.RaggedTensor`, or a dense tensor of rank 2 or more.
        sparse_weights: Weights, of the structure of the ids, or None.
        combiner: "sum", "mean" or "sqrtn"; see `embedding_lookup_sparse`.
        default_id: Id whose row stands where there are no ids, or None.
        name: Name of the lookup. Lookups of one name have one trainable.
        partition_strategy: Unused.
        max_norm: Longest L2 norm of a row before it is combined, or None.
        return_trainable: Whether to also return what stands for the rows.
        mask_negative: Whether negative ids are left out, as TensorFlow does.
            Here, as in TFRA, they are ids like any other: hashes often are.

    Returns:
        Rows, shape `sparse_ids.shape[:-1] + (dim,)`; and, if asked for, the
        trainable.

    Raises:
        KeyDtypeError: If the ids are of a wrong dtype.
        ValueError: If the combiner is unknown, the ids are of too low a rank,
            or the weights have another structure.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> tag = de.Variable(dim=2, name="tag")
        >>> tag.upsert([0, 7], [[1.0, 2.0], [3.0, 4.0]])
        >>> ids = tf.SparseTensor([[1, 0], [2, 0]], [7, -1], [3, 2])
        >>> rows = de.safe_embedding_lookup_sparse(
        ...     tag, ids, default_id=0, mask_negative=True
        ... )
        >>> rows.numpy().tolist()
        [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]
    """
    del partition_strategy
    trainable = trainable_for(embedding_weights, name)
    ids, weights = sparse_ids, sparse_weights
    outer_shape = None
    if isinstance(ids, tf.SparseTensor) and ids.shape.rank != 2:
        outer_shape = ids.dense_shape[:-1]
    bags = _bags(trainable, ids, weights, combiner, fold=-1)
    if mask_negative and not _is_unsigned(sparse_ids):
        bags = kept_of(bags, bags.ids >= 0)
    if combiner != "sum" and has_weights(bags):
        bags = kept_of(bags, bags.weights > 0)
    if default_id is not None:
        key = tf.reshape(trainable.params.keys_of(default_id), (1,))
        bags = fill_empty(bags, key)
    rows = bags.restore(pool(trainable, bags, combiner, max_norm))
    if outer_shape is not None:
        dim = tf.constant([trainable.params.dim], outer_shape.dtype)
        rows = tf.reshape(rows, tf.concat([outer_shape, dim], axis=0))
        rows.set_shape(ids.shape[:-1].concatenate(trainable.params.dim))
    return (rows, as_returned(trainable)) if return_trainable else rows


def _bags(
    trainable: TrainableWrapper,
    ids: Any,
    weights: Any,
    combiner: str,
    *,
    fold: int,
) -> Bags:
    """Checks the arguments of a lookup, and groups its ids as keys.

    Args:
        trainable: What stands for the rows.
        ids: Ids as they were given.
        weights: Weights as they were given.
        combiner: Combiner as it was given.
        fold: Where the dimensions of sparse ids are parted: those before make a
            bag.

    Returns:
        Bags of keys.
    """
    variable = trainable.params
    if combiner not in COMBINERS:
        msg = (
            f"`combiner` of lookups in {variable!r} must be one of "
            f"{COMBINERS}. Received: {combiner!r}."
        )
        raise ValueError(msg)
    owner = repr(variable)
    ids = table_lib.to_tensor(ids, owner)
    is_dense = not isinstance(ids, tf.SparseTensor | tf.RaggedTensor)
    if is_dense and ids.shape.rank is not None and ids.shape.rank < 2:
        msg = (
            f"Lookups that combine rows of {variable!r} need sparse or ragged "
            "ids, or dense ones of rank 2 or more. Received: dense ids of "
            f"shape {tuple(ids.shape)}."
        )
        raise ValueError(msg)
    if is_dense and weights is not None:
        weights = tf.convert_to_tensor(weights)
    if isinstance(ids, tf.SparseTensor) and ids.shape.rank != 2:
        ids = _folded(ids, fold)
        if isinstance(weights, tf.SparseTensor):
            weights = _folded(weights, fold)
    bags = to_bags(ids, weights, owner)
    return bags._replace(ids=variable.keys_of(bags.ids))


def _folded(sparse: tf.SparseTensor, fold: int) -> tf.SparseTensor:
    """Makes a sparse tensor of any rank one of rank 2.

    Args:
        sparse: The tensor.
        fold: The dimensions before this one become the first, the others the
            second.
    """
    shape = sparse.dense_shape
    parts = [tf.reduce_prod(shape[:fold]), tf.reduce_prod(shape[fold:])]
    return tf.sparse.reshape(sparse, tf.stack(parts))


def _is_unsigned(ids: Any) -> bool:
    """Returns whether ids have no negative ones: unsigned, or strings."""
    dtype = tf.as_dtype(table_lib.to_tensor(ids).dtype)
    return bool(dtype.is_unsigned or dtype == tf.string)
