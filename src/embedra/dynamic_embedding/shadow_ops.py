"""Shadow variables: what stands for rows, made before a `tf.function`.

In Embedra the trainable of every lookup lives outside of functions, so that
`de.embedding_lookup(..., return_trainable=True)` is enough. The names are here
for programs that were written with them.
"""

import itertools
from typing import Any

import tensorflow as tf

from ._lookup import checked_variable, lookup_rows
from ._trainable import TrainableWrapper


__all__ = ["ShadowVariable", "embedding_lookup", "embedding_lookup_unique"]

_COUNT = itertools.count()


class ShadowVariable(TrainableWrapper):
    """Stands for the rows of lookups in a `de.Variable`.

    It holds neither rows nor ids, so that threads can share it.

    Args:
        params: The variable.
        name: Name of the lookups.
        max_norm: Longest L2 norm of a row that is returned, or None.
        trainable: Whether it is among the trainable variables.
        distribute_strategy: Unused.
        **kwargs: Unused.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> user = de.Variable(dim=2, name="user", initializer=1.0)
        >>> shadow = de.shadow_ops.ShadowVariable(user)
        >>> rows = de.shadow_ops.embedding_lookup(shadow, [7, 8])
        >>> rows.shape
        TensorShape([2, 2])
    """

    def __init__(
        self,
        params: Any,
        name: str = "ShadowVariable",
        max_norm: float | None = None,
        trainable: bool = True,
        distribute_strategy: Any = None,
        **kwargs: Any,
    ) -> None:
        del distribute_strategy, kwargs
        params = checked_variable(params)
        if name in params.trainable_store:
            name = f"{name}_{next(_COUNT)}"
        super().__init__(params, name, trainable=trainable, max_norm=max_norm)
        params.trainable_store[name] = self


def embedding_lookup(
    shadow: ShadowVariable,
    ids: Any,
    partition_strategy: Any = None,
    name: str | None = None,
    validate_indices: Any = None,
) -> tf.Tensor:
    """Looks up rows of a shadow's variable.

    Args:
        shadow: What stands for the rows.
        ids: Dense ids of any rank but 0.
        partition_strategy: Unused.
        name: Name of the ops.
        validate_indices: Unused.

    Returns:
        Rows, shape `ids.shape + (dim,)`.
    """
    del partition_strategy, validate_indices
    with tf.name_scope(name or "shadow_embedding_lookup"):
        return lookup_rows(shadow, ids)


def embedding_lookup_unique(
    shadow: ShadowVariable,
    ids: Any,
    embedding_size: int,
    with_unique: bool = True,
    name: str | None = None,
) -> Any:
    """Looks up rows of a shadow's variable, for dense or ragged ids.

    Args:
        shadow: What stands for the rows.
        ids: Ids.
        embedding_size: Width of a row.
        with_unique: Unused: repeated ids are always one row.
        name: Name of the ops.

    Returns:
        Rows, of the structure of the ids.

    Raises:
        ValueError: If `embedding_size` is not the width of a row.
    """
    del with_unique
    if embedding_size != shadow.params.dim:
        msg = (
            f"`embedding_size` is {embedding_size}, but rows of "
            f"{shadow.params!r} have width {shadow.params.dim}."
        )
        raise ValueError(msg)
    return embedding_lookup(shadow, ids, name=name)
