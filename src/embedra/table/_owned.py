"""Which records that a table is given are to be in it."""

from typing import Protocol

import tensorflow as tf

from embedra.distribute import Communicator, owned


class _Held(Protocol):
    """What ranks may hold together."""

    @property
    def communicator(self) -> Communicator | None:
        """Of the ranks; None if all is here."""


def own_records(
    table: _Held, keys: tf.Tensor, *columns: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """Leaves out keys that other ranks own, so that no key has two rows.

    Args:
        table: Where the records go.
        keys: Keys, `int64`, shape `(n,)`.
        *columns: Tensors with an element for each key.

    Returns:
        Keys and columns, all of them if the table is whole.
    """
    ranks = table.communicator
    if ranks is None or ranks.size == 1:
        return keys, *columns
    mask = owned(keys, ranks)
    return tuple(tf.boolean_mask(each, mask) for each in (keys, *columns))
