"""Parquet files read to batches of tensors, against bare pyarrow."""

from __future__ import annotations

from suite.context import Context
from suite.figures import Outcome, Spread, at_least, ratio


__all__ = ["run"]

BATCH = 8192


def run(context: Context) -> Outcome:
    """Measures both in turns, in one process, for each kind of file."""
    outcome = Outcome("parquet", "Parquet to batches of 8,192 rows")
    kinds = {
        "flat": context.pick(2_000_000, 20_000),
        "lists": context.pick(500_000, 10_000),
    }
    for kind, rows in kinds.items():
        contestant = context.contestant(
            "embedra",
            f"parquet-{kind}",
            {"bare": 1, "dataset": 1},
            keys=rows,
        )
        results = context.compete(
            outcome, kind, [contestant], context.pick(9, 2)
        )
        if not results.has("embedra"):
            continue
        times = {
            name: results.medians("embedra", name)
            for name in ("bare", "dataset")
        }
        for name, seconds in times.items():
            speeds = [rows / one / 1e6 for one in seconds]
            outcome.add(f"{kind}: {name}", Spread.of(speeds), "M rows/s")
        outcome.add(
            f"{kind}: speed of the dataset, to bare pyarrow",
            ratio(times["bare"], times["dataset"]),
            "x",
            at_least(0.8),
        )
    return outcome
