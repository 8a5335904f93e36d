"""Ranks: exchanges against bare MPI, and the step on two against one."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from suite.context import Context
from suite.figures import Outcome, Spread, at_least, at_most, ratio
from suite.turns import Contestant, Results


__all__ = ["run"]

RANKS = 2
CALLS = 20  # exchanges in a run; see drivers/embedra_ranks.py
LARGE_BYTES = 4 * 2**20
MEASURES = ("large_op", "large_bare", "small_op", "small_bare")


def run(context: Context) -> Outcome:
    """Measures the exchanges, and then one and two ranks in turns."""
    outcome = Outcome("communication", "Ranks on one machine, MPI")
    mpirun = _mpirun()
    if mpirun is None:
        outcome.add("all", None, "", note="MPI is absent")
        return outcome
    _exchanges(context, outcome, mpirun)
    _steps(context, outcome, mpirun)
    return outcome


def _exchanges(context: Context, outcome: Outcome, mpirun: str) -> None:
    runs = dict.fromkeys(MEASURES, context.pick(10, 2))
    contestant = _contestant(
        mpirun, "embedra", RANKS, 1, "exchange", runs, bytes=LARGE_BYTES
    )
    results = context.compete(
        outcome, "exchange", [contestant], context.pick(9, 2)
    )
    if not results.has("embedra"):
        return
    times = {name: results.medians("embedra", name) for name in runs}
    for name, seconds in times.items():
        calls = Spread.of(seconds).scaled(1e6 / CALLS)
        outcome.add(
            f"all_to_all_v: {name.replace('_', ', ')}",
            calls,
            "µs",
            at_most(100) if name == "small_op" else None,
        )
    outcome.add(
        "all_to_all_v of 4 MiB a rank: speed, to mpi4py's Alltoallv",
        ratio(times["large_bare"], times["large_op"]),
        "x",
        at_least(0.7),
    )


def _steps(context: Context, outcome: Outcome, mpirun: str) -> None:
    count = {"step": context.pick(8, 2)}
    names = {1: "one rank, two threads", 2: "two ranks, a thread each"}
    contestants = [
        _contestant(
            mpirun,
            names[ranks],
            ranks,
            RANKS // ranks,
            "step",
            count,
            keys=context.pick(500_000, 5_000),
            features=context.pick(26, 3),
            batches=context.pick(32, 3),
        )
        for ranks in names
    ]
    results = context.compete(outcome, "step", contestants, context.pick(12, 2))
    for name in names.values():
        if results.has(name):
            seconds = Spread.of(results.medians(name, "step"))
            outcome.add(f"step: {name}", seconds.scaled(1e3), "ms")
    if all(results.has(name) for name in names.values()):
        one, two = (results.medians(name, "step") for name in names.values())
        outcome.add(
            "throughput of two ranks, to one rank of two threads",
            ratio(one, two),
            "x",
            at_least(0.8),
        )
    _bytes(outcome, results, names[2])


def _bytes(outcome: Outcome, results: Results, name: str) -> None:
    if not results.has(name):
        return
    facts = results.facts[name]
    outcome.add(
        "bytes sent for the lookups of a step, to the least",
        Spread.exact(facts["sent_bytes"] / facts["least_bytes"]),
        "x",
        at_most(1.1),
    )


def _contestant(
    mpirun: str,
    name: str,
    ranks: int,
    threads: int,
    case: str,
    repetitions: dict[str, int],
    **options: int,
) -> Contestant:
    flags = [f"--{key}={value}" for key, value in options.items()]
    return Contestant(
        name,
        [
            *[mpirun, "-n", str(ranks), "--bind-to", "none", "--oversubscribe"],
            *[sys.executable, "-m", "drivers.embedra_ranks", case],
            *[f"--threads={threads}", *flags],
        ],
        repetitions,
        [
            f"OMP_NUM_THREADS={threads}",
            # As whoever measures, ranks are.
            "OMPI_ALLOW_RUN_AS_ROOT=1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        ],
    )


def _mpirun() -> str | None:
    beside = Path(sys.executable).parent / "mpirun"
    return str(beside) if beside.exists() else shutil.which("mpirun")
