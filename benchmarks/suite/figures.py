"""Figures, the targets they are held to, and their statistics."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


__all__ = [
    "Figure",
    "Outcome",
    "Spread",
    "Target",
    "at_least",
    "at_most",
    "ratio",
]


@dataclass(frozen=True)
class Spread:
    """The median of several rounds, with the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        return cls(statistics.median(values), min(values), max(values))

    @classmethod
    def exact(cls, value: float) -> Spread:
        """A figure that was measured once."""
        return cls(value, value, value)

    def scaled(self, factor: float) -> Spread:
        """The same spread in another unit."""
        return Spread(
            self.median * factor, self.low * factor, self.high * factor
        )


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """The spread of `above / below`, round by round.

    The two series are medians of turns that were taken side by side, so that
    drift of the machine from round to round cancels out.
    """
    return Spread.of([a / b for a, b in zip(above, below, strict=True)])


@dataclass(frozen=True)
class Target:
    """A bound on a figure's median."""

    bound: float
    lower: bool

    def met_by(self, value: float) -> bool:
        """Whether the value is on the right side of the bound."""
        return value >= self.bound if self.lower else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.lower else '≤'} {self.bound:g}"


def at_least(bound: float) -> Target:
    """A figure that should be large."""
    return Target(bound, lower=True)


def at_most(bound: float) -> Target:
    """A figure that should be small."""
    return Target(bound, lower=False)


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes:
        what: What was measured.
        spread: The figure, or None where it could not be measured.
        unit: Its unit, such as "x" for a ratio.
        target: What it is held to, if anything.
        note: Why it is missing, or what to know about it.
    """

    what: str
    spread: Spread | None
    unit: str
    target: Target | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target or a figure."""
        if self.spread is None or self.target is None:
            return None
        return self.target.met_by(self.spread.median)


@dataclass
class Outcome:
    """All that one case found.

    Attributes:
        case: Name of the case.
        title: What it is about, for the reader.
        figures: Lines of the table.
        raw: Seconds of every turn and the facts of each process.
        failures: What went wrong, a line each. An absent peer is no failure.
    """

    case: str
    title: str
    figures: list[Figure] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(
        self,
        what: str,
        spread: Spread | None,
        unit: str,
        target: Target | None = None,
        note: str = "",
    ) -> None:
        """Adds a line to the table."""
        self.figures.append(Figure(what, spread, unit, target, note))
