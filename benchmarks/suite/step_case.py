"""Section 5.1: the training step over 26 tables."""

from __future__ import annotations

from typing import Any

from suite.context import Context
from suite.figures import (
    Outcome,
    Spread,
    Target,
    at_least,
    at_most,
    ratio,
)
from suite.turns import Results


__all__ = ["run"]

RIVALS = {
    "adam": {"tfra": 3.0},
    "adagrad": {"tfra": 2.5, "tf_keras": 1.5, "torchrec": 1.5},
}
SLOWER_STEPS = {"tfra": 4}


def run(context: Context) -> Outcome:
    """Measures Adam and Adagrad against every peer that has them."""
    outcome = Outcome("step", "Training step over 26 tables")
    for optimizer in RIVALS:
        _run_optimizer(context, outcome, optimizer)
    return outcome


def _run_optimizer(context: Context, outcome: Outcome, optimizer: str) -> None:
    steps = context.pick(8, 2)
    options: dict[str, Any] = {
        "optimizer": optimizer,
        "keys": context.pick(1_000_000, 5_000),
        "features": context.pick(26, 3),
        "batches": context.pick(32, 3),
    }
    own = {"step": steps, "mlp": steps}
    if optimizer == "adam":
        own |= {"fit": 1, "loop": 1}
    contestants = [context.contestant("embedra", "step", own, **options)]
    for rival in RIVALS[optimizer]:
        count = min(steps, SLOWER_STEPS.get(rival, steps))
        contestants.append(
            context.contestant(rival, "step", {"step": count}, **options)
        )
    results = context.compete(
        outcome, optimizer, contestants, context.pick(10, 2)
    )
    _rates(outcome, results, optimizer)
    _rivals(context, outcome, results, optimizer)
    if results.has("embedra"):
        _own_figures(outcome, results, optimizer)


def _rates(outcome: Outcome, results: Results, optimizer: str) -> None:
    for system in results.facts:
        if results.has(system):
            seconds = results.medians(system, "step")
            outcome.add(
                f"{optimizer}: {system}",
                Spread.of([1 / s for s in seconds]),
                "steps/s",
            )


def _rivals(
    context: Context, outcome: Outcome, results: Results, optimizer: str
) -> None:
    for rival, bound in RIVALS[optimizer].items():
        spread, note = None, context.missing(rival)
        if not results.has("embedra"):
            note = "Embedra failed"
        elif results.has(rival):
            note = ""
            spread = ratio(
                results.medians(rival, "step"),
                results.medians("embedra", "step"),
            )
        what = f"{optimizer}: speed against {rival}"
        outcome.add(what, spread, "x", at_least(bound), note)


def _own_figures(outcome: Outcome, results: Results, optimizer: str) -> None:
    steps = results.medians("embedra", "step")
    mlp = results.medians("embedra", "mlp")
    facts = results.facts["embedra"]
    outcome.add(f"{optimizer}: the MLP alone", Spread.of(mlp).scaled(1e3), "ms")
    outcome.add(
        f"{optimizer}: everything but the MLP, to the MLP",
        ratio([s - m for s, m in zip(steps, mlp, strict=True)], mlp),
        "x",
        at_most(0.5),
    )
    limits: dict[str, tuple[str, str, Target | None]] = {
        "first_step_seconds": ("first step, with tracing", "s", at_most(3.0)),
        "graph_nodes": ("graph of the step", "nodes", None),
    }
    for fact, (what, unit, target) in limits.items():
        spread = Spread.exact(facts[fact])
        note = ", ".join(
            f"{name} {results.facts[name][fact]:,.4g}"
            for name in results.facts
            if name != "embedra" and fact in results.facts[name]
        )
        outcome.add(f"{optimizer}: {what}", spread, unit, target, note)
    if optimizer == "adam":
        outcome.add(
            "adam: `fit`, to a loop over the raw step",
            ratio(
                results.medians("embedra", "loop"),
                results.medians("embedra", "fit"),
            ),
            "x",
            at_least(0.95),
        )
