"""`embedra convert`: writes files of rows as Parquet."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from embedra.data import (
    ClickReader,
    ClickRows,
    Columns,
    CsvRows,
    RowSource,
    TFRecordRows,
    convert as convert_rows,
)

from ._console import (
    UsageError,
    check_one_process,
    console,
    quiet_tensorflow,
    readable_errors,
    warn,
)
from ._inputs import OnError, columns_of, usage_errors


# Of the text that is parsed at once.
_RUN_BYTES = 4 << 20


class Kind(StrEnum):
    """Files that can be converted."""

    CRITEO = "criteo"
    AVAZU = "avazu"
    CSV = "csv"
    TFRECORD = "tfrecord"


def convert(
    kind: Annotated[Kind, typer.Argument(help="What the file is.")],
    source: Annotated[Path, typer.Argument(help="The file to read.")],
    destination: Annotated[
        Path,
        typer.Argument(help="The Parquet file; one that is there is replaced."),
    ],
    label: Annotated[
        str | None,
        typer.Option(
            help="Label column of a csv file of clicks; without it all "
            "columns are kept as they are."
        ),
    ] = None,
    integer_columns: Annotated[
        str, typer.Option(help="Numeric columns, separated by commas.")
    ] = "",
    categorical_columns: Annotated[
        str,
        typer.Option(help="Columns to hash to ids, separated by commas."),
    ] = "",
    delimiter: Annotated[
        str, typer.Option(help="Between two values of a csv file; \\t for tab.")
    ] = ",",
    types: Annotated[
        str,
        typer.Option(
            help="Types of columns of a csv file that are not those of its "
            "first MiB, as price=float64,zip=string."
        ),
    ] = "",
    row_group_rows: Annotated[
        int, typer.Option(min=1, help="Rows of a row group, at least.")
    ] = 131_072,
    on_error: Annotated[
        OnError,
        typer.Option(help="Malformed rows: stop, or count and leave out."),
    ] = OnError.RAISE,
) -> None:
    """Writes a file as Parquet; a conversion that was stopped goes on."""
    quiet_tensorflow()
    with readable_errors():
        check_one_process("convert")
        columns = columns_of(label, integer_columns, categorical_columns)
        delimiter = delimiter.replace("\\t", "\t")
        if not destination.parent.is_dir():
            msg = f"{destination.parent}: no such folder to write to."
            raise UsageError(msg)
        with usage_errors():
            rows = _rows(
                kind, source, columns, delimiter, on_error, _types(types)
            )
        with _progress() as progress:
            task = progress.add_task(
                source.name, total=_runs(kind, source), rows=0
            )
            written = convert_rows(
                rows,
                destination,
                row_group_rows=row_group_rows,
                settings=(f"{kind} {columns} {delimiter!r} {on_error} {types}"),
                progress=lambda runs, count: _show(progress, task, runs, count),
            )
        if rows.report.malformed:
            warn(rows.report.summary())
        console.print(f"Wrote {written:,} rows to {destination}.")


def _rows(
    kind: Kind,
    source: Path,
    columns: Columns | None,
    delimiter: str,
    on_error: OnError,
    types: dict[str, str],
) -> RowSource:
    if kind is Kind.CSV and columns is None:
        return CsvRows(source, delimiter, on_error.value, types)
    if types:
        msg = "--types is for csv files without --label."
        raise UsageError(msg)
    if kind is Kind.TFRECORD:
        return TFRecordRows(source, on_error.value)
    reader = ClickReader(source, kind.value, columns, on_error=on_error.value)
    return ClickRows(reader)


def _types(given: str) -> dict[str, str]:
    """Types by the names of columns."""
    pairs = [one.partition("=") for one in given.split(",") if one]
    if any(not name or not mark for name, mark, _ in pairs):
        msg = f"--types is NAME=TYPE,NAME=TYPE. Received: {given!r}."
        raise UsageError(msg)
    return {name: kind for name, _, kind in pairs}


def _runs(kind: Kind, source: Path) -> int | None:
    """About how many runs the file has, where its size tells."""
    if kind is Kind.TFRECORD or source.suffix in (".gz", ".bz2", ".zst"):
        return None
    return source.stat().st_size // _RUN_BYTES + 1


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


def _show(progress: Progress, task: TaskID, runs: int, rows: int) -> None:
    progress.update(task, completed=runs, rows=rows)
