"""The communicators of this process."""

from embedra._checks import check_one_of
from embedra.scopes import context, current_options

from ._communicator import Communicator
from ._mpi import MpiCommunicator
from ._single import SingleCommunicator


_ENGINES = ("auto", "mpi", "single")

# The one of MPI: it starts once in a process, and all share it.
_mpi: list[MpiCommunicator] = []


def communicator(
    engine: str = "auto",
    *,
    warn_after: float = 60.0,
    timeout: float = 0.0,
) -> Communicator:
    """Returns the communicator of this process.

    The first call starts MPI, and waits until all ranks have made it; further
    ones return the same object.

    Args:
        engine: "mpi", "single", or "auto": MPI if a launcher says that this
            process is one of several, else single.
        warn_after: See `MpiCommunicator`; of the first call.
        timeout: See `MpiCommunicator`; of the first call.

    Returns:
        The communicator.

    Raises:
        RuntimeError: If MPI cannot be started, or was started with fewer ranks
            than the launcher has said.
        ValueError: If there is no such engine.

    Example:
        >>> communicator()
        SingleCommunicator(rank=0, size=1)
    """
    check_one_of("engine", engine, _ENGINES)
    if engine == "single" or (engine == "auto" and context.world_size == 1):
        return SingleCommunicator()
    if not _mpi:
        _mpi.append(MpiCommunicator(warn_after=warn_after, timeout=timeout))
    found = _mpi[0]
    if found.size != context.world_size:
        msg = (
            f"The environment says that this process is one of "
            f"{context.world_size}, but MPI knows {found.size}. Start ranks "
            "with `embedra run -n 4 train.py` or `mpirun -n 4 python train.py`;"
            " TF_CONFIG alone gives no MPI."
        )
        raise RuntimeError(msg)
    return found


def job_communicator() -> Communicator | None:
    """Returns the communicator of the ranks that train one model, if any do.

    It is what layers, optimizers and `fit` ask. In a job, the first call starts
    MPI, and waits until all ranks have made it.

    Returns:
        `communicator()` in a job of more than one rank. None in one process;
        and where `TF_CONFIG` names parameter servers, through which workers
        share what they train.

    Raises:
        RuntimeError: See `communicator`.

    Example:
        >>> job_communicator() is None
        True
    """
    cluster = context.cluster_spec
    has_servers = cluster is not None and "ps" in cluster.jobs
    if context.world_size == 1 or has_servers:
        return None
    return communicator()


def table_communicator() -> Communicator | None:
    """Returns the communicator of the ranks that a table made here is split on.

    It is what layers and columns give their tables.

    Returns:
        `job_communicator()`, or None within `embedra.scope(sharding=False)` or
        `embedra.scope(mode="infer")`.

    Example:
        >>> table_communicator() is None
        True
    """
    options = current_options()
    if options.sharding is False or options.mode == "infer":
        return None
    return job_communicator()
