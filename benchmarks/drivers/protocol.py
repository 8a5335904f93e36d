"""How a driver process talks with the suite.

The suite starts several drivers, waits until all are ready, and then gives
each its turn, so that drift of the machine falls on all alike. Messages are
JSON objects, one a line:

* driver: `{"event": "ready", "facts": {...}}` when set up and warm;
* suite: `{"measure": NAME, "repetitions": N}`;
* driver: `{"event": "turn", "seconds": [...], "values": [...]}`.

The suite sends `null`, and closes the driver's input, to end it. Whatever else
a library prints goes to stderr, so that it cannot garble the messages.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


__all__ = ["Driver", "parse_arguments"]

Run = Callable[[int], Any]


@dataclass
class _Measure:
    run: Run
    prepare: Callable[[], None] | None
    warm: bool
    calls: int = 0

    def __call__(self) -> tuple[float, Any]:
        """Runs once and returns the seconds that it took and its result."""
        if self.prepare:
            self.prepare()
        start = time.perf_counter()
        result = self.run(self.calls)
        seconds = time.perf_counter() - start
        self.calls += 1
        return seconds, result


@dataclass
class Driver:
    """The measures and facts of one process.

    Example:
        driver = Driver()
        driver.fact("first_step_seconds", 1.2)
        driver.measure("step", lambda i: float(step(i)))
        driver.serve()
    """

    _facts: dict[str, Any] = field(default_factory=dict)
    _measures: dict[str, _Measure] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Keeps the real stdout for messages, and sends prints to stderr.
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def fact(self, name: str, value: Any) -> None:
        """Records a figure that is measured once, during set-up."""
        self._facts[name] = value

    def measure(
        self,
        name: str,
        run: Run,
        *,
        prepare: Callable[[], None] | None = None,
        warm: bool = True,
    ) -> None:
        """Adds something to be timed.

        Args:
            name: What the suite calls it.
            run: Gets the number of calls so far, and is timed. A number or
                a dict of numbers that it returns is passed on.
            prepare: Called before each run, not timed.
            warm: Run once, unrecorded, at the start of each turn, as the
                other processes' turns have emptied the caches.
        """
        self._measures[name] = _Measure(run, prepare, warm)

    def serve(self) -> None:
        """Says "ready" and answers requests until the suite ends it."""
        self._send({"event": "ready", "facts": self._facts})
        for line in sys.stdin:
            request = json.loads(line)
            if request is None:
                break
            measure = self._measures[request["measure"]]
            if measure.warm:
                measure()
            runs = [measure() for _ in range(request["repetitions"])]
            self._send(
                {
                    "event": "turn",
                    "seconds": [seconds for seconds, _ in runs],
                    "values": [value for _, value in runs],
                }
            )

    def _send(self, message: dict[str, Any]) -> None:
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


def parse_arguments(cases: list[str]) -> argparse.Namespace:
    """Reads a driver's command line.

    Args:
        cases: Names of the cases that this driver knows.

    Returns:
        `case`, `optimizer`, `keys`, `features`, `batches`, `threads`, and the
        `path` and `bytes` of what touches the disk.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=cases)
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=26)
    parser.add_argument("--batches", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--path", default="")
    parser.add_argument("--bytes", type=int, default=0)
    return parser.parse_args()
