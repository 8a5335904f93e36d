"""embedding_lookup, on which all other lookups stand."""

from typing import Any

import tensorflow as tf

from ._mode import ModelMode, get_model_mode
from ._trainable import FunctionTrainable, TrainableWrapper, as_returned
from ._variable import Variable


def embedding_lookup(
    params: Variable,
    ids: Any,
    partition_strategy: Any = None,
    name: str | None = None,
    validate_indices: Any = None,
    max_norm: float | None = None,
    return_trainable: bool = False,
) -> Any:
    """Looks up rows, so that tapes and optimizers can train them.

    In train mode (see `de.enable_train_mode`) absent ids are created, if the
    variable is trainable; in inference mode they only read as the rows that
    they would start with. Repeated ids are one row: their gradients are summed.

    Args:
        params: The variable, or a `de.shadow_ops.ShadowVariable` of one.
        ids: Ids, dense or ragged, of any rank but 0: integers of any width, or
            strings.
        partition_strategy: Unused: the variable has its `partitioner`.
        name: Name of the lookup. Lookups of one name, and all those without,
            have one trainable.
        validate_indices: Unused: every id is valid.
        max_norm: Longest L2 norm of a row that is returned, or None.
        return_trainable: Whether to also return what stands for the rows.

    Returns:
        Rows, shape `ids.shape + (dim,)`; and, if asked for, the trainable, to
        be given to `tape.gradient` and `optimizer.apply_gradients`, inside of a
        `tf.function` or outside of it. Its gradient is None in inference mode,
        and if the variable is not trainable.

    Raises:
        KeyDtypeError: If the ids are of a wrong dtype.
        TypeError: If they are sparse.
        ValueError: If they are a scalar.

    Example:
        >>> import keras
        >>> import embedra.dynamic_embedding as de
        >>> user = de.Variable(dim=2, name="user")
        >>> optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(1.0))
        >>> with tf.GradientTape() as tape:
        ...     rows, trainable = de.embedding_lookup(
        ...         user, [7, 7], return_trainable=True
        ...     )
        ...     loss = tf.reduce_sum(rows)
        >>> gradients = tape.gradient(loss, [trainable])
        >>> _ = optimizer.apply_gradients(zip(gradients, [trainable]))
        >>> user.lookup([7]).numpy().tolist()
        [[-2.0, -2.0]]
    """
    del partition_strategy, validate_indices
    trainable = trainable_for(params, name)
    rows = lookup_rows(trainable, ids, max_norm=max_norm)
    return (rows, as_returned(trainable)) if return_trainable else rows


def embedding_lookup_unique(
    params: Variable,
    ids: Any,
    partition_strategy: Any = None,
    name: str | None = None,
    validate_indices: Any = None,
    max_norm: float | None = None,
    return_trainable: bool = False,
) -> Any:
    """Does what `embedding_lookup` does, in which repeated ids are one row.

    Args:
        params: The variable, or a `de.shadow_ops.ShadowVariable` of one.
        ids: Ids, dense or ragged, of any rank but 0.
        partition_strategy: Unused.
        name: Name of the lookup.
        validate_indices: Unused.
        max_norm: Longest L2 norm of a row that is returned, or None.
        return_trainable: Whether to also return what stands for the rows.

    Returns:
        As `embedding_lookup`.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> user = de.Variable(dim=2, name="user", initializer=0.5)
        >>> ids = tf.ragged.constant([[7, 8], [7]], dtype=tf.int64)
        >>> de.embedding_lookup_unique(user, ids).shape
        TensorShape([2, None, 2])
    """
    return embedding_lookup(
        params,
        ids,
        partition_strategy=partition_strategy,
        name=name,
        validate_indices=validate_indices,
        max_norm=max_norm,
        return_trainable=return_trainable,
    )


def trainable_for(params: Any, name: str | None) -> TrainableWrapper:
    """Returns what stands for the rows of a lookup.

    Args:
        params: As a lookup is given it: a variable, or what stands for its
            rows already.
        name: Name of the lookup.

    Raises:
        TypeError: If it is neither.
    """
    if isinstance(params, list | tuple) and len(params) == 1:
        params = params[0]
    if isinstance(params, FunctionTrainable):
        params = params.table_variable
    if isinstance(params, TrainableWrapper):
        return params
    return checked_variable(params).trainable_of(name)


