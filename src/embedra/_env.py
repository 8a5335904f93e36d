"""Everything that depends on the process's environment, in one place."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


# Where launchers (Horovod, Open MPI, MPICH) tell a process of how many it is.
_PROCESS_COUNTS = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def launched_processes() -> int:
    """Returns of how many processes a launcher says that this is one."""
    counts = (os.environ.get(name, "") for name in _PROCESS_COUNTS)
    return max((int(count) for count in counts if count.isdigit()), default=1)


@contextlib.contextmanager
def quiet_start_up() -> Iterator[None]:
    """Silences TensorFlow's start-up messages, for the `embedra` command only.

    Some of them no setting hides, so within the block standard error goes
    nowhere; Python's own exceptions are not affected. Nothing is changed where
    `embedra` is imported as a library, nor where the user has chosen a log
    level.

    Yields:
        Nothing; TensorFlow is to be imported within.
    """
    if not _is_the_command() or "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        yield
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    standard_error = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(standard_error, 2)
        os.close(nowhere)
        os.close(standard_error)


def setting(variable: str) -> str | None:
    """Returns an environment variable, or None if it is not set.

    Args:
        variable: Its name.
    """
    return os.environ.get(variable) or None


def set_variable(variable: str, value: str) -> None:
    """Sets an environment variable of this process.

    Args:
        variable: Its name.
        value: Its value.
    """
    os.environ[variable] = value


def environment_with(**variables: str) -> dict[str, str]:
    """Returns the environment of this process, for another, with changes.

    Args:
        **variables: What is set besides.
    """
    return {**os.environ, **variables}


def _is_the_command() -> bool:
    # While `python -m embedra` imports the package, argv[0] is still "-m".
    as_module = sys.orig_argv[1:3] == ["-m", "embedra"]
    return as_module or Path(sys.argv[0]).name == "embedra"
