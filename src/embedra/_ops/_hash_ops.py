"""Op that gives each key of a set a slot of its own."""

from typing import NamedTuple

from embedra._typing import Tensor

from ._library import native_ops


class PerfectHash(NamedTuple):
    """A hash without collisions; see `csrc/embedra/core/perfect_hash.h`.

    Attributes:
        parameters: The multiplier of keys, that of buckets, the shift, and the
            number of slots, `int64`, shape `(4,)`.
        pilots: One for each bucket, `uint16`.
        slots: For each slot the key that it is of, `int64`. In vacant slots
            there is a key whose slot is another one.
    """

    parameters: Tensor
    pilots: Tensor
    slots: Tensor


def perfect_hash(keys: Tensor) -> PerfectHash:
    """Finds a hash that gives each key a slot of its own.

    Args:
        keys: Keys, `int64`, shape `(n,)`; repeats count once. At most 2^31.

    Returns:
        The hash.
    """
    return PerfectHash(*native_ops.embedra_perfect_hash(keys=keys))
