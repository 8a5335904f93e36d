"""A run of decoded rows, the unit in which readers work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Block:
    """Some rows of a click log.

    Attributes:
        numeric: float32, shape `[rows, numeric columns]`; NaN is a missing
            value.
        categorical: Ids, int64, shape `[rows, categorical columns]`.
        labels: 0 or 1, float32, shape `[rows]`.
    """

    numeric: npt.NDArray[np.float32]
    categorical: npt.NDArray[np.int64]
    labels: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: npt.NDArray[np.intp] | slice) -> Block:
        """The rows at an index array or slice, in that order."""
        return Block(
            self.numeric[rows], self.categorical[rows], self.labels[rows]
        )

    @staticmethod
    def concatenate(blocks: Sequence[Block]) -> Block:
        """All rows of some blocks with the same columns, in order."""
        return Block(
            np.concatenate([block.numeric for block in blocks]),
            np.concatenate([block.categorical for block in blocks]),
            np.concatenate([block.labels for block in blocks]),
        )
