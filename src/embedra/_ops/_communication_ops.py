"""Ops that exchange data between ranks, over MPI.

All take the communicator first, as a resource by which they are kept in order,
and a label that names them in messages.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from embedra._typing import Operation, Tensor

from ._graph_order import in_order
from ._library import native_ops


class MpiPlace(NamedTuple):
    """Where a process stands among those of its MPI job.

    Attributes:
        rank: From 0.
        size: Number of ranks.
        local_rank: Of this process among those on its machine.
        local_size: How many are on its machine.
        version: What the MPI library says of itself.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    version: str


# MPI starts once in a process; what it said then holds until the end.
_started: list[MpiPlace] = []


def mpi_start(library: str, *, warn_after: float, timeout: float) -> MpiPlace:
    """Loads an MPI library and starts it; once in a process.

    Args:
        library: Path, or a name that the system finds.
        warn_after: Seconds in a collective after which who is late is
            reported; 0 for never.
        timeout: Seconds in a collective after which the job is aborted; 0 for
            never.

    Returns:
        The place of this process.
    """
    place, version = _run_now(
        lambda: native_ops.embedra_mpi_start(
            library=library, warn_after=warn_after, timeout=timeout
        )
    )
    rank, size, local_rank, local_size = place.tolist()
    _started.append(
        MpiPlace(rank, size, local_rank, local_size, version.decode())
    )
    return mpi_place()


def mpi_place() -> MpiPlace:
    """Returns the place of this process.

    Raises:
        RuntimeError: If MPI was not started.
    """
    if not _started:
        msg = "MPI was not started: embedra.distribute.communicator() does."
        raise RuntimeError(msg)
    return _started[0]


def mpi_end() -> None:
    """Ends MPI, once all ranks do."""
    _run_now(native_ops.embedra_mpi_end)


def mpi_abort(code: int) -> None:
    """Ends the processes of all ranks.

    Args:
        code: Their exit status.
    """
    _run_now(lambda: native_ops.embedra_mpi_abort(code=code))


def _run_now(make: Callable[[], Any]) -> Any:
    """Runs an op at once, also where a graph is built.

    Args:
        make: Makes the op; is given nothing.

    Returns:
        The op's outputs, as NumPy arrays and bytes; None if it has none.
    """
    with tf.init_scope():
        if tf.executing_eagerly():
            made = make()
            return made and [output.numpy() for output in made]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(make())


def mpi_communicator() -> Tensor:
    """Returns a handle to all ranks, a resource.

    It is the same wherever it is asked for, or TensorFlow would not know that
    ops share it: one for everything outside of TF1 graphs, and one in each.
    """
    with tf.init_scope():
        if tf.executing_eagerly():
            return _eager_communicator()
        graph = tf.compat.v1.get_default_graph()
        handles = graph.get_collection_ref("embedra/communicator")
        if not handles:
            handles.append(native_ops.embedra_mpi_communicator())
        return handles[0]


@functools.lru_cache(maxsize=1)
def _eager_communicator() -> Tensor:
    return native_ops.embedra_mpi_communicator()


def all_to_all_v(
    communicator: Tensor,
    values: Sequence[Tensor],
    splits: Sequence[Tensor],
    receive_splits: Sequence[Tensor] = (),
    *,
    label: str,
) -> tuple[list[Tensor], list[Tensor]]:
    """Sends rows of each tensor to each rank; differentiable.

    Args:
        communicator: Handle.
        values: Tensors of one dtype, of rank 1 or more.
        splits: For each tensor how many rows go to each rank, `int64`, shape
            `(size,)`; the first ones go to rank 0.
        receive_splits: For each tensor how many rows come from each rank, if
            that is known; else the ranks tell each other first.
        label: Name in messages.

    Returns:
        What came, by rank, and for each tensor how many rows from each rank.
    """
    outputs = in_order(
        lambda: native_ops.embedra_all_to_all_v(
            communicator=communicator,
            values=list(values),
            splits=list(splits),
            receive_splits=list(receive_splits),
            label=label,
        )
    )
    return outputs.received, outputs.received_splits


def all_gather_v(
    communicator: Tensor, value: Tensor, *, label: str, any_label: bool = False
) -> tuple[Tensor, Tensor]:
    """Gives every rank the rows of all ranks; differentiable.

    Args:
        communicator: Handle.
        value: A tensor of rank 1 or more.
        label: Name in messages.
        any_label: Whether ranks may call it by different labels.

    Returns:
        The rows, by rank, and how many each rank gave, `int64`,
        shape `(size,)`.
    """
    outputs = in_order(
        lambda: native_ops.embedra_all_gather_v(
            communicator=communicator,
            value=value,
            label=label,
            any_label=any_label,
        )
    )
    return outputs.gathered, outputs.row_counts


def all_reduce(
    communicator: Tensor,
    values: Sequence[Tensor],
    *,
    reduction: str,
    bucket_bytes: int,
    label: str,
) -> list[Tensor]:
    """Reduces tensors over the ranks; sum and mean are differentiable.

    Args:
        communicator: Handle.
        values: Tensors of one dtype.
        reduction: "sum", "mean", "max" or "min".
        bucket_bytes: Small tensors are joined until they take so many bytes.
        label: Name in messages.

    Returns:
        The reduced tensors, the same on all ranks.
    """
    reduced: list[Tensor] = in_order(
        lambda: native_ops.embedra_all_reduce(
            communicator=communicator,
            values=list(values),
            reduction=reduction,
            bucket_bytes=bucket_bytes,
            label=label,
        )
    )
    return reduced


def broadcast(
    communicator: Tensor, value: Tensor, *, root: int, label: str
) -> Tensor:
    """Gives every rank the value that one rank has; differentiable.

    Args:
        communicator: Handle.
        value: On all ranks of the same shape and dtype.
        root: The rank.
        label: Name in messages.

    Returns:
        The value.
    """
    return in_order(
        lambda: native_ops.embedra_broadcast(
            communicator=communicator, value=value, root=root, label=label
        )
    )


def barrier(communicator: Tensor, *, label: str) -> Operation:
    """Waits for all ranks.

    Args:
        communicator: Handle.
        label: Name in messages.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    return in_order(
        lambda: native_ops.embedra_barrier(
            communicator=communicator, label=label
        )
    )


def route_keys(
    keys: Tensor, *, num_parts: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Finds the distinct keys of a batch, ordered by the part they belong to.

    Args:
        keys: Keys, `int64`, shape `(n,)`.
        num_parts: Number of parts.

    Returns:
        Each key once, shape `(u,)`; how many belong to each part, shape
        `(num_parts,)`; and where each of `keys` is among them, shape `(n,)`.
    """
    outputs = native_ops.embedra_route_keys(keys=keys, num_parts=num_parts)
    return outputs.unique, outputs.splits, outputs.index
