"""Ops that make tables."""

from collections.abc import Sequence

import tensorflow as tf

from embedra._typing import Tensor

from ._library import native_ops


def table(
    *,
    shared_name: str,
    name: str,
    dim: int,
    dtype: str = "float32",
    initializer: str = "constant",
    initializer_parameters: Sequence[float] = (0.0,),
    seed: int = 0,
    initial_capacity: int = 0,
    max_capacity: int = 0,
    eviction: str = "recency",
    container: str = "",
) -> Tensor:
    """Returns a handle to the table of a session, or device, by its name.

    The table is made when the op first runs. This is for TF1 graphs, whose
    tables outlive a call of `session.run`.

    Args:
        shared_name: What the session knows the table by.
        name: Name in messages; part of what initial rows are drawn from.
        dim: Width of a row.
        dtype: Dtype of the rows: "float32", "bfloat16" or "float16".
        initializer: "constant", "uniform", "normal" or "truncated_normal".
        initializer_parameters: One value, or one for each column; low and
            high; or mean and standard deviation.
        seed: Seed of the initial rows.
        initial_capacity: Keys to make room for up front.
        max_capacity: Keys to hold at most, 0 for no bound.
        eviction: Which keys a full table drops: "recency" or "frequency".
        container: The resource container.

    Returns:
        A scalar resource tensor. Running it fails if the session's table of
        that name has another dim or dtype.
    """
    return native_ops.embedra_table(
        container=container,
        shared_name=shared_name,
        table_name=name,
        dim=dim,
        dtype=tf.as_dtype(dtype),
        initializer=initializer,
        initializer_parameters=list(initializer_parameters),
        seed=seed,
        initial_capacity=initial_capacity,
        max_capacity=max_capacity,
        eviction=eviction,
    )


def anonymous_table(
    *,
    name: str,
    dim: int,
    dtype: str = "float32",
    initializer: str = "constant",
    initializer_parameters: Sequence[float] = (0.0,),
    seed: int = 0,
    initial_capacity: int = 0,
    max_capacity: int = 0,
    eviction: str = "recency",
) -> Tensor:
    """Makes a new table, which lives as long as its handle.

    Args:
        name: Name in messages; part of what initial rows are drawn from.
        dim: Width of a row.
        dtype: Dtype of the rows: "float32", "bfloat16" or "float16".
        initializer: "constant", "uniform", "normal" or "truncated_normal".
        initializer_parameters: One value, or one for each column; low and
            high; or mean and standard deviation.
        seed: Seed of the initial rows.
        initial_capacity: Keys to make room for up front.
        max_capacity: Keys to hold at most, 0 for no bound.
        eviction: Which keys a full table drops: "recency" or "frequency".

    Returns:
        A scalar resource tensor.
    """
    return native_ops.embedra_anonymous_table(
        table_name=name,
        dim=dim,
        dtype=tf.as_dtype(dtype),
        initializer=initializer,
        initializer_parameters=list(initializer_parameters),
        seed=seed,
        initial_capacity=initial_capacity,
        max_capacity=max_capacity,
        eviction=eviction,
    )


def table_close(table: Tensor) -> None:
    """Gives a table's memory back; every later use of it is an error.

    Args:
        table: An eager table handle.
    """
    native_ops.embedra_table_close(table=table)
