"""Rows for several ranks as blocks of equal length, and back."""

from collections.abc import Sequence

import tensorflow as tf

from embedra._typing import Tensor


def check_splits(
    values: Sequence[Tensor], splits: Sequence[Tensor], size: int
) -> tuple[Tensor, Tensor]:
    """Looks whether splits fit the rows that they are of.

    Args:
        values: Tensors.
        splits: For each how many rows go to each rank, `int64`.
        size: Number of ranks.

    Returns:
        The splits, shape `(len(values), size)`, zeros where they do not fit;
        and what is wrong, a string, empty if nothing is.
    """
    checked, problem = [], tf.constant("")
    for value, split in zip(values, splits, strict=True):
        if value.shape.rank == 0 or split.shape.rank not in (None, 1):
            message = (
                "`values` must have rows, and `splits` a number for each "
                f"rank. Received: values of shape {value.shape}, splits of "
                f"shape {split.shape}."
            )
            nothing = tf.zeros((len(values), size), tf.int64)
            return nothing, tf.constant(message)
        rows = tf.shape(value, out_type=tf.int64)[0]
        fits = (
            tf.equal(tf.size(split), size)
            & tf.reduce_all(split >= 0)
            & tf.equal(tf.reduce_sum(split), rows)
        )
        message = tf.strings.join(
            [
                "`splits` must have a number of rows for each of the ",
                f"{size} ranks, none negative, which add up to the ",
                tf.strings.format("{} rows given. Received: splits=", rows),
                tf.strings.format("{}.", split),
            ]
        )
        problem = tf.where(fits, problem, message)
        # Of the right shape also where they do not fit, for what comes next.
        safe = tf.pad(split[:size], [[0, size - tf.size(split[:size])]])
        checked.append(tf.reshape(tf.where(fits, safe, 0), (size,)))
    return tf.stack(checked), problem


def widths_of(values: Sequence[Tensor]) -> Tensor:
    """Returns how many numbers a row of each tensor has, `int64`.

    Args:
        values: Of rank 1 or more.
    """
    return tf.stack(
        [
            tf.reduce_prod(tf.shape(value, out_type=tf.int64)[1:])
            for value in values
        ]
    )


def pack(
    values: Sequence[Tensor], splits: Tensor, widths: Tensor, length: Tensor
) -> Tensor:
    """Puts together what goes to each rank.

    Args:
        values: Tensors of one dtype.
        splits: How many rows of each go to each rank, shape `(n, ranks)`.
        widths: Of the rows of each.
        length: Of a block.

    Returns:
        A block for each rank, padded with zeros, shape `(ranks, length)`.
    """
    parts = [
        tf.RaggedTensor.from_row_lengths(
            tf.reshape(value, (-1,)), splits[i] * widths[i], validate=False
        )
        for i, value in enumerate(values)
    ]
    return tf.concat(parts, axis=1).to_tensor(
        shape=tf.stack([tf.shape(splits, out_type=tf.int64)[1], length])
    )


def unpack(
    blocks: Tensor, counts: Tensor, widths: Tensor, like: Sequence[Tensor]
) -> list[Tensor]:
    """Takes apart what came from each rank.

    Args:
        blocks: One of each rank, shape `(ranks, length)`.
        counts: How many rows of each tensor a rank sent, shape `(ranks, n)`.
        widths: Of the rows of each.
        like: Tensors of the shapes of rows.

    Returns:
        The rows of each tensor, those of rank 0 first.
    """
    lengths = counts * widths
    flat = tf.RaggedTensor.from_tensor(
        blocks, lengths=tf.reduce_sum(lengths, axis=1)
    ).flat_values
    parts = tf.RaggedTensor.from_row_lengths(
        flat, tf.reshape(lengths, (-1,)), validate=False
    )
    places = tf.range(tf.shape(counts)[0]) * len(like)
    rows = []
    for i, value in enumerate(like):
        shape = tf.concat(
            [
                tf.reduce_sum(counts[:, i])[tf.newaxis],
                tf.shape(value, out_type=tf.int64)[1:],
            ],
            axis=0,
        )
        own = tf.gather(parts, places + i).flat_values
        part = tf.reshape(own, shape)
        if value.shape.rank is not None:
            part.set_shape([None, *value.shape[1:]])
        rows.append(part)
    return rows
