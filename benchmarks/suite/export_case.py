"""Exporting 5M rows with TensorFlow's own ops, and looking them up."""

from __future__ import annotations

import tempfile

from suite.context import Context
from suite.figures import Outcome, Spread, at_least, at_most, ratio


__all__ = ["run"]

MIB = 1 << 20


def run(context: Context) -> Outcome:
    """Alternates exports with lookups of the native and the exported table."""
    outcome = Outcome("export", "Export of 5M rows, TensorFlow's own ops")
    keys = context.pick(5_000_000, 100_000)
    with tempfile.TemporaryDirectory(dir=context.results) as folder:
        contestant = context.contestant(
            "embedra",
            "export",
            {"export": 1, "native": 15, "exported": 15},
            keys=keys,
            path=folder,
        )
        results = context.compete(
            outcome, "export", [contestant], context.pick(7, 2)
        )
    if not results.has("embedra"):
        return outcome
    facts = results.facts["embedra"]
    exports = [turn.values[0] for turn in results.turns["embedra"]["export"]]
    outcome.add(
        "export, with fsync",
        Spread.of([one["seconds"] for one in exports]),
        "s",
        at_most(10),
    )
    outcome.add(
        "extra resident memory of an export",
        Spread.of([one["extra_bytes"] / MIB for one in exports]),
        "MiB",
        at_most(300),
    )
    outcome.add("size on disk", Spread.exact(facts["bytes"] / MIB), "MiB")
    outcome.add(
        "graph file",
        Spread.exact(facts["graph_bytes"] / MIB),
        "MiB",
        at_most(1),
    )
    native = results.medians("embedra", "native")
    exported = results.medians("embedra", "exported")
    outcome.add(
        "50,000 ids, native", Spread.of([1e3 * s for s in native]), "ms"
    )
    outcome.add(
        "50,000 ids, exported against native",
        ratio(native, exported),
        "x",
        at_least(0.8),
    )
    return outcome
