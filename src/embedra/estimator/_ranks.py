"""The ranks of a job that train an estimator together."""

from embedra import _env
from embedra.distribute import Communicator, job_communicator
from embedra.scopes import context


def job_ranks() -> Communicator | None:
    """Returns the communicator of the ranks, None in one process.

    It is also None where `TF_CONFIG` alone names the processes: those have no
    exchanges in TF1 graphs.
    """
    if is_cluster_alone():
        return None
    return job_communicator()


def is_cluster_alone() -> bool:
    """Returns whether `TF_CONFIG` names processes, and no launcher of MPI."""
    return context.cluster_spec is not None and _env.launched_processes() == 1
