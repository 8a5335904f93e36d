"""Section 5.5: multi-hot bags of 50 ids, summed, width 64."""

from __future__ import annotations

from suite.context import Context
from suite.figures import Outcome, Spread, at_least, ratio


__all__ = ["run"]

BOUNDS = {"forward": 4.0, "train": 2.5}
WORDS = {"forward": "forward", "train": "forward, backward and update"}


def run(context: Context) -> Outcome:
    """Measures Adagrad against all peers, and Adam against TFRA."""
    outcome = Outcome("pooling", "Multi-hot pooling, 4,096 bags of 50")
    rivals = {"adagrad": ["tfra", "tf_keras", "torchrec"], "adam": ["tfra"]}
    for optimizer, systems in rivals.items():
        _run_optimizer(context, outcome, optimizer, systems)
    return outcome


def _run_optimizer(
    context: Context, outcome: Outcome, optimizer: str, rivals: list[str]
) -> None:
    count = context.pick(5, 1)
    systems = ["embedra", *rivals]
    contestants = [
        context.contestant(
            system,
            "pooling",
            {"forward": count, "train": count},
            optimizer=optimizer,
            keys=context.pick(1_000_000, 5_000),
            batches=context.pick(16, 2),
        )
        for system in systems
    ]
    results = context.compete(
        outcome, optimizer, contestants, context.pick(8, 2)
    )
    for measure, bound in BOUNDS.items():
        for system in filter(results.has, systems):
            rates = [1 / s for s in results.medians(system, measure)]
            what = f"{optimizer}, {WORDS[measure]}: {system}"
            outcome.add(what, Spread.of(rates), "batches/s")
        spread, note = None, context.missing("tfra")
        if results.has("embedra") and results.has("tfra"):
            note = ""
            spread = ratio(
                results.medians("tfra", measure),
                results.medians("embedra", measure),
            )
        what = f"{optimizer}, {WORDS[measure]}: against tfra"
        outcome.add(what, spread, "x", at_least(bound), note)
