"""Section 5.4: saving and restoring 5M records with Adam's slots."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from suite.context import Context
from suite.figures import Outcome, Spread, at_least, at_most, ratio
from suite.turns import Process, Results, Turn


__all__ = ["run"]

MIB = 1 << 20


def run(context: Context) -> Outcome:
    """Alternates saves with plain writes of as many bytes, then restores."""
    outcome = Outcome("checkpoint", "Checkpoint of 5M records, Adam's slots")
    keys = context.pick(5_000_000, 100_000)
    with tempfile.TemporaryDirectory(dir=context.results) as folder:
        results = _save(context, outcome, keys, Path(folder))
        if results is None:
            return outcome
        saves = [turn.values[0] for turn in results.turns["embedra"]["save"]]
        restores = _restore(context, outcome, keys, Path(folder))
    size = saves[0]["bytes"]
    outcome.add("size on disk", Spread.exact(size / MIB), "MiB")
    seconds = results.medians("embedra", "save")
    outcome.add("save, with fsync", Spread.of(seconds), "s")
    outcome.add(
        "extra resident memory of a save",
        Spread.of([s["extra_bytes"] / MIB for s in saves]),
        "MiB",
        at_most(100),
    )
    outcome.add(
        "speed against NumPy write with fsync",
        ratio(results.medians("numpy", "write"), seconds),
        "x",
        at_least(0.5),
    )
    if restores:
        plain = statistics.median(s["seconds_without_fsync"] for s in saves)
        times = [restore["seconds"] for restore in restores]
        outcome.add("restore", Spread.of(times), "s")
        outcome.add(
            "restore, to a save without fsync",
            Spread.of([t / plain for t in times]),
            "x",
            at_most(2.0),
        )
        share = [r["extra_bytes"] / r["table_bytes"] for r in restores]
        extra = Spread.of([r["extra_bytes"] / MIB for r in restores])
        outcome.add("extra resident memory of a restore", extra, "MiB")
        outcome.add(
            "extra memory of a restore, to the table",
            Spread.of(share),
            "x",
            at_most(0.5),
            "a second copy would be 1",
        )
    return outcome


def _save(
    context: Context, outcome: Outcome, keys: int, folder: Path
) -> Results | None:
    """Lets Embedra and NumPy write in turns; leaves the last checkpoint."""
    saver = context.contestant(
        "embedra", "save", {"save": 1}, keys=keys, path=folder / "saved"
    )
    if saver is None:
        return None
    results = Results()
    try:
        with Process(saver) as embedra:
            size = int(embedra.facts["bytes"])
            writer = context.contestant(
                "numpy", "write", {}, bytes=size, path=folder / "written"
            )
            if writer is None:
                return None
            turns: dict[str, dict[str, list[Turn]]] = {
                "embedra": {"save": []},
                "numpy": {"write": []},
            }
            with Process(writer) as numpy:
                for _ in range(context.pick(7, 2)):
                    turn = numpy.turn("write", 1)
                    turns["numpy"]["write"].append(turn)
                    turn = embedra.turn("save", 1)
                    turns["embedra"]["save"].append(turn)
                results.facts = {
                    "embedra": embedra.facts,
                    "numpy": numpy.facts,
                }
                results.turns = turns
    except RuntimeError as error:
        outcome.failures.append(f"save: {error}")
        return None
    outcome.raw["save"] = results.to_json()
    return results


def _restore(
    context: Context, outcome: Outcome, keys: int, folder: Path
) -> list[dict[str, float]]:
    """Restores in new processes, and returns the facts of each."""
    restores = []
    for number in range(context.pick(3, 1)):
        contestant = context.contestant(
            "embedra", "restore", {}, keys=keys, path=folder / "saved"
        )
        label = f"restore {number + 1}"
        results = context.compete(outcome, label, [contestant], 0)
        if results.has("embedra"):
            restores.append(results.facts["embedra"])
    return restores
