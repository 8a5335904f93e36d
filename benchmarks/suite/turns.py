"""Starts driver processes and lets them take turns.

Set-up of one driver never overlaps another's, and only one works at a time:
A B A B ... A driver that dies is dropped, and its end is reported.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any


__all__ = ["Contestant", "Process", "Results", "Turn", "take_turns"]

FOLDER = Path(__file__).resolve().parent.parent
ENVIRONMENT = (
    "env",
    "TF_CPP_MIN_LOG_LEVEL=3",
    "CUDA_VISIBLE_DEVICES=-1",
    "PYTHONUNBUFFERED=1",
)


@dataclass(frozen=True)
class Contestant:
    """A driver, and what it does in each of its turns.

    Attributes:
        name: What the results call it.
        command: Command line, run in the folder `benchmarks`.
        repetitions: Repetitions in a turn, for each of its measures.
        variables: Environment variables, as `NAME=value`.
    """

    name: str
    command: Sequence[str]
    repetitions: Mapping[str, int] = field(default_factory=dict)
    variables: Sequence[str] = ()


@dataclass(frozen=True)
class Turn:
    """What a driver answered: one entry for each repetition."""

    seconds: list[float]
    values: list[Any]


@dataclass
class Results:
    """What the contestants of one run measured.

    Attributes:
        facts: Figures measured once during set-up, by contestant.
        turns: Turns by contestant and measure, one for each round.
        failures: Why contestants that are missing are missing.
    """

    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    turns: dict[str, dict[str, list[Turn]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether the contestant took all its turns."""
        return name in self.facts and name not in self.failures

    def medians(self, name: str, measure: str) -> list[float]:
        """Median seconds of each of a contestant's turns."""
        return [
            statistics.median(turn.seconds)
            for turn in self.turns[name][measure]
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain dicts and lists."""
        return {
            name: {
                "facts": facts,
                "turns": {
                    measure: [vars(turn) for turn in turns]
                    for measure, turns in self.turns[name].items()
                },
            }
            for name, facts in self.facts.items()
        }


class Process:
    """A driver process that is set up and waits for its turns.

    Args:
        contestant: What to start.

    Raises:
        RuntimeError: If it ends before it is ready, or during a turn. The
            message holds the last line that it wrote to stderr.
    """

    def __init__(self, contestant: Contestant) -> None:
        # Closed by __exit__.
        self._errors: IO[str] = tempfile.TemporaryFile(  # noqa: SIM115
            "w+", encoding="utf-8"
        )
        self._process = subprocess.Popen(
            [*ENVIRONMENT, *contestant.variables, *contestant.command],
            cwd=FOLDER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
        )
        self.facts: dict[str, Any] = self._receive("ready")["facts"]

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.stdin:
            # mpirun does not tell its ranks that the input has ended.
            with suppress(BrokenPipeError):
                self._process.stdin.write("null\n")
                self._process.stdin.close()
        if error:
            self._process.kill()
        self._process.wait()
        self._errors.close()

    def turn(self, measure: str, repetitions: int) -> Turn:
        """Lets the driver run a measure some times, and waits for it."""
        request = {"measure": measure, "repetitions": repetitions}
        pipe = self._process.stdin
        if pipe is None:
            msg = "The driver has no input."
            raise RuntimeError(msg)
        try:
            pipe.write(json.dumps(request) + "\n")
            pipe.flush()
        except BrokenPipeError:
            raise RuntimeError(self._last_words()) from None
        answer = self._receive("turn")
        return Turn(answer["seconds"], answer["values"])

    def _receive(self, event: str) -> dict[str, Any]:
        for line in self._process.stdout or ():
            # Libraries may print before the driver takes stdout over.
            if line.startswith("{"):
                message: dict[str, Any] = json.loads(line)
                if message.get("event") == event:
                    return message
        self._process.wait()
        raise RuntimeError(self._last_words())

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = [line for line in self._errors if line.strip()]
        last = lines[-1].strip() if lines else "nothing on stderr"
        return f"ended with status {self._process.returncode}: {last}"


def take_turns(contestants: Sequence[Contestant], rounds: int) -> Results:
    """Starts all contestants, then gives each its turn in every round.

    Args:
        contestants: Drivers that fit in memory together.
        rounds: Number of turns that each gets.

    Returns:
        What they measured.
    """
    results = Results()
    with ExitStack() as stack:
        live: dict[str, tuple[Contestant, Process]] = {}
        for contestant in contestants:
            try:
                process = stack.enter_context(Process(contestant))
            except RuntimeError as error:
                results.failures[contestant.name] = str(error)
                continue
            live[contestant.name] = contestant, process
            results.facts[contestant.name] = process.facts
            results.turns[contestant.name] = {
                measure: [] for measure in contestant.repetitions
            }
        for _ in range(rounds):
            for name, (contestant, process) in list(live.items()):
                try:
                    for measure, count in contestant.repetitions.items():
                        turn = process.turn(measure, count)
                        results.turns[name][measure].append(turn)
                except RuntimeError as error:
                    results.failures[name] = str(error)
                    del live[name]
    return results
