"""The files of `embedra train`, opened and looked into before the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from embedra.data import ClickReader, Columns

from ._console import UsageError


class Format(StrEnum):
    """Layouts of files."""

    CRITEO = "criteo"
    AVAZU = "avazu"
    CSV = "csv"
    PARQUET = "parquet"


class OnError(StrEnum):
    """What to do about malformed rows."""

    RAISE = "raise"
    SKIP = "skip"


@dataclass(frozen=True)
class Inputs:
    """Readers of the files.

    Attributes:
        data: The rows to train on.
        validation: The rows to choose the best epoch by, if of a file.
        test: The rows of the final measure, if any.
    """

    data: ClickReader
    validation: ClickReader | None
    test: ClickReader | None


def open_inputs(
    data: Path,
    validation: Path | None,
    test: Path | None,
    layout: Format,
    columns: Columns | None,
    on_error: OnError,
) -> Inputs:
    """Opens the files, and reads the first rows of those needed later.

    Raises:
        UsageError: If a file cannot be read, or its columns are not named.
    """

    def open_reader(path: Path) -> ClickReader:
        return ClickReader(path, layout.value, columns, on_error=on_error.value)

    def open_for_later(path: Path | None) -> ClickReader | None:
        if path is None:
            return None
        reader = open_reader(path)
        reader.check_beginning()
        return reader

    with usage_errors():
        return Inputs(
            open_reader(data),
            open_for_later(validation),
            open_for_later(test),
        )


def format_of(path: Path, given: Format | None) -> Format:
    """The layout that is given, or else the one that the name tells.

    Raises:
        UsageError: If neither does.
    """
    if given is not None:
        return given
    if path.suffix == ".parquet":
        return Format.PARQUET
    names = ", ".join(Format)
    msg = f"{path}: say with --format what it is: {names}."
    raise UsageError(msg)


def columns_of(
    label: str | None, numeric: str, categorical: str
) -> Columns | None:
    """Columns as options name them, with commas between; `None` if not named.

    Raises:
        UsageError: If they are named in part, or twice.
    """
    if label is None and not numeric and not categorical:
        return None
    if label is None:
        msg = "Name the label column too: --label NAME."
        raise UsageError(msg)

    def split(names: str) -> tuple[str, ...]:
        return tuple(n.strip() for n in names.split(",") if n.strip())

    with usage_errors():
        return Columns(label, split(numeric), split(categorical))


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turns errors of arguments into those of options.

    Raises:
        UsageError: For a ValueError within.
    """
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error
