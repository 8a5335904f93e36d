"""The 26-table step with `de.` names, with layers, and with a collection."""

from __future__ import annotations

from suite.context import Context
from suite.figures import Outcome, Spread, at_least, at_most, ratio


__all__ = ["run"]

OPTIMIZERS = ("adam", "adagrad")
WAYS = ("names", "layers", "collection")


def run(context: Context) -> Outcome:
    """Measures them in turns, in one process."""
    outcome = Outcome("names", "The step with `de.` names, 26 tables")
    count = context.pick(8, 2)
    for optimizer in OPTIMIZERS:
        contestant = context.contestant(
            "embedra",
            "names",
            dict.fromkeys(WAYS, count),
            optimizer=optimizer,
            keys=context.pick(500_000, 5_000),
            features=context.pick(26, 3),
            batches=context.pick(32, 3),
        )
        results = context.compete(
            outcome, optimizer, [contestant], context.pick(12, 2)
        )
        if not results.has("embedra"):
            continue
        times = {name: results.medians("embedra", name) for name in WAYS}
        for name, seconds in times.items():
            outcome.add(
                f"{optimizer}: {name}", Spread.of(seconds).scaled(1e3), "ms"
            )
        outcome.add(
            f"{optimizer}: speed with names, to layers",
            ratio(times["layers"], times["names"]),
            "x",
            at_least(0.95),
        )
        outcome.add(
            f"{optimizer}: speed with a collection, to layers",
            ratio(times["layers"], times["collection"]),
            "x",
        )
        facts = results.facts["embedra"]
        outcome.add(
            f"{optimizer}: graph of the step with names",
            Spread.exact(facts["graph_nodes"]),
            "nodes",
            at_most(1000),
        )
        outcome.add(
            f"{optimizer}: traces for new batch sizes",
            Spread.exact(facts["retraces"]),
            "",
            at_most(0),
        )
    return outcome
