"""`embedra inspect`: looks into files."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from embedra.data import ColumnProfile, DataProfile, profile

from ._console import console, quiet_tensorflow, readable_errors


inspect = typer.Typer(no_args_is_help=True, help="Looks into files.")


@inspect.callback()
def _common() -> None:
    """Looks into files."""


@inspect.command("data")
def inspect_data(
    path: Annotated[
        str, typer.Argument(help="A file, folder, pattern or URL of rows.")
    ],
    sample: Annotated[
        int, typer.Option(min=0, help="How many of the first rows to show.")
    ] = 3,
) -> None:
    """Shows rows, columns, nulls, distinct values and a sample of files."""
    quiet_tensorflow()
    with readable_errors():
        with Progress(
            TextColumn("reading rows"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
        ) as progress:
            task = progress.add_task("", total=None)
            found = profile(
                path,
                sample=sample,
                progress=lambda rows, total: progress.update(
                    task, completed=rows, total=total
                ),
            )
        _show(found)


def _show(found: DataProfile) -> None:
    console.print(
        f"{found.files:,} files, {found.units:,} x {found.unit_word}, "
        f"{found.rows:,} rows"
    )
    table = Table()
    for heading in ("column", "type", "tensor", "nulls", "distinct"):
        number = heading in ("nulls", "distinct")
        table.add_column(heading, justify="right" if number else "left")
    for column in found.columns:
        table.add_row(
            column.name,
            column.kind,
            column.tensor or "none",
            f"{column.nulls:,}",
            _distinct(column),
        )
    console.print(table)
    for row in found.sample:
        console.print(", ".join(f"{k}={_short(v)}" for k, v in row.items()))


def _distinct(column: ColumnProfile) -> str:
    if column.distinct is None:
        return "?"
    mark = "" if column.distinct.exact else "~"
    return f"{mark}{column.distinct.estimate():,}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
