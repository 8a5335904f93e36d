"""Tables that ranks hold together in checkpoints: each rank writes its part.

The parts lie beside each other, under the prefix of rank 0, and together are
what one process would have written: chunks are numbered through, and the
gradients that are pending are slices of one tensor, as are the keys that are
gone in a delta. Rank 0 gives all of them to TensorFlow, which merges them; the
others give none.
"""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator, gather_values, together

from ._delta import TablePart
from ._group import TableGroup
from ._joint_state import JointState, joint_states
from ._planned_export import export_planned
from ._prefix_writer import PrefixWriter
from ._resource import CHUNK_SIZE
from ._saved_chunks import named, no_records


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
    rank = communicator.rank
    prefix = f"{own_prefix}_rank{rank}"
    try:
        with together(communicator, _LABEL):
            given = gather_values(communicator, own_prefix, label=_LABEL)
            _check_places(given)
            prefix = f"{given[0]}_rank{rank}"
            states = joint_states(groups, communicator, CHUNK_SIZE)
            parts = {
                path: TablePart(path, state.header)
                for path, state in states.items()
            }
            with PrefixWriter(prefix) as writer:
                for path, group in groups.items():
                    _write_chunks(
                        writer, path, group, states[path], parts[path], rank
                    )
                    _write_pending(writer, path, states[path], rank)
                _write_gone(writer, parts, communicator)
                if rank == 0:
                    _write_headers(writer, states, parts)
            own = [part.numpy().decode() for part in writer.prefixes]
            written = gather_values(communicator, own, label=_LABEL)
            if rank == 0:
                _check_visible(written)
    except BaseException:
        for file in tf.io.gfile.glob(f"{prefix}_*"):
            tf.io.gfile.remove(file)
        raise
    if rank != 0:
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


def _write_chunks(
    writer: PrefixWriter,
    path: str,
    group: TableGroup,
    state: JointState,
    part: TablePart,
    rank: int,
) -> None:
    """Writes this rank's records of a group.

    A delta has as many chunks as the table, as it is not known before how many
    it fills; the others hold nothing.
    """
    first = sum(map(sum, state.chunks[:rank]))
    numbers = iter(range(first, first + sum(state.chunks[rank])))
    exported = (
        columns
        for table, count in zip(group.tables, state.chunks[rank], strict=True)
        for columns in export_planned(table, count)
    )
    for columns in part.chunks(exported):
        writer.write(named(path, next(numbers), columns))
    left: dict[str, Any] = {}
    for number in numbers:
        left |= named(path, number, no_records(state.header))
    if left:
        writer.write(left)


def _write_headers(
    writer: PrefixWriter,
    states: Mapping[str, JointState],
    parts: Mapping[str, TablePart],
) -> None:
    """Writes what rank 0 says of each group as a whole."""
    for path, state in states.items():
        chunks = sum(map(sum, state.chunks))
        writer.write(
            {
                f"{path}/header": tf.constant(parts[path].header),
                f"{path}/chunks": tf.constant(chunks, tf.int64),
            }
        )


def _write_pending(
    writer: PrefixWriter, path: str, state: JointState, rank: int
) -> None:
    """Writes this rank's gradients that are pending."""
    keys, gradients = state.pending
    tensors = {
        f"{path}/pending_keys": keys,
        f"{path}/pending_gradients": gradients,
    }
    _write_slices(writer, tensors, state.pending_counts, rank)


def _write_gone(
    writer: PrefixWriter,
    parts: Mapping[str, TablePart],
    communicator: Communicator,
) -> None:
    """Writes the keys that are gone from this rank, if this is a delta."""
    gone = {
        path: part.gone for path, part in parts.items() if part.gone is not None
    }
    counts = gather_values(
        communicator,
        {path: len(keys) for path, keys in gone.items()},
        label="removed keys",
    )
    for path, keys in gone.items():
        _write_slices(
            writer,
            {f"{path}/removed_keys": keys},
            [found[path] for found in counts],
            communicator.rank,
        )


def _write_slices(
    writer: PrefixWriter,
    tensors: dict[str, Any],
    counts: list[int],
    rank: int,
) -> None:
    """Writes this rank's slices of tensors that ranks have rows of.

    Args:
        writer: Writes them.
        tensors: This rank's rows by the tensor's name.
        counts: For each rank how many rows it has.
        rank: This one.
    """
    total, start, count = sum(counts), sum(counts[:rank]), counts[rank]
    if total == 0 and rank == 0:
        writer.write(
            {name: tf.constant(rows) for name, rows in tensors.items()}
        )
    if count == 0:
        return
    slices = {}
    for name, rows in tensors.items():
        shape = " ".join(map(str, (total, *rows.shape[1:])))
        slices[name] = f"{shape} {start},{count}" + ":-" * (rows.ndim - 1)
    writer.write(
        {name: tf.constant(rows) for name, rows in tensors.items()}, slices
    )
