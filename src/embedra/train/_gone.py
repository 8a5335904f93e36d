"""Names of HybridBackend's `train` that are not here, and what to use."""

from typing import NoReturn

from embedra._checks import missing_name


GONE = {
    "SyncReplicasOptimizer": "leave it out, and use the optimizer inside: the "
    "steps of a process are synchronous, and those of workers with parameter "
    "servers update rows atomically",
    "wraps_monitored_training_session": "use "
    "embedra.train.monitored_session, which is one",
}


def missing(name: str) -> NoReturn:
    """Raises AttributeError, with advice for a name of HybridBackend's.

    Args:
        name: Name that the namespace does not have.
    """
    module = __name__.rpartition(".")[0]
    raise missing_name(module, name, GONE, "docs/migrate-from-hybridbackend.md")
