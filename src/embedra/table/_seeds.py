"""The seed that a table draws first rows with."""

import hashlib
import random

from embedra import scopes

from ._initializers import InitializerSpec


def chosen_seed(
    seed: int | None, initializer: InitializerSpec, name: str
) -> int:
    """Returns the seed of a table.

    Args:
        seed: What the table was given, or None.
        initializer: Its seed counts next, and then that of the scope.
        name: Of the table. In a job of several ranks it gives the seed if
            nobody else does, as a key's first row must be the same whichever
            rank makes it.

    Returns:
        The seed.
    """
    for given in (seed, initializer.seed, scopes.current_options().seed):
        if given is not None:
            return int(given)
    if scopes.context.world_size > 1:
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        return int.from_bytes(digest) >> 2
    # Python's generator is the one that unseeded Keras initializers use.
    return random.getrandbits(62)
