"""The communicators of this process."""

from embedra import _env
from embedra._checks import check_one_of
from embedra.scopes import context, current_options

from ._communicator import Communicator
from ._mpi import MpiCommunicator
from ._single import SingleCommunicator
from ._tensorflow import TensorFlowCommunicator


_ENGINES = ("auto", "mpi", "tf", "single")

# Those that start once in a process, and that all share.
_started: dict[str, Communicator] = {}


def communicator(
    engine: str = "auto",
    *,
    warn_after: float = 60.0,
    timeout: float = 0.0,
) -> Communicator:
    """Returns the communicator of this process.

    The first call starts MPI, or TensorFlow's collectives, and waits until all
    ranks have made it; further ones return the same object.

    Args:
        engine: "mpi", "tf", "single", or "auto": MPI if one of its launchers
            says that this process is one of several; "tf" if `TF_CONFIG` alone
            says so, and names no parameter servers; else single.
        warn_after: See `MpiCommunicator`; of the first call.
        timeout: See `MpiCommunicator` and `TensorFlowCommunicator`; of the
            first call.

    Returns:
        The communicator.

    Raises:
        RuntimeError: If MPI, or TensorFlow's collectives, cannot be started,
            or MPI was started with fewer ranks than the launcher has said.
        ValueError: If there is no such engine.

    Example:
        >>> communicator()
        SingleCommunicator(rank=0, size=1)
    """
    check_one_of("engine", engine, _ENGINES)
    if engine == "auto":
        engine = _engine_of_environment()
    if engine == "single":
        return SingleCommunicator()
    if engine not in _started:
        _started[engine] = (
            TensorFlowCommunicator(timeout=timeout)
            if engine == "tf"
            else MpiCommunicator(warn_after=warn_after, timeout=timeout)
        )
    found = _started[engine]
    if found.size != context.world_size:
        msg = (
            f"The environment says that this process is one of "
            f"{context.world_size}, but MPI knows {found.size}. Start ranks "
            "with `embedra run -n 4 train.py` or `mpirun -n 4 python train.py`;"
            " TF_CONFIG alone gives no MPI."
        )
        raise RuntimeError(msg)
    return found


def _engine_of_environment() -> str:
    """Returns the engine of the launcher that started this process."""
    if context.world_size == 1:
        return "single"
    cluster = context.cluster_spec
    if _env.launched_processes() > 1 or cluster is None:
        return "mpi"
    return "mpi" if "ps" in cluster.jobs else "tf"


def job_communicator() -> Communicator | None:
    """Returns the communicator of the ranks that train one model, if any do.

    It is what layers, optimizers and `fit` ask. In a job, the first call starts
    its engine, see `communicator`, and waits until all ranks have made it.

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
        `job_communicator()`, or None within `embedra.scope(sharding=False)`,
        and in scopes of mode "eval" and "infer".

    Example:
        >>> table_communicator() is None
        True
    """
    options = current_options()
    if options.sharding is False or options.mode in ("eval", "infer"):
        return None
    return job_communicator()
