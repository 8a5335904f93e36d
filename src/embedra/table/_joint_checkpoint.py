"""Tables that ranks hold together in checkpoints: each rank writes its part.

The parts lie beside each other, under the prefix of rank 0, and together are
what one process would have written: chunks are numbered through, and the
gradients that are pending are slices of one tensor. Rank 0 gives all of them
to TensorFlow, which merges them; the others give none.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator, gather_values, together

from ._group import TableGroup
from ._joint_state import JointState, joint_states
from ._planned_export import export_planned
from ._prefix_writer import PrefixWriter
from ._resource import CHUNK_SIZE
from ._saved_chunks import named


_LABEL = "saving tables"


def save_jointly(
    groups: Mapping[str, TableGroup],
    communicator: Communicator,
    file_prefix: tf.Tensor,
) -> list[tf.Tensor]:
    """Writes groups that ranks hold together; all ranks must take part.

    Args:
        groups: Groups by unique path; each is written as one table.
        communicator: Of the ranks.
        file_prefix: Where TensorFlow writes on this rank; another place than
            on all others.

    Returns:
        The prefixes written by all ranks on rank 0, none on others.

    Raises:
        RankError: On all ranks, if one of them failed. What was written is
            removed.
    """
    own_prefix = file_prefix.numpy().decode()
    prefix = f"{own_prefix}_rank{communicator.rank}"
    try:
        with together(communicator, _LABEL):
            given = gather_values(communicator, own_prefix, label=_LABEL)
            _check_places(given)
            prefix = f"{given[0]}_rank{communicator.rank}"
            states = joint_states(groups, communicator, CHUNK_SIZE)
            with PrefixWriter(prefix) as writer:
                for path, group in groups.items():
                    _write(writer, path, group, states[path], communicator.rank)
            own = [part.numpy().decode() for part in writer.prefixes]
            written = gather_values(communicator, own, label=_LABEL)
            if communicator.rank == 0:
                _check_visible(written)
    except BaseException:
        for file in tf.io.gfile.glob(f"{prefix}_*"):
            tf.io.gfile.remove(file)
        raise
    if communicator.rank != 0:
        return []
    return [tf.constant(part) for parts in written for part in parts]


def _check_places(prefixes: list[str]) -> None:
    if len(set(prefixes)) == len(prefixes):
        return
    msg = (
        "Ranks write checkpoints to the same place, where each would overwrite "
        f"what others write: {prefixes}. Write to what "
        "`with embedra.distribute.one_writer(path) as own_path:` gives, or "
        "use `embedra.checkpoint.CheckpointFolder`."
    )
    raise ValueError(msg)


def _check_visible(written: list[list[str]]) -> None:
    """Raises unless rank 0 sees the files of all ranks."""
    for rank, prefixes in enumerate(written):
        for prefix in prefixes:
            if not tf.io.gfile.exists(f"{prefix}.index"):
                msg = (
                    f"Rank 0 does not see {prefix}.index, which rank {rank} "
                    "has written. Checkpoints of tables that are split over "
                    "machines must go to a folder that all of them share."
                )
                raise FileNotFoundError(msg)


def _write(
    writer: PrefixWriter,
    path: str,
    group: TableGroup,
    state: JointState,
    rank: int,
) -> None:
    """Writes this rank's part of a group."""
    chunk = sum(map(sum, state.chunks[:rank]))
    for table, count in zip(group.tables, state.chunks[rank], strict=True):
        for columns in export_planned(table, count):
            writer.write(named(path, chunk, columns))
            chunk += 1
    _write_pending(writer, path, state, rank)
    if rank == 0:
        writer.write(
            {
                f"{path}/header": tf.constant(state.header.to_json()),
                f"{path}/chunks": tf.constant(
                    sum(map(sum, state.chunks)), tf.int64
                ),
            }
        )


def _write_pending(
    writer: PrefixWriter, path: str, state: JointState, rank: int
) -> None:
    """Writes this rank's slices of the gradients that are pending."""
    counts = state.pending_counts
    total, start, count = sum(counts), sum(counts[:rank]), counts[rank]
    keys, gradients = state.pending
    tensors: dict[str, Any] = {
        f"{path}/pending_keys": tf.constant(keys),
        f"{path}/pending_gradients": tf.constant(gradients),
    }
    if count:
        slices = (
            f"{total} {start},{count}",
            f"{total} {state.header.dim} {start},{count}:-",
        )
        writer.write(tensors, dict(zip(tensors, slices, strict=True)))
    elif total == 0 and rank == 0:
        writer.write(tensors)