def lookup_rows(
    trainable: TrainableWrapper, ids: Any, *, max_norm: float | None = None
) -> Any:
    """Looks up rows by what stands for them.

    Args:
        trainable: What stands for the rows.
        ids: Ids, dense or ragged, of any rank but 0.
        max_norm: Longest L2 norm of a row that is returned, or None for that
            of the trainable.

    Returns:
        Rows, shape `ids.shape + (dim,)`.

    Raises:
        TypeError: If the ids are sparse.
        ValueError: If they are a scalar.
    """
    variable = trainable.params
    if isinstance(ids, tf.RaggedTensor):
        flat = lookup_rows(trainable, ids.flat_values, max_norm=max_norm)
        return ids.with_flat_values(flat)
    if isinstance(ids, tf.SparseTensor):
        msg = (
            f"This lookup in {variable!r} needs dense or ragged ids. Received: "
            "a SparseTensor. Use de.embedding_lookup_sparse or "
            "de.safe_embedding_lookup_sparse."
        )
        raise TypeError(msg)
    keys = variable.keys_of(ids)
    if keys.shape.rank == 0:
        msg = (
            f"Lookups in {variable!r} need ids of rank 1 or more. Received: a "
            f"scalar, {ids!r}."
        )
        raise ValueError(msg)
    return clip_rows(
        rows_of_keys(trainable, keys), longest(trainable, max_norm)
    )


def rows_of_keys(trainable: TrainableWrapper, keys: tf.Tensor) -> tf.Tensor:
    """Reads rows, creating absent ones and recording a gradient in training.

    Args:
        trainable: What stands for the rows.
        keys: Keys, `int64`, any shape.

    Returns:
        Rows, shape `keys.shape + (dim,)`.
    """
    shards = trainable.params.shards
    reader = trainable.reader_of_ranks
    if reader is not None:
        return reader.rows(keys, insert=is_training(trainable))
    if is_training(trainable):
        rows: tf.Tensor = shards.lookup(keys, trainable, insert=True)
        return rows
    # No variable takes part, so that what is exported needs none.
    return shards.read(keys)[0]


def is_training(trainable: TrainableWrapper) -> bool:
    """Returns whether a lookup made now creates rows that will be trained.

    Args:
        trainable: What stands for the rows.
    """
    return trainable.trainable and get_model_mode() is ModelMode.TRAIN


def longest(
    trainable: TrainableWrapper, max_norm: float | None
) -> float | None:
    """Returns the longest norm of a lookup: its own, or the trainable's.

    Args:
        trainable: What stands for the rows.
        max_norm: As the lookup was given it.

    Raises:
        ValueError: If it is no norm.
    """
    max_norm = trainable.max_norm if max_norm is None else max_norm
    if isinstance(max_norm, int | float) and max_norm <= 0:
        msg = (
            f"`max_norm` of lookups in {trainable.params!r} must be positive. "
            f"Received: {max_norm}."
        )
        raise ValueError(msg)
    return max_norm


def clip_rows(rows: tf.Tensor, max_norm: float | None) -> tf.Tensor:
    """Shortens rows to an L2 norm.

    Args:
        rows: Rows, shape `(..., dim)`.
        max_norm: Longest norm, or None.

    Returns:
        The same, those that are longer scaled down.
    """
    if max_norm is None:
        return rows
    # Squares of float16 would overflow from 256 on.
    clipped = tf.clip_by_norm(tf.cast(rows, tf.float32), max_norm, axes=[-1])
    return tf.cast(clipped, rows.dtype)


def checked_variable(params: Any) -> Variable:
    """Returns the variable that a lookup is given, or raises TypeError."""
    if isinstance(params, list | tuple) and len(params) == 1:
        params = params[0]
    if isinstance(params, Variable):
        return params
    msg = (
        "Lookups need one de.Variable, which may itself be spread over devices."
        f" Received: {params!r}"
    )
    raise TypeError(msg)
