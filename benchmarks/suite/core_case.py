"""Section 5.2: the native core alone, in turns with NumPy's `take`."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from suite.context import Context
from suite.figures import Outcome, Spread, at_least
from suite.turns import Process


__all__ = ["run"]

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "csrc" / "embedra" / "core"
BUILD = ROOT / "benchmarks" / ".build"
BATCH = 65_536
TARGET = "embedra_core_benchmark"


def run(context: Context) -> Outcome:
    """Alternates the core's benchmark program with a NumPy process."""
    outcome = Outcome("core", "Native core alone, dim 16, batch 65,536")
    keys = context.pick(5_000_000, 200_000)
    repetitions = context.pick(20, 3)
    try:
        program = _build()
    except RuntimeError as error:
        outcome.failures.append(str(error))
        return outcome
    floor = context.contestant("numpy", "take", {}, keys=keys)
    if floor is None:
        msg = "NumPy runs in this Python and cannot be absent."
        raise RuntimeError(msg)
    command = [str(program), *map(str, (keys, context.threads, repetitions))]
    names = {
        f"find, {context.threads} thread(s)": "lookup",
        "insert new keys, overall": "insert",
        f"adam, {context.threads} thread(s)": "adam",
        "memory, resident": "bytes_per_key",
    }
    rates: dict[str, list[float]] = {"take": []}
    with Process(floor) as process:
        for _ in range(context.pick(7, 2)):
            for name, value in _run_program(command).items():
                if name in names:
                    rates.setdefault(names[name], []).append(value)
            turn = process.turn("take", repetitions)
            rate = BATCH / statistics.median(turn.seconds)
            rates["take"].append(rate * 1e-6)
    outcome.raw["millions_per_second"] = rates
    _judge(outcome, rates)
    return outcome


def _judge(outcome: Outcome, rates: dict[str, list[float]]) -> None:
    def against(above: str, below: str) -> Spread:
        pairs = zip(rates[above], rates[below], strict=True)
        return Spread.of([a / b for a, b in pairs])

    for what, measure in {
        "NumPy `take` of dense rows": "take",
        "lookup of existing keys": "lookup",
        "fused Adam on existing keys": "adam",
    }.items():
        spread = Spread.of(rates[measure])
        outcome.add(what, spread, "M/s")
    outcome.add(
        "lookup, to NumPy `take`",
        against("lookup", "take"),
        "x",
        at_least(0.6),
    )
    outcome.add(
        "insert of new keys",
        Spread.of(rates["insert"]),
        "M/s",
        at_least(5.0),
    )
    outcome.add(
        "fused Adam, to lookup",
        against("adam", "lookup"),
        "x",
        at_least(0.5),
    )


def _run_program(command: list[str]) -> dict[str, float]:
    """Runs the benchmark once and returns its figures by name."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = (
        json.loads(line)
        for line in done.stdout.splitlines()
        if line.startswith("{")
    )
    return {line["name"]: line["value"] for line in lines}


def _build() -> Path:
    """Builds the program and returns where it is."""
    beside = Path(sys.executable).parent / "cmake"
    cmake = str(beside) if beside.exists() else shutil.which("cmake")
    if cmake is None:
        msg = "The core's benchmark needs CMake: `pip install cmake`."
        raise RuntimeError(msg)
    configure = [
        *(cmake, "-S", str(SOURCE), "-B", str(BUILD)),
        "-DCMAKE_BUILD_TYPE=Release",
        "-DEMBEDRA_BUILD_TESTS=ON",
    ]
    build = [cmake, "--build", str(BUILD), "--target", TARGET, "-j", "2"]
    for command in (configure, build):
        done = subprocess.run(
            command, check=False, capture_output=True, text=True
        )
        if done.returncode:
            msg = f"Cannot build {TARGET}: {done.stderr.strip()[-400:]}"
            raise RuntimeError(msg)
    found = [p for p in BUILD.rglob(TARGET) if p.is_file()]
    if not found:
        msg = f"The build made no {TARGET} under {BUILD}."
        raise RuntimeError(msg)
    return found[0]
