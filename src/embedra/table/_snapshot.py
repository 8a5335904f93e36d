"""Snapshots: what records were, in 16 bytes each, to tell later what changed.

Of each record a digest of its bytes is kept: row, slots, frequency and last
step. Whatever changes a record changes its digest, but for one change in about
2**64.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ._records import Records, Slot


Keys = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]

# Those of the last steps of MurmurHash3: they spread any bit over all others.
_FACTORS = np.array([0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53], np.uint64)
_WORD = 8


class Snapshot(NamedTuple):
    """What the records of a table were.

    Attributes:
        slots: The slots that they had.
        keys: All keys, ascending.
        digests: Of the record of each key, `uint64`.
    """

    slots: tuple[Slot, ...]
    keys: Keys
    digests: Digests

    def unchanged(self, keys: Keys, digests: Digests) -> npt.NDArray[np.bool_]:
        """Tells which records are as they were.

        Args:
            keys: Keys, shape `(n,)`.
            digests: Of their records, shape `(n,)`.

        Returns:
            Whether each is, shape `(n,)`.
        """
        places, found = find(self.keys, keys)
        found[found] = self.digests[places[found]] == digests[found]
        return found

    def gone(self, now: "Snapshot") -> Keys:
        """Returns the keys that are not there any more.

        Args:
            now: What the table is now.
        """
        return self.keys[~find(now.keys, self.keys)[1]]


class SnapshotBuilder:
    """Makes a snapshot of records that come chunk by chunk.

    Args:
        slots: The slots that they have.
    """

    def __init__(self, slots: tuple[Slot, ...]) -> None:
        self._slots = slots
        self._keys: list[Keys] = []
        self._digests: list[Digests] = []

    def add(self, records: Records) -> Digests:
        """Adds records.

        Args:
            records: Any number.

        Returns:
            Their digests, `uint64`, shape `(n,)`.
        """
        found = digests(records)
        self._keys.append(records.keys)
        self._digests.append(found)
        return found

    def build(self) -> Snapshot:
        """Returns the snapshot, and forgets what was added."""
        keys = np.concatenate([np.zeros(0, np.int64), *self._keys])
        found = np.concatenate([np.zeros(0, np.uint64), *self._digests])
        self._keys, self._digests = [], []
        keys, places = last_of_each(keys)
        return Snapshot(self._slots, keys, found[places])


def digests(records: Records) -> Digests:
    """Digests records; their keys take no part.

    Args:
        records: Any number, all columns whole.

    Returns:
        Digests, `uint64`, shape `(n,)`.
    """
    count = len(records.keys)
    if not count:
        return np.zeros(0, np.uint64)
    columns = [
        np.ascontiguousarray(column).reshape(count, -1).view(np.uint8)
        for column in records[1:]
    ]
    width = sum(column.shape[1] for column in columns)
    columns.append(np.zeros((count, -width % _WORD), np.uint8))
    words = np.concatenate(columns, axis=1).view(np.uint64)
    found = np.zeros(count, np.uint64)
    for word in np.ascontiguousarray(words.T):
        found ^= word
        found *= _FACTORS[0]
        found ^= found >> np.uint64(32)
        found *= _FACTORS[1]
        found ^= found >> np.uint64(29)
    return found


def find(
    known: Keys, keys: Keys
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Finds keys among those that are known.

    Args:
        known: Keys, ascending, each once.
        keys: Keys, shape `(n,)`.

    Returns:
        Of each key its place in `known`, and whether it is there.
    """
    places = np.searchsorted(known, keys)
    found = places < len(known)
    found[found] = known[places[found]] == keys[found]
    return places, found


def last_of_each(keys: Keys) -> tuple[Keys, npt.NDArray[Any]]:
    """Sorts keys, each once.

    Args:
        keys: Keys in any order; some may be there twice.

    Returns:
        The keys, ascending, and the last place of each in what was given.
    """
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    last = np.ones(len(keys), bool)
    last[:-1] = keys[1:] != keys[:-1]
    return keys[last], order[last]
