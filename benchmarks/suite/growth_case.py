"""Section 5.6: the step as tables grow from 100,000 to 5M keys.

With ids drawn evenly, a batch touches almost as many rows in a small table as
in a large one, so what grows is the cost of reaching a row: cache and TLB
misses. NumPy's `take` of as many dense rows shows what those cost by
themselves.
"""

from __future__ import annotations

import statistics

from suite import plots
from suite.context import Context
from suite.figures import Outcome, Spread, ratio


__all__ = ["run"]

FEATURES = 8
BATCH = 4096
TAKE_BATCH = 65_536
DRAWS = ("uniform", "zipf")


def run(context: Context) -> Outcome:
    """Measures all sizes in turns, and draws the plot."""
    outcome = Outcome("growth", "Step time as tables grow, 8 tables, Adam")
    full = (100_000, 1_000_000, 5_000_000)
    sizes = (2_000, 10_000) if context.quick else full
    count = context.pick(8, 2)
    contestants = []
    for size in sizes:
        contestants += [
            context.contestant(
                "embedra",
                "growth",
                dict.fromkeys(DRAWS, count),
                name=f"embedra {size}",
                features=FEATURES,
                keys=size,
                batches=context.pick(16, 2),
            ),
            context.contestant(
                "numpy",
                "take",
                {"take": count},
                name=f"numpy {size}",
                keys=FEATURES * size,
            ),
        ]
    results = context.compete(
        outcome, "growth", contestants, context.pick(8, 2)
    )
    if results.failures:
        return outcome
    times = {
        draw: [results.medians(f"embedra {s}", draw) for s in sizes]
        for draw in DRAWS
    }
    takes = [results.medians(f"numpy {s}", "take") for s in sizes]
    for draw, series in times.items():
        for size, seconds in zip(sizes, series, strict=True):
            distinct = results.facts[f"embedra {size}"][
                f"{draw}_distinct_ids_per_table"
            ]
            outcome.add(
                f"{draw} ids, {size:,} keys per table",
                Spread.of(seconds).scaled(1e3),
                "ms",
                note=f"{distinct:,.0f} distinct ids per table and batch",
            )
        outcome.add(
            f"{draw} ids: largest tables, to smallest",
            ratio(series[-1], series[0]),
            "x",
        )
    _per_id(outcome, times["uniform"], takes)
    plots.growth(
        context.results / "growth.png",
        sizes,
        {
            **{f"step, {draw} ids": series for draw, series in times.items()},
            "NumPy take of dense rows": [
                [s * FEATURES * BATCH / TAKE_BATCH for s in t] for t in takes
            ],
        },
    )
    return outcome


def _per_id(
    outcome: Outcome, steps: list[list[float]], takes: list[list[float]]
) -> None:
    """Compares what growth costs an id with what it costs a plain read."""
    for what, series, count in (
        ("uniform ids: growth of the step", steps, FEATURES * BATCH),
        ("growth of NumPy `take`", takes, TAKE_BATCH),
    ):
        first, last = (statistics.median(series[i]) for i in (0, -1))
        spread = Spread.exact((last - first) / count * 1e9)
        outcome.add(what, spread, "ns/id", note="smallest to largest")
