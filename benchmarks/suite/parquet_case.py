"""Parquet files read to batches: bare pyarrow, Embedra, HybridBackend."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from suite.context import Context
from suite.figures import Outcome, Spread, at_least, ratio
from suite.turns import Results


__all__ = ["run"]

OWN = ("bare", "dataset")
PEER = ("hybridbackend", "hybridbackend, parallel")


def run(context: Context) -> Outcome:
    """Measures all in turns, on one file of each kind."""
    outcome = Outcome("parquet", "Parquet to batches of 8,192 rows")
    kinds = {
        "flat": context.pick(2_000_000, 20_000),
        "lists": context.pick(500_000, 10_000),
    }
    for kind, rows in kinds.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            # Embedra's process, set up first, writes the file.
            contestants = [
                context.contestant(
                    system,
                    f"parquet-{kind}",
                    dict.fromkeys(measures, 1),
                    keys=rows,
                    path=path,
                )
                for system, measures in (
                    ("embedra", OWN),
                    ("hybridbackend", PEER),
                )
            ]
            results = context.compete(
                outcome, kind, contestants, context.pick(9, 2)
            )
        if results.has("embedra"):
            _report(context, outcome, kind, rows, results)
    return outcome


def _report(
    context: Context, outcome: Outcome, kind: str, rows: int, results: Results
) -> None:
    times = {name: results.medians("embedra", name) for name in OWN}
    if results.has("hybridbackend"):
        times |= {name: results.medians("hybridbackend", name) for name in PEER}
    for name, seconds in times.items():
        speeds = [rows / one / 1e6 for one in seconds]
        outcome.add(f"{kind}: {name}", Spread.of(speeds), "M rows/s")
    outcome.add(
        f"{kind}: speed of the dataset, to bare pyarrow",
        ratio(times["bare"], times["dataset"]),
        "x",
        at_least(0.8),
    )
    spread, note = None, context.missing("hybridbackend")
    if results.has("hybridbackend"):
        # Against the faster of its two ways.
        best = min(PEER, key=lambda name: statistics.median(times[name]))
        spread, note = ratio(times[best], times["dataset"]), ""
    outcome.add(
        f"{kind}: speed of the dataset, to HybridBackend's",
        spread,
        "x",
        at_least(1.0),
        note,
    )
