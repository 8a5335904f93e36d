"""Writes results down: a file for each case, one table for all."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from suite.figures import Figure, Outcome


__all__ = ["print_table", "save", "write_markdown"]

VERDICTS = {True: "met", False: "missed", None: ""}
STYLES = {True: "green", False: "bold red", None: ""}
WIDTH = 120
INTRODUCTION = """\
# Results

Written by `benchmarks/run.py`; do not edit. What each line means is in
[../README.md](../README.md). A figure is the median over rounds, with the
least and the greatest in brackets; ratios are taken round by round.
"""


def save(outcome: Outcome, machine: Mapping[str, str], folder: Path) -> None:
    """Writes the case's figures, raw times and machine to `<case>.json`."""
    document = {
        "case": outcome.case,
        "title": outcome.title,
        "machine": dict(machine),
        "failures": outcome.failures,
        "figures": [_to_json(figure) for figure in outcome.figures],
        "raw": outcome.raw,
    }
    path = folder / f"{outcome.case}.json"
    text = json.dumps(_rounded(document), indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def print_table(outcomes: Iterable[Outcome]) -> None:
    """Prints a table for each case: what, figure, target, met or not."""
    console = Console()
    if not console.is_terminal:
        console.width = WIDTH
    for outcome in outcomes:
        table = Table(title=outcome.title, title_justify="left", expand=True)
        table.add_column("what", ratio=4)
        table.add_column("figure", justify="right", ratio=2)
        table.add_column("unit", ratio=1)
        table.add_column("target", justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        table.add_column("note", ratio=2)
        for figure in outcome.figures:
            table.add_row(*_cells(figure), style=STYLES[figure.met])
        console.print(table)
        for failure in outcome.failures:
            console.print(f"Failed: {failure}", style="bold red")


def write_markdown(folder: Path, cases: Iterable[str]) -> Path:
    """Gathers the JSON files of a folder in one page.

    Args:
        folder: Where `save` wrote them.
        cases: Names of the cases, in order. Those without a file are left
            out.

    Returns:
        The page's path.
    """
    path = folder / "README.md"
    path.write_text("\n".join(_page(folder, cases)) + "\n", encoding="utf-8")
    return path


def _page(folder: Path, cases: Iterable[str]) -> Iterator[str]:
    yield INTRODUCTION
    machine: dict[str, str] = {}
    for case in cases:
        source = folder / f"{case}.json"
        if not source.exists():
            continue
        document = json.loads(source.read_text(encoding="utf-8"))
        yield f"## {document['title']}\n"
        yield "| what | figure | unit | target | | note |"
        yield "| --- | ---: | --- | ---: | --- | --- |"
        for line in document["figures"]:
            yield "| " + " | ".join(line["cells"]) + " |"
        for failure in document["failures"]:
            yield f"\nFailed: {failure}"
        yield f"\nMeasured {document['machine']['date']}.\n"
        machine = document["machine"]
    if (folder / "growth.png").exists():
        yield "![Step time over keys per table](growth.png)\n"
    yield "## Machine\n"
    yield from (f"- {name}: {value}" for name, value in machine.items())


def _cells(figure: Figure) -> list[str]:
    return [
        figure.what,
        _value(figure),
        figure.unit,
        str(figure.target or ""),
        VERDICTS[figure.met],
        figure.note,
    ]


def _value(figure: Figure) -> str:
    spread = figure.spread
    if spread is None:
        return "n/a"
    if spread.low == spread.high:
        return _short(spread.median)
    low, high = _short(spread.low), _short(spread.high)
    return f"{_short(spread.median)} ({low} to {high})"


def _short(value: float) -> str:
    """Three digits, without an exponent."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _to_json(figure: Figure) -> dict[str, Any]:
    return {
        "what": figure.what,
        **(dataclasses.asdict(figure.spread) if figure.spread else {}),
        "unit": figure.unit,
        "target": str(figure.target) if figure.target else None,
        "met": figure.met,
        "note": figure.note,
        "cells": _cells(figure),
    }


def _rounded(value: Any) -> Any:
    """Keeps six digits of every float, so that files stay small."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
