"""The ranks of a job that train in TF1 graphs."""

from embedra import _env
from embedra.scopes import context

from ._communicator import Communicator
from ._current import job_communicator


def graph_communicator() -> Communicator | None:
    """Returns the communicator of the ranks in TF1 graphs, if there are any.

    It is what estimators and monitored sessions ask. Where `TF_CONFIG` alone
    names the processes, they have no exchanges in TF1 graphs.

    Returns:
        See `job_communicator`; None where `TF_CONFIG` alone names processes.

    Example:
        >>> graph_communicator() is None
        True
    """
    return None if is_cluster_alone() else job_communicator()


def is_cluster_alone() -> bool:
    """Returns whether `TF_CONFIG` names processes, and no launcher of MPI.

    Example:
        >>> is_cluster_alone()
        False
    """
    return context.cluster_spec is not None and _env.launched_processes() == 1
