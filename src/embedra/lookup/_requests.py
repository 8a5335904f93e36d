"""look_up: rows for many features, by as few ops and exchanges as can be."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import tensorflow as tf

from embedra.distribute import Communicator

from ._split_tables import read_split
from ._whole_tables import read_whole


if TYPE_CHECKING:
    from ._reader import RowReader


class Request(NamedTuple):
    """Keys of a feature, and how their rows are read.

    Attributes:
        reader: Of the table.
        keys: As `RowReader.keys` gives them: of any shape, or, with a combiner,
            flat.
        insert: Whether absent keys are created: now, never, or (None) when a
            tape asks for their gradients.
        combiner: None, or how the rows of a bag become one.
        row_splits: Where bags begin and end, `int64`, shape `(bags + 1,)`.
        weights: `float32`, shape `(n,)`, or `(0,)` for none.
    """

    reader: "RowReader"
    keys: tf.Tensor
    insert: bool | None
    combiner: str | None = None
    row_splits: tf.Tensor | None = None
    weights: tf.Tensor | None = None


def look_up(
    requests: Sequence[Request],
    num_groups: int = 1,
    wire_dtype: str | None = None,
) -> list[tf.Tensor]:
    """Reads rows for many features.

    Tapes record it for the variables of the tables. Features that are read in
    one way are read together: if some have no gradient, that is then zeros.

    Args:
        requests: The features; in a job the same ones, in the same order, on
            all ranks.
        num_groups: Into how many exchanges of rows they are divided in a job.
        wire_dtype: What rows are sent as in a job; None for what their readers
            say.

    Returns:
        For each feature rows of the table's dtype, shape
        `keys.shape + (dim,)`; or, with a combiner, `float32`, shape
        `(bags, dim)`.
    """
    by_ranks: dict[Communicator | None, list[int]] = {}
    for place, request in enumerate(requests):
        by_ranks.setdefault(request.reader.ranks, []).append(place)
    found: list[tf.Tensor] = [None] * len(requests)
    for ranks, places in by_ranks.items():
        together = [requests[place] for place in places]
        if ranks is None:
            rows = read_whole(together)
        else:
            rows = read_split(ranks, together, num_groups, wire_dtype)
        for place, each in zip(places, rows, strict=True):
            found[place] = each
    return found
