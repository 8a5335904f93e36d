"""Measures Embedra side by side with its peers.

    python benchmarks/run.py --peers DIR [--only NAME] [--quick]

See README.md in this folder.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from suite import (
    checkpoint_case,
    communication_case,
    core_case,
    export_case,
    feeding_case,
    growth_case,
    machine,
    memory_case,
    names_case,
    parquet_case,
    pooling_case,
    report,
    step_case,
)
from suite.context import Context
from suite.figures import Outcome


RESULTS = Path(__file__).resolve().parent / "results"
BUSY = 0.5
CASES: dict[str, Callable[[Context], Outcome]] = {
    "step": step_case.run,
    "core": core_case.run,
    "memory": memory_case.run,
    "checkpoint": checkpoint_case.run,
    "pooling": pooling_case.run,
    "growth": growth_case.run,
    "names": names_case.run,
    "export": export_case.run,
    "parquet": parquet_case.run,
    "feeding": feeding_case.run,
    "communication": communication_case.run,
}


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description="Measures Embedra side by side with its peers."
    )
    parser.add_argument(
        "--peers",
        type=Path,
        metavar="DIR",
        help="folder made by setup_peers.sh; without it, peers are absent",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=list(CASES),
        metavar="NAME",
        help=f"run one case (may be repeated): {', '.join(CASES)}",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="tiny sizes, to see that everything runs; figures mean nothing",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=os.cpu_count(),
        help="threads for each system (default: all cores)",
    )
    parser.add_argument(
        "--results",
        type=Path,
        metavar="DIR",
        help="where to write (default: benchmarks/results, or its folder "
        "`quick` with --quick)",
    )
    return parser.parse_args()


def main() -> int:
    """Runs the cases, and returns 1 if one of them failed to run.

    A target that is missed is a result, not a failure.
    """
    arguments = parse_arguments()
    folder = arguments.results or (
        RESULTS / "quick" if arguments.quick else RESULTS
    )
    folder.mkdir(parents=True, exist_ok=True)
    context = Context(
        peers=arguments.peers,
        threads=arguments.threads,
        quick=arguments.quick,
        results=folder.resolve(),
    )
    console = Console(stderr=True)
    facts = machine.describe(context)
    if context.quick:
        console.print("[yellow]A quick run: its figures mean nothing.")
    elif os.getloadavg()[0] > BUSY:
        console.print("[yellow]The machine is busy: figures will be off.")
    outcomes = []
    for name in arguments.only or CASES:
        start = time.monotonic()
        with console.status(f"Measuring {name}"):
            outcome = CASES[name](context)
        report.save(outcome, facts, folder)
        outcomes.append(outcome)
        console.print(f"{name}: {time.monotonic() - start:.0f} s")
    report.print_table(outcomes)
    console.print(f"Written: {report.write_markdown(folder, CASES)}")
    return int(any(outcome.failures for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
