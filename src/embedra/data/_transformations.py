"""Datasets of batches made into others; for `tf.data.Dataset.apply`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf


Transformation = Callable[[tf.data.Dataset], tf.data.Dataset]


def to_sparse(num_parallel_calls: int | None = None) -> Transformation:
    """Makes ragged tensors sparse ones; others stay.

    Args:
        num_parallel_calls: As for `tf.data.Dataset.map`.

    Example:
        >>> from embedra.data import read_table
        >>> data = read_table({"ids": [[1], [2, 3]]}, batch_size=2)
        >>> next(iter(data.apply(to_sparse())))["ids"].values.numpy().tolist()
        [1, 2, 3]
    """
    return lambda data: data.map(
        sparse_batch, num_parallel_calls=num_parallel_calls
    )


def unbatch_and_to_sparse(
    num_parallel_calls: int | None = None,
) -> Transformation:
    """Makes single rows of batches, with sparse tensors for ragged ones.

    Args:
        num_parallel_calls: As for `tf.data.Dataset.map`.

    Example:
        >>> from embedra.data import read_table
        >>> data = read_table({"ids": [[1], [2, 3]]}, batch_size=2)
        >>> [
        ...     row["ids"].values.numpy().tolist()
        ...     for row in data.apply(unbatch_and_to_sparse())
        ... ]
        [[1], [2, 3]]
    """
    return lambda data: data.rebatch(1).map(
        sparse_row, num_parallel_calls=num_parallel_calls
    )


def parse(
    num_parallel_calls: int | None = None, pad: bool = False
) -> Transformation:
    """Makes ragged tensors dense if asked to.

    Batches of Embedra hold tensors already; this is the place where code for
    HybridBackend makes them.

    Args:
        num_parallel_calls: As for `tf.data.Dataset.map`.
        pad: Whether to pad each ragged tensor, with zeros or empty strings, to
            the longest list of the batch.
    """
    if not pad:
        return lambda data: data
    return lambda data: data.map(
        padded_batch, num_parallel_calls=num_parallel_calls
    )


def rebatch(
    batch_size: int,
    drop_remainder: bool = False,
    fields: Sequence[Any] | None = None,
) -> Transformation:
    """Puts rows into batches of another size; ragged and sparse ones too.

    Args:
        batch_size: Rows of the new batches.
        drop_remainder: Whether to leave out a last, smaller batch.
        fields: Taken for HybridBackend's signature; the dataset knows its
            own.
    """
    del fields
    return lambda data: data.rebatch(batch_size, drop_remainder=drop_remainder)


def deduplicate(
    key_idx_field_names: Sequence[str],
    value_field_names: Sequence[Sequence[str] | str],
    fields: Sequence[Any] | None = None,
) -> Transformation:
    """Expands samples of which common parts are stored once.

    A row of the file is a block of samples. An index column holds, for each
    sample of the block, the position of its value in the lists of value
    columns. All other columns hold a list with one entry for each sample.

    Args:
        key_idx_field_names: Names of the index columns; they are not in the
            result.
        value_field_names: For each of these, the names of its value columns.
        fields: Taken for HybridBackend's signature; the dataset knows its
            own.

    Returns:
        A transformation to batches with one row for each sample.

    Raises:
        ValueError: If there is not one entry of `value_field_names` for each
            index column.

    Example:
        >>> from embedra.data import read_table
        >>> data = read_table(
        ...     {
        ...         "user_at": [[0, 0, 1]],
        ...         "user": [[7, 9]],
        ...         "item": [[1, 2, 3]],
        ...     }
        ... )
        >>> data = data.apply(deduplicate(["user_at"], [["user"]]))
        >>> next(iter(data))["user"].numpy().tolist()
        [7, 7, 9]
    """
    del fields
    if len(key_idx_field_names) != len(value_field_names):
        msg = (
            "Expected one list of value columns for each index column. "
            f"Received: {len(key_idx_field_names)} index columns, "
            f"{len(value_field_names)} lists."
        )
        raise ValueError(msg)
    index_of = {
        name: index
        for index, names in zip(
            key_idx_field_names, value_field_names, strict=True
        )
        for name in ([names] if isinstance(names, str) else names)
    }

    def expand(batch: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: _expanded(
                tensor, batch[index_of[name]] if name in index_of else None
            )
            for name, tensor in batch.items()
            if name not in key_idx_field_names
        }

    return lambda data: data.map(expand)


def _expanded(tensor: Any, index: Any) -> Any:
    """One row for each sample of all blocks."""
    if index is not None:
        tensor = tf.gather(_ragged(tensor), _ragged(index), batch_dims=1)
    return _ragged(tensor).merge_dims(0, 1)


def _ragged(tensor: Any) -> tf.RaggedTensor:
    if isinstance(tensor, tf.RaggedTensor):
        return tensor
    return tf.RaggedTensor.from_tensor(tensor)


def sparse_batch(batch: Any) -> Any:
    """A batch with its ragged tensors as sparse ones."""
    return _map_ragged(lambda tensor: tensor.to_sparse(), batch)


def sparse_row(batch: Any) -> Any:
    """The row of a batch of one, with sparse tensors for ragged ones."""

    def row_of(tensor: Any) -> Any:
        if isinstance(tensor, tf.RaggedTensor):
            tensor = tensor.to_sparse()
        if isinstance(tensor, tf.SparseTensor):
            return tf.sparse.reshape(tensor, tensor.dense_shape[1:])
        return tensor[0]

    return tf.nest.map_structure(row_of, batch)


def padded_batch(batch: Any) -> Any:
    """A batch with its ragged tensors padded to dense ones."""
    return _map_ragged(lambda tensor: tensor.to_tensor(), batch)


def _map_ragged(change: Callable[[Any], Any], batch: Any) -> Any:
    return tf.nest.map_structure(
        lambda one: change(one) if isinstance(one, tf.RaggedTensor) else one,
        batch,
    )
