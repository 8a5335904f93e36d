"""Rows of delimited text, streamed by Arrow's CSV parser.

The parser splits lines into columns and nothing more: every value arrives as
bytes, so that a bad number can be reported with its line. A quoted value may
hold the delimiter but no line break; hence one line is one row, always, see
`_lines`.
"""

from __future__ import annotations

import codecs
import csv
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from ._errors import DataError
from ._formats import FileFormat
from ._lines import OPEN_QUOTE, Lines
from ._raw import Fault, RawRows


# Also the longest line that can be read.
_BLOCK_BYTES = 4 << 20


def text_rows(path: Path, layout: FileFormat) -> Iterator[RawRows]:
    """Streams the rows of a text file, gzip and others unpacked by suffix.

    Args:
        path: The file.
        layout: Its layout.

    Yields:
        Runs of at most 4 MiB of text, every column as bytes. A line
        with the wrong number of columns is a fault, not a row.

    Raises:
        DataError: If the file is empty or cannot be parsed.
    """
    first = _first_line(path, layout)
    has_header = not layout.names or (
        layout.optional_header and tuple(first) == layout.names
    )
    names = first if has_header else layout.names
    header_lines = int(has_header)
    wrong_lines: list[int] = []
    faults: list[Fault] = []

    def skip_wrong(row: pyarrow.csv.InvalidRow) -> str:
        # The parser runs ahead on a thread of its own: only take notes here.
        insort(wrong_lines, row.number)
        reason = (
            "a quote is not closed on its line"
            if row.text == OPEN_QUOTE
            else f"{row.actual_columns} columns, expected {len(names)}"
        )
        faults.append(Fault(row.number, reason))
        return "skip"

    start = 0
    try:
        for batch in _open(path, layout, names, header_lines, skip_wrong):
            line_of = partial(_line, wrong_lines, header_lines + start)
            columns = dict(zip(names, batch.columns, strict=True))
            yield RawRows(columns, batch.num_rows, line_of, _drain(faults))
            start += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        msg = f"{path}: cannot be parsed as {layout.name}: {error}"
        raise DataError(msg) from error
    if faults:
        empty = dict.fromkeys(names, pa.array([], pa.binary()))
        yield RawRows(empty, 0, lambda position: position, _drain(faults))


def _drain(faults: list[Fault]) -> list[Fault]:
    """Takes out what is there now; the parser may be adding more."""
    count = len(faults)
    taken = faults[:count]
    del faults[:count]
    return taken


def _line(wrong_lines: Sequence[int], before: int, position: int) -> int:
    """The line of a row, given those lines that are not rows."""
    line = before + position + 1
    for wrong in wrong_lines:
        if wrong > line:
            break
        line += 1
    return line


def _first_line(path: Path, layout: FileFormat) -> list[str]:
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            start = stream.read(_BLOCK_BYTES)
    except OSError as error:
        msg = f"{path}: cannot be read: {error}"
        raise DataError(msg) from error
    if not start.strip():
        msg = f"{path}: the file is empty, expected rows of {layout.name}."
        raise DataError(msg)
    if start.startswith(b"\x1f\x8b"):
        msg = f"{path}: is packed by gzip. Expected a name that ends in .gz."
        raise DataError(msg)
    encoding = _other_encoding(start)
    if encoding:
        msg = (
            f"{path}: is not UTF-8: it begins as {encoding} does. Expected "
            f"UTF-8; convert the file, for example with iconv -f {encoding} "
            f"-t UTF-8 {path.name} > converted.csv."
        )
        raise DataError(msg)
    line: str = start.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace")
    line = line.removesuffix("\r")
    if "\r" in line:
        msg = (
            f"{path}: lines end with a carriage return alone. Expected line "
            "feeds; convert the file, for example with "
            f"tr '\\r' '\\n' < {path.name} > converted.csv."
        )
        raise DataError(msg)
    if not layout.quoted:
        return line.split(layout.delimiter)
    try:
        return next(
            csv.reader([line], delimiter=layout.delimiter, strict=True), []
        )
    except csv.Error as error:
        msg = f"{path}:1: cannot be split into columns: {error}."
        raise DataError(msg) from error


def _other_encoding(start: bytes) -> str:
    """The encoding that a text begins as, where it cannot be UTF-8."""
    marks = (
        (codecs.BOM_UTF32_LE, "UTF-32"),  # Begins with the mark of UTF-16.
        (codecs.BOM_UTF32_BE, "UTF-32"),
        (codecs.BOM_UTF16_LE, "UTF-16"),
        (codecs.BOM_UTF16_BE, "UTF-16"),
    )
    for mark, encoding in marks:
        if start.startswith(mark):
            return encoding
    # Without a mark, every other byte of a UTF-16 header is zero.
    zeros = [byte == 0 for byte in start[:4]]
    if zeros == [False, True, False, True]:
        return "UTF-16LE"
    return "UTF-16BE" if zeros == [True, False, True, False] else ""


def text_names(path: Path, layout: FileFormat) -> list[str]:
    """Names of the columns of a text file.

    Raises:
        DataError: If the file is empty, or is not text of this kind.
    """
    first = _first_line(path, layout)
    return list(layout.names) or first


def _open(
    path: Path,
    layout: FileFormat,
    names: Sequence[str],
    header_lines: int,
    skip_wrong: Callable[[pyarrow.csv.InvalidRow], str],
) -> pyarrow.csv.CSVStreamingReader:
    return pyarrow.csv.open_csv(
        Lines(
            pa.input_stream(str(path), compression="detect"),
            layout,
            len(names),
            _BLOCK_BYTES,
        ),
        read_options=pyarrow.csv.ReadOptions(
            # Line numbers are known only where parsing is not parallel.
            use_threads=False,
            block_size=_BLOCK_BYTES,
            column_names=list(names),
            skip_rows=header_lines,
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=layout.delimiter,
            quote_char='"' if layout.quoted else False,
            ignore_empty_lines=False,
            invalid_row_handler=skip_wrong,
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.binary()),
            strings_can_be_null=False,
        ),
    )
