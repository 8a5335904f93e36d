"""Section 5.3: resident bytes of a key with Adam's slots."""

from __future__ import annotations

from suite.context import Context
from suite.figures import Outcome, Spread, at_most


__all__ = ["run"]

DIM = 16
FLOAT = 4
KEY = 8
RECORD = 3 * DIM * FLOAT + KEY
LIMIT = 1.15 * RECORD + 16


def run(context: Context) -> Outcome:
    """Fills one table in a process of its own, for each system."""
    outcome = Outcome("memory", "Memory of a key, dim 16, Adam's slots")
    keys = context.pick(5_000_000, 200_000)
    for system, target in {"embedra": at_most(LIMIT), "tfra": None}.items():
        contestant = context.contestant(system, "memory", {}, keys=keys)
        results = context.compete(outcome, system, [contestant], 0)
        spread, note = None, context.missing(system)
        if results.has(system):
            facts = results.facts[system]
            spread = Spread.exact(facts["bytes_per_key"])
            note = f"{keys:,} keys"
            if "peak_bytes_per_key" in facts:
                note += f", peak {facts['peak_bytes_per_key']:.0f}"
        outcome.add(f"{system}: resident", spread, "bytes/key", target, note)
    return outcome
