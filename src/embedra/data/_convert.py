"""Files written as Parquet, in steps that survive a stop."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from ._converted_rows import RowSource
from ._errors import DataError


# Runs read and rows written so far.
Progress = Callable[[int, int], None]


def convert(
    source: RowSource,
    destination: str | Path,
    *,
    row_group_rows: int = 131_072,
    settings: str = "",
    progress: Progress | None = None,
) -> int:
    """Writes a file as Parquet.

    Row groups are written one by one to files of their own, in a folder beside
    the destination, which takes their place at the end. A conversion that was
    stopped goes on behind the last one of them, if source and settings are the
    same; else it begins anew.

    Args:
        source: The rows.
        destination: The Parquet file; one that is there is replaced.
        row_group_rows: Rows of a row group, at least; the last has fewer.
        settings: Says what, besides the file, the rows depend on.
        progress: Called after each run of rows.

    Returns:
        Rows written.

    Raises:
        DataError: If the source cannot be read or has no rows, or is the
            destination, or that is a folder.
        ValueError: If `row_group_rows` is not positive.
    """
    if row_group_rows < 1:
        msg = f"row_group_rows is 1 or more. Received: {row_group_rows}."
        raise ValueError(msg)
    target = Path(destination)
    _check_target(target, source.path)
    parts = _Parts(target, source, f"{settings} {row_group_rows}")
    pending: list[pa.Table] = []
    count = 0
    runs = parts.runs
    for table in source.tables(skip=runs):
        runs += 1
        pending.append(table)
        count += table.num_rows
        if count >= row_group_rows:
            parts.add(pending, runs)
            pending, count = [], 0
        if progress is not None:
            progress(runs, parts.rows + count)
    if count:
        parts.add(pending, runs)
    if not parts.rows:
        parts.remove()
        msg = f"{source.path}: no usable row. {source.report.summary()}"
        raise DataError(msg)
    parts.join()
    return parts.rows


def _check_target(target: Path, source: Path) -> None:
    if target.is_dir():
        msg = f"{target}: is a folder. Expected the name of a file to write."
        raise DataError(msg)
    if target.exists() and target.samefile(source):
        msg = f"{target}: is the file to read. Expected another to write."
        raise DataError(msg)


class _Parts:
    """Row groups written so far, and what they were made of."""

    def __init__(self, target: Path, source: RowSource, settings: str) -> None:
        self._target = target
        # Hidden: who reads the folder that it is in must not read it.
        self._folder = target.with_name(f".{target.name}.parts")
        self._report = source.report
        status = source.path.stat()
        self._made_of = [
            str(source.path.resolve()),
            status.st_size,
            status.st_mtime_ns,
            settings,
        ]
        self.runs = self.rows = self._count = 0
        self._resume()

    def _resume(self) -> None:
        state: dict[str, Any] = {}
        if self._state.exists():
            state = json.loads(self._state.read_text())
        if state.get("made_of") != self._made_of:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir(parents=True)
            return
        self.runs, self.rows = state["runs"], state["rows"]
        self._count = state["parts"]
        self._report.malformed = state["malformed"]
        self._report.examples[:] = state["examples"]
        self._report.rows = self.rows

    @property
    def _state(self) -> Path:
        return self._folder / "state.json"

    def _part(self, number: int) -> Path:
        return self._folder / f"{number:06}.parquet"

    def add(self, tables: list[pa.Table], runs: int) -> None:
        """Writes a row group, and then that it is there."""
        table = pa.concat_tables(tables)
        path = self._part(self._count)
        pa.parquet.write_table(table, path, row_group_size=table.num_rows)
        self._count += 1
        self.runs, self.rows = runs, self.rows + table.num_rows
        state = {
            "made_of": self._made_of,
            "runs": self.runs,
            "rows": self.rows,
            "parts": self._count,
            "malformed": self._report.malformed,
            "examples": self._report.examples,
        }
        fresh = self._folder / "state.new"
        fresh.write_text(json.dumps(state))
        os.replace(fresh, self._state)

    def join(self) -> None:
        """Makes one file of the row groups."""
        fresh = self._folder / "joined.parquet"
        schema = pa.parquet.read_schema(self._part(0))
        with pa.parquet.ParquetWriter(fresh, schema) as writer:
            for table in self._tables():
                writer.write_table(table, row_group_size=table.num_rows)
        os.replace(fresh, self._target)
        self.remove()

    def _tables(self) -> Iterator[pa.Table]:
        for number in range(self._count):
            yield pa.parquet.read_table(self._part(number))

    def remove(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self._folder)
