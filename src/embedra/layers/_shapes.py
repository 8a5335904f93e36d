"""Shapes of what the layer gives."""

from typing import Any

import keras


_Shape = tuple[int | None, ...]


def output_shape(input_shape: _Shape, dim: int, *, pools: bool) -> _Shape:
    """Returns the shape of the rows for ids of a shape.

    Args:
        input_shape: Of the ids.
        dim: Width of a row.
        pools: Whether the last dimension is pooled.

    Returns:
        The shape.
    """
    if pools and len(input_shape) > 1:
        return (*input_shape[:-1], dim)
    return (*input_shape, dim)


def output_spec(
    inputs: Any, dim: int, *, pools: bool, dtype: str
) -> keras.KerasTensor:
    """Describes the output for symbolic ids.

    Args:
        inputs: Symbolic ids.
        dim: Width of a row.
        pools: Whether the last dimension is pooled.
        dtype: Of the output.

    Returns:
        A symbolic tensor.
    """
    shape = output_shape(tuple(inputs.shape), dim, pools=pools)
    ragged = getattr(inputs, "ragged", False)
    if not ragged or (pools and len(inputs.shape) <= 2):
        return keras.KerasTensor(shape, dtype=dtype)
    rank = getattr(inputs, "ragged_rank", None)
    if rank is not None and pools and rank == len(inputs.shape) - 1:
        rank -= 1
    return keras.KerasTensor(shape, dtype=dtype, ragged=True, ragged_rank=rank)
