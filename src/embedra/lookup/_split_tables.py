"""read_split: rows of tables that are split over the ranks of a job."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from embedra.distribute import Communicator, ShardedRead, sharded_reads

from ._combine import combine
from ._whole_tables import read_whole


if TYPE_CHECKING:
    from ._requests import Request


class _Part(NamedTuple):
    """All that a batch asks of one table.

    Attributes:
        keys: Those of one feature as they are; those of several, flat.
        asked: The features.
        places: Of the features among all.
    """

    keys: tf.Tensor
    asked: list["Request"]
    places: list[int]

    @property
    def first(self) -> "Request":
        """The request that speaks for all in what they have in common."""
        return self.asked[0]


def read_split(
    ranks: Communicator,
    requests: Sequence["Request"],
    num_groups: int,
    wire_dtype: str | None,
) -> list[tf.Tensor]:
    """Reads rows from the ranks that own them.

    Args:
        ranks: Those that hold the tables.
        requests: The features.
        num_groups: Into how many exchanges of rows they are divided.
        wire_dtype: What rows are sent as, or None for what readers say.

    Returns:
        See `look_up`.
    """
    groups = [
        group
        for alike in _by_wire(_by_table(requests), wire_dtype)
        for group in _dealt(alike, num_groups)
    ]
    answers = sharded_reads(
        ranks, [_sharded_read(group, wire_dtype) for group in groups]
    )
    found: list[tf.Tensor] = [None] * len(requests)
    for group, rows in zip(groups, answers, strict=True):
        for part, of_part in zip(group, rows, strict=True):
            for place, each in zip(
                part.places, _by_feature(part, of_part), strict=True
            ):
                found[place] = _pooled(requests[place], each)
    return found


def _by_table(requests: Sequence["Request"]) -> list[_Part]:
    """Joins features of one table, so that its keys are sent once each."""
    places: dict[Any, list[int]] = {}
    for place, request in enumerate(requests):
        key = id(request.reader), request.insert
        places.setdefault(key, []).append(place)
    parts = []
    for same in places.values():
        asked = [requests[place] for place in same]
        keys = asked[0].keys
        if len(asked) > 1:
            keys = tf.concat([tf.reshape(r.keys, (-1,)) for r in asked], 0)
        parts.append(_Part(keys, asked, same))
    return parts


def _by_wire(parts: list[_Part], wire_dtype: str | None) -> list[list[_Part]]:
    """Groups tables by the dtypes of rows and wire: an exchange has one."""
    groups: dict[Any, list[_Part]] = {}
    for part in parts:
        reader = part.first.reader
        key = reader.table.dtype, wire_dtype or reader.wire_dtype
        groups.setdefault(key, []).append(part)
    return list(groups.values())


def _dealt(parts: list[_Part], num_groups: int) -> list[list[_Part]]:
    """Divides tables into groups of about the same width."""
    groups: list[list[_Part]] = [[] for _ in range(num_groups)]
    widths = [0] * num_groups
    for part in parts:
        narrowest = widths.index(min(widths))
        groups[narrowest].append(part)
        widths[narrowest] += part.first.reader.table.dim
    return [group for group in groups if group]


def _sharded_read(group: list[_Part], wire_dtype: str | None) -> ShardedRead:
    def read_rows(here: list[tf.Tensor]) -> list[tf.Tensor]:
        return read_whole(
            [
                part.first._replace(
                    keys=part.first.reader.created(keys, part.first.insert),
                    combiner=None,
                )
                for part, keys in zip(group, here, strict=True)
            ]
        )

    reader = group[0].first.reader
    return ShardedRead(
        [part.keys for part in group],
        read_rows,
        wire_dtype or reader.wire_dtype,
        # Of all: a table must not get the keys of another.
        ", ".join(part.first.reader.table.name for part in group),
    )


def _by_feature(part: _Part, rows: tf.Tensor) -> list[tf.Tensor]:
    """Splits the rows of a table by the features that asked for them."""
    if len(part.asked) == 1:
        return [rows]
    dim = part.first.reader.table.dim
    keys = [request.keys for request in part.asked]
    return [
        tf.reshape(each, tf.concat([tf.shape(one), [dim]], 0))
        for each, one in zip(
            tf.split(rows, [tf.size(one) for one in keys]), keys, strict=True
        )
    ]


def _pooled(request: "Request", rows: tf.Tensor) -> tf.Tensor:
    if request.combiner is None:
        # Known as far as the keys' shape is.
        shape = request.keys.shape.concatenate([request.reader.table.dim])
        return tf.ensure_shape(rows, shape)
    return combine(
        tf.cast(rows, tf.float32),
        request.row_splits,
        request.weights,
        request.combiner,
    )
