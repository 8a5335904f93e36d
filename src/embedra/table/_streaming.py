"""Records of tables that ranks hold together, streamed to rank 0."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from embedra.distribute import Communicator, known_to_all

from ._group import TableGroup
from ._joint_state import JointState, joint_states
from ._planned_export import export_planned
from ._records import Records
from ._resource import CHUNK_SIZE
from ._saved_chunks import no_records
from ._state import TableHeader


_LABEL = "records of tables"


class StreamedState(NamedTuple):
    """The state of a table that ranks hold together, on its way to rank 0.

    Attributes:
        header: Describes the whole.
        pending: Keys and gradients of all ranks on rank 0, none on others.
        chunks: Records of all ranks on rank 0, none on others, which must go
            through it as well.
    """

    header: TableHeader
    pending: tuple[Any, Any]
    chunks: Iterator[Records]


def stream_state(
    group: TableGroup, communicator: Communicator
) -> StreamedState:
    """Sends the state of tables to rank 0, a chunk of all ranks at a time.

    All ranks must take part.

    Args:
        group: The tables.
        communicator: Of the ranks.

    Returns:
        The state.
    """
    size = max(1, CHUNK_SIZE // communicator.size)
    name = group.first.name
    state = joint_states({name: group}, communicator, size)[name]
    keys, gradients = map(tf.convert_to_tensor, state.pending)
    (keys,) = _send([keys], communicator)
    (gradients,) = _send([gradients], communicator)
    return StreamedState(
        state.header,
        (keys.numpy(), gradients.numpy()),
        _stream_records(group, state, communicator, size),
    )


def _stream_records(
    group: TableGroup, state: JointState, communicator: Communicator, size: int
) -> Iterator[Records]:
    counts = state.chunks[communicator.rank]
    own = itertools.chain.from_iterable(
        export_planned(table, count, size)
        for table, count in zip(group.tables, counts, strict=True)
    )
    nothing = no_records(state.header)
    for _ in range(max(map(sum, state.chunks))):
        received = _to_first(Records(*next(own, nothing)), communicator)
        if communicator.rank == 0:
            yield received


def _to_first(records: Records, communicator: Communicator) -> Records:
    integers = [records.keys, records.frequencies, records.last_steps]
    keys, frequencies, last_steps = _send(integers, communicator)
    (rows,) = _send([records.rows], communicator)
    slots: Any = tf.zeros((keys.shape[0], 0))
    if records.slots.shape[1]:
        (slots,) = _send([records.slots], communicator)
    columns = (keys, rows, slots, frequencies, last_steps)
    return Records(*(column.numpy() for column in columns))


def _send(columns: list[Any], communicator: Communicator) -> list[tf.Tensor]:
    splits = np.zeros((len(columns), communicator.size), np.int64)
    splits[:, 0] = [column.shape[0] for column in columns]
    with known_to_all():
        received, _ = communicator.all_to_all_v(
            columns, list(splits), label=_LABEL
        )
    return list(received)
