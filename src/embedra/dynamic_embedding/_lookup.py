"""embedding_lookup, on which all other lookups stand."""

from typing import Any

import tensorflow as tf

from ._mode import ModelMode, get_model_mode
from ._trainable import TrainableWrapper, as_returned
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
        params: The variable.
        ids: Dense ids of any rank but 0, integers of any width, or strings.
        partition_strategy: Unused: the variable has its `partitioner`.
        name: Name of the lookup. Lookups of one name, and all those without,
            have one trainable.
        validate_indices: Unused: every id is valid.
        max_norm: Longest L2 norm of a row that is returned, or None.
        return_trainable: Whether to also return what stands for the rows.

    Returns:
        Rows, shape `ids.shape + (dim,)`; and, if asked for, the trainable, to
        be given to `tape.gradient` and `optimizer.apply_gradients`, inside of a
        `tf.function` or outside of it.

    Raises:
        KeyDtypeError: If the ids are of a wrong dtype.
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
        >>> optimizer.apply_gradients(zip(gradients, [trainable]))
        >>> user.lookup([7]).numpy().tolist()
        [[-2.0, -2.0]]
    """
    del partition_strategy, validate_indices
    variable = checked_variable(params)
    trainable = variable.trainable_of(name)
    rows = lookup_rows(trainable, ids, max_norm=max_norm)
    return (rows, as_returned(trainable)) if return_trainable else rows


def lookup_rows(
    trainable: TrainableWrapper, ids: Any, *, max_norm: float | None = None
) -> tf.Tensor:
    """Looks up rows by what stands for them.

    Args:
        trainable: What stands for the rows.
        ids: Dense ids of any rank but 0.
        max_norm: Longest L2 norm of a row that is returned, or None.

    Returns:
        Rows, shape `ids.shape + (dim,)`.
    """
    variable = trainable.params
    keys = variable.keys_of(ids)
    if keys.shape.rank == 0:
        msg = (
            f"Lookups in {variable!r} need ids of rank 1 or more. Received: a "
            "scalar."
        )
        raise ValueError(msg)
    insert = variable.trainable and get_model_mode() is ModelMode.TRAIN
    rows = variable.shards.lookup(keys, trainable, insert=insert)
    return rows if max_norm is None else clip_rows(rows, max_norm)


def clip_rows(rows: tf.Tensor, max_norm: float) -> tf.Tensor:
    """Shortens rows to an L2 norm.

    Args:
        rows: Rows, shape `(..., dim)`.
        max_norm: Longest norm.

    Returns:
        The same, those that are longer scaled down.
    """
    return tf.clip_by_norm(rows, max_norm, axes=[-1])


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
