"""read_whole: rows of tables that are here."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from embedra import _ops, table as table_lib


if TYPE_CHECKING:
    from ._requests import Request


def read_whole(requests: Sequence["Request"]) -> list[tf.Tensor]:
    """Reads rows of this process's tables, as few ops as can be.

    Args:
        requests: The features.

    Returns:
        See `look_up`.
    """
    alike: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, request in enumerate(requests):
        alike[_way(request, place)].append(place)
    found: list[tf.Tensor] = [None] * len(requests)
    for places in alike.values():
        together = [requests[place] for place in places]
        rows = _alone(*together) if len(together) == 1 else _joined(together)
        for place, each in zip(places, rows, strict=True):
            found[place] = each
    return found


def _way(request: "Request", place: int) -> Hashable:
    """Returns what requests have in common that one op can answer."""
    table = request.reader.table
    by_python = request.insert is None and table.initializer.function
    if by_python or table_lib.current_stand_in() is not None:
        return place
    return table.dtype, request.insert, request.combiner


def _alone(request: "Request") -> list[tf.Tensor]:
    reader, keys, insert, combiner, row_splits, weights = request
    if combiner is None:
        return [reader.own_rows(keys, insert)]
    return [reader.own_pooled(keys, row_splits, weights, insert, combiner)]


def _joined(requests: list["Request"]) -> list[tf.Tensor]:
    readers = [request.reader for request in requests]
    insert, combiner = requests[0].insert, requests[0].combiner
    tables = [reader.table.resource_handle for reader in readers]
    watched = [reader.watched_handle() for reader in readers]
    keys = [request.keys for request in requests]
    defaults = [reader.default_row() for reader in readers]
    settings: dict[str, Any] = {
        "dims": [reader.table.dim for reader in readers],
        "dtype": readers[0].table.dtype,
        "insert": bool(insert),
        "insert_in_gradient": insert is None,
    }
    if combiner is None:
        return _ops.table_lookup(
            tables, watched, keys, defaults, **settings
        ).rows
    return _ops.table_pooled_lookup(
        tables,
        watched,
        keys,
        [request.row_splits for request in requests],
        [request.weights for request in requests],
        defaults,
        combiner=combiner,
        **settings,
    ).pooled
