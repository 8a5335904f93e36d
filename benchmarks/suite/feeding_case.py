"""Training on the 26-table model fed from Parquet, against from memory."""

from __future__ import annotations

from suite.context import Context
from suite.figures import Outcome, Spread, at_least, ratio


__all__ = ["run"]

# As in drivers/workload.py and drivers/parquet_training.py.
BATCH = 4096
STEPS = 32


def run(context: Context) -> Outcome:
    """Measures both in turns, in one process."""
    outcome = Outcome("feeding", "Training fed from Parquet, 26 tables")
    contestant = context.contestant(
        "embedra",
        "feeding",
        {"memory": 1, "parquet": 1},
        keys=context.pick(1_000_000, 5_000),
        features=context.pick(26, 3),
        batches=context.pick(64, 3),
    )
    results = context.compete(
        outcome, "feeding", [contestant], context.pick(21, 2)
    )
    if not results.has("embedra"):
        return outcome
    times = {
        name: results.medians("embedra", name) for name in ("memory", "parquet")
    }
    for name, seconds in times.items():
        speeds = [STEPS * BATCH / one / 1e3 for one in seconds]
        outcome.add(f"from {name}", Spread.of(speeds), "k rows/s")
    outcome.add(
        "speed from Parquet, to from memory",
        ratio(times["memory"], times["parquet"]),
        "x",
        at_least(0.95),
    )
    first = results.facts["embedra"]["first_batch_s"]
    outcome.add(
        "from the start of a pass to its first batch",
        Spread.exact(1e3 * first),
        "ms",
    )
    return outcome
