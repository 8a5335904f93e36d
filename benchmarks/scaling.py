"""Estimates how a job scales to many ranks, from figures of one machine.

    python benchmarks/scaling.py --step-ms 20 --plot scaling.png

Nothing is measured here: see suite/scaling.py for the model, and
docs/distributed.md for what it leaves out.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table as Listing

from suite import plots
from suite.scaling import Constants, efficiency, simulate


RANKS = (1, 2, 4, 8, 16, 32, 64)
GIGABIT = 1e9 / 8


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description="Estimates how a job scales, from figures of one machine."
    )
    add = parser.add_argument
    add("--step-ms", type=float, required=True, help="a step of one rank")
    add("--latency-us", type=float, default=20.0, help="of a message, one way")
    add("--memory-gb", type=float, default=3.0, help="GB/s within a machine")
    add("--networks", type=float, nargs="+", default=[10, 25, 100], help="Gb/s")
    add("--ranks-per-machine", type=int, default=4)
    add("--dense-mb", type=float, default=0.6, help="dense weights, in MB")
    add("--keys", type=int, default=500_000, help="keys of each feature")
    add("--features", type=int, default=26)
    add("--wire-bytes", type=int, choices=[2, 4], default=4)
    add("--plot", type=Path, help="PNG to write")
    return parser.parse_args()


def main() -> None:
    """Prints the efficiency for each number of ranks and each network."""
    arguments = parse_arguments()
    constants = Constants(
        step_seconds=arguments.step_ms / 1e3,
        latency_seconds=arguments.latency_us / 1e6,
        network_bytes=0.0,
        memory_bytes=arguments.memory_gb * 1e9,
        ranks_per_machine=arguments.ranks_per_machine,
        dense_bytes=int(arguments.dense_mb * 1e6),
        wire_bytes=arguments.wire_bytes,
    )
    traffic = {
        ranks: simulate(ranks, arguments.keys, arguments.features)
        for ranks in RANKS
    }
    series = {}
    for speed in arguments.networks:
        network = replace(constants, network_bytes=speed * GIGABIT)
        series[f"{speed:g} Gb/s"] = [
            efficiency(traffic[ranks], network) for ranks in RANKS
        ]
    listing = Listing("ranks", *series)
    for row, ranks in enumerate(RANKS):
        cells = [f"{values[row]:.2f}" for values in series.values()]
        listing.add_row(str(ranks), *cells)
    Console().print(listing)
    if arguments.plot:
        plots.scaling(arguments.plot, RANKS, series)


if __name__ == "__main__":
    main()
