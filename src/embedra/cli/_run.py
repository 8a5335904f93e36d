"""`embedra run`: starts a script as several ranks."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ._console import UsageError, errors, readable_errors
from ._mpi_ranks import MpiRanks
from ._ranks import Outcome, Ranks
from ._signals import Signals, received_signals
from ._tensorflow_ranks import TensorFlowRanks


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
    servers: Annotated[
        int,
        typer.Option(
            "--ps",
            min=0,
            help="Number of parameter servers, which hold tables for the "
            "ranks; for --engine tf only. Rank 0 is the chief then.",
        ),
    ] = 0,
    restarts: Annotated[
        int,
        typer.Option(
            min=0,
            help="How often the whole job is started again after a rank has "
            "failed. The script is to go on from its last checkpoint.",
        ),
    ] = 0,
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
    the others are ended; its exit status is that of the command, unless the job
    is started again.
    """
    with readable_errors(), received_signals() as signals:
        command = _command(script, context.args)
        start = _launcher(engine, count, servers, hostfile, command)
        outcome = _run_with_restarts(start, signals, restarts, grace)
    raise typer.Exit(outcome.status)


def _run_with_restarts(
    start: Callable[[], Ranks], signals: Signals, restarts: int, grace: float
) -> Outcome:
    """Runs a job until it ends well, or has failed too often.

    Returns:
        The last end. A signal from the user makes any end the last.
    """
    for attempt in range(1, restarts + 2):
        outcome = start().wait(signals, grace)
        if not outcome.failure:
            break
        text = f"embedra: {outcome.failure}, so that the job was ended"
        if restarts:
            text += f" (attempt {attempt} of {restarts + 1})"
        goes_on = attempt <= restarts and not signals.is_ending
        errors.print(f"{text}.{' It is started again.' if goes_on else ''}")
        if not goes_on:
            break
    return outcome


def _launcher(
    engine: Engine,
    count: int,
    servers: int,
    hostfile: Path | None,
    command: list[str],
) -> Callable[[], Ranks]:
    """Returns what starts the ranks, each time that it is called."""
    if engine == Engine.MPI:
        if servers:
            msg = "--ps needs --engine tf: MPI has no parameter servers."
            raise UsageError(msg)
        mpirun = _mpirun()
        return lambda: MpiRanks(mpirun, count, hostfile, command)
    if hostfile is not None:
        msg = (
            "--hostfile needs --engine mpi. Without MPI start one process on "
            "each machine yourself, with its TF_CONFIG."
        )
        raise UsageError(msg)
    return lambda: TensorFlowRanks(count, servers, command)


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
