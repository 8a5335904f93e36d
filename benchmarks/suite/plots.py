"""Plots of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from suite.figures import Spread


__all__ = ["growth", "scaling"]


def growth(
    path: Path,
    sizes: Sequence[int],
    series: Mapping[str, Sequence[Sequence[float]]],
) -> None:
    """Draws milliseconds over keys per table, with the range of the rounds.

    Args:
        path: PNG to write.
        sizes: Keys per table.
        series: For each line, the seconds of every round at each size.
    """
    with mpl.rc_context({"font.size": 10, "svg.hashsalt": "embedra"}):
        canvas = Canvas(figsize=(6.5, 4), layout="constrained", dpi=120)
        axes = canvas.add_subplot()
        for name, points in series.items():
            spreads = [Spread.of(seconds).scaled(1e3) for seconds in points]
            medians = [s.median for s in spreads]
            below = [s.median - s.low for s in spreads]
            above = [s.high - s.median for s in spreads]
            axes.errorbar(
                sizes,
                medians,
                yerr=[below, above],
                label=name,
                marker="o",
                capsize=3,
            )
        axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel("keys per table")
        axes.set_ylabel("milliseconds, median and range")
        axes.set_title("Training step as tables grow (8 tables, Adam)")
        axes.grid(alpha=0.3)
        axes.legend()
        canvas.savefig(path)


def scaling(
    path: Path, ranks: Sequence[int], series: Mapping[str, Sequence[float]]
) -> None:
    """Draws the efficiency over the number of ranks, estimated.

    Args:
        path: PNG to write.
        ranks: Numbers of ranks.
        series: For each network, the part of its speed that a rank keeps.
    """
    with mpl.rc_context({"font.size": 10, "svg.hashsalt": "embedra"}):
        canvas = Canvas(figsize=(6.5, 4), layout="constrained", dpi=120)
        axes = canvas.add_subplot()
        for name, values in series.items():
            axes.plot(ranks, values, label=name, marker="o")
        axes.set_xscale("log", base=2)
        axes.set_xticks(ranks, [str(number) for number in ranks])
        axes.minorticks_off()
        axes.set_ylim(0, 1.05)
        axes.set_xlabel("ranks")
        axes.set_ylabel("speed of a rank, to one by itself")
        axes.set_title("Estimated scaling, a batch of its own for each rank")
        axes.grid(alpha=0.3)
        axes.legend()
        canvas.savefig(path)
