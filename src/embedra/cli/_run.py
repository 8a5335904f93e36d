"""`embedra run`: starts a script as several ranks."""

from __future__ import annotations

import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ._console import UsageError, readable_errors
from ._ranks import Ranks, start_mpi_ranks, start_tensorflow_ranks


class Engine(StrEnum):
    """How ranks know of each other."""

    MPI = "mpi"
    TF = "tf"


def run(
    context: typer.Context,
    script: Annotated[
        str,
        typer.Argument(
            help="Python file, or a program, that each rank runs; what comes "
            "after it are its own arguments.",
        ),
    ],
    count: Annotated[
        int,
        typer.Option("-n", "--ranks", min=1, help="Number of ranks."),
    ] = 1,
    engine: Annotated[
        Engine,
        typer.Option(
            help="How ranks know of each other: by MPI, or by TF_CONFIG for "
            "TensorFlow's own servers and collectives.",
        ),
    ] = Engine.MPI,
    hostfile: Annotated[
        Path | None,
        typer.Option(
            help="Machines of the ranks, one in a line, `name slots=4`; MPI "
            "only. By default all are on this one.",
        ),
    ] = None,
    grace: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Seconds that ranks have to end by themselves after this "
            "command got a signal, which they get too.",
        ),
    ] = 30.0,
) -> None:
    """Starts a script as several ranks and waits for them.

    Lines that they print are shown with their rank before them. When one fails
    the others are ended, and its exit status is that of the command.
    """
    with readable_errors():
        command = _command(script, context.args)
        ranks = _start(count, engine, hostfile, command)
    raise typer.Exit(ranks.wait(grace))


def _start(
    count: int, engine: Engine, hostfile: Path | None, command: list[str]
) -> Ranks:
    if engine == Engine.MPI:
        return start_mpi_ranks(_mpirun(), count, hostfile, command)
    if hostfile is not None:
        msg = (
            "--hostfile needs --engine mpi. Without MPI start one process on "
            "each machine yourself, with its TF_CONFIG."
        )
        raise UsageError(msg)
    return start_tensorflow_ranks(count, command)


def _command(script: str, arguments: list[str]) -> list[str]:
    """Returns what each rank runs."""
    if not script.endswith(".py"):
        if shutil.which(script) is None:
            msg = f"There is no Python file or program {script!r}."
            raise UsageError(msg)
        return [script, *arguments]
    if not Path(script).is_file():
        msg = f"There is no file {script!r} to run."
        raise UsageError(msg)
    return [sys.executable, script, *arguments]


def _mpirun() -> str:
    """Returns the launcher of this Python's MPI, else the system's."""
    beside = Path(sys.executable).parent / "mpirun"
    found = str(beside) if beside.exists() else shutil.which("mpirun")
    if found is None:
        msg = (
            "There is no mpirun. Install MPI with `pip install embedra[mpi]`, "
            "or start ranks without it: --engine tf."
        )
        raise UsageError(msg)
    return found
