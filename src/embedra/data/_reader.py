"""The reader: files in, `tf.data` out, with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import tensorflow as tf

from ._block import Block
from ._columns import Columns
from ._decode import decode
from ._errors import DataError, ReadReport
from ._formats import FileFormat, file_format
from ._parquet import parquet_columns, parquet_names, parquet_rows
from ._raw import Fault, RawRows
from ._shuffle import rebatch, shuffle
from ._tensors import to_dataset
from ._text import text_names, text_rows


OnError = Literal["raise", "skip"]
Part = Literal["all", "train", "held_out"]


class ClickReader:
    """Streams a file of clicks as batches of features and labels.

    A malformed row (wrong number of columns, a label other than 0 and 1, a
    number that is none) raises, or is counted and left out. Missing numbers
    come as NaN, which the models of `embedra.models` turn into 0 and an
    indicator. Missing categories come as the id of the empty string. Text
    categories are hashed with `string_ids`; integers of Parquet files are
    ids as they stand.

    Args:
        path: The file; text may be compressed (`.gz`, `.bz2`, `.zst`).
        layout: Name of a layout, see `file_format`.
        columns: What the columns are; default: those of the layout.
        on_error: `"raise"` stops at the first malformed row, `"skip"` leaves
            malformed rows out and counts them in `report`.

    Raises:
        DataError: If the file is missing, empty, or lacks columns.
        ValueError: If the layout is unknown or `columns` are needed.

    Attributes:
        report: What the latest pass over the file found.
        failure: The error that ended the latest pass, if any: inside
            `tf.data` it would otherwise be lost in TensorFlow's own.

    Example:
        >>> reader = ClickReader(
        ...     "log.csv", "csv", Columns("click", categorical=("ad",))
        ... )  # doctest: +SKIP
        >>> model.fit(reader.dataset(256, seed=0))  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | Path,
        layout: str | FileFormat,
        columns: Columns | None = None,
        *,
        on_error: OnError = "raise",
    ) -> None:
        self.path = Path(path)
        self.layout = file_format(layout) if isinstance(layout, str) else layout
        chosen = columns or self.layout.columns or self._stored_columns()
        if chosen is None:
            msg = (
                f"Format {self.layout.name!r} does not say what its columns "
                "are: name the label, numeric and categorical columns."
            )
            raise ValueError(msg)
        self.columns = chosen
        self.on_error = on_error
        self.report = ReadReport(str(path))
        self.failure: DataError | None = None
        self._source_names = self._check_names()

    def blocks(
        self, *, skip: int = 0, report: ReadReport | None = None
    ) -> Iterator[Block]:
        """Streams all usable rows in the order of the file.

        Args:
            skip: Blocks to leave out at the beginning.
            report: Where to count, going on from what it has counted;
                default: a new one.

        Yields:
            Blocks of some thousand rows.

        Raises:
            DataError: At a malformed row if `on_error` is `"raise"`; if the
                file cannot be parsed; if no row is usable.
        """
        self.report = report or ReadReport(str(self.path))
        self.failure = None
        try:
            for raw in islice(self._raw_rows(), skip, None):
                block, faults = decode(raw, self.columns, self._hour)
                self._account(faults)
                self.report.rows += len(block)
                yield block
            if not self.report.rows:
                msg = f"{self.path}: no usable row. {self.report.summary()}"
                raise DataError(msg)
        except DataError as error:
            self.failure = error
            raise

    def check_beginning(self) -> None:
        """Reads the first run of rows, to find a wrong file early.

        Raises:
            DataError: As `blocks`, for that run.
        """
        next(self.blocks(), None)
        self.report = ReadReport(str(self.path))

    def batches(
        self,
        batch_size: int,
        *,
        seed: tuple[int, ...] | int | None = None,
        shuffle_rows: int = 65_536,
        part: Part = "all",
        held_out: float = 0.1,
        skip: int = 0,
    ) -> Iterator[Block]:
        """Streams batches.

        The same arguments give the same batches in any process, so a run
        can go on in the middle of an epoch with `skip`.

        Args:
            batch_size: Rows of a batch; the last may have fewer.
            seed: Seed of the order; `None` keeps the order of the file.
            shuffle_rows: Rows in the buffer that is shuffled.
            part: `"all"` rows, or those that are not (`"train"`) or are
                (`"held_out"`) set apart to measure on.
            held_out: Share of the rows set apart. Which ones depends on
                their place in the file only.
            skip: Batches to leave out at the beginning.

        Yields:
            Blocks of `batch_size` rows.

        Raises:
            DataError: As `blocks`.
        """
        blocks = self.blocks()
        if part != "all":
            blocks = _select(blocks, held_out, wanted=part == "held_out")
        if seed is not None:
            rng = np.random.default_rng(seed)
            blocks = shuffle(blocks, shuffle_rows, rng)
        for number, batch in enumerate(rebatch(blocks, batch_size)):
            if number >= skip:
                yield batch

    def dataset(
        self,
        batch_size: int,
        *,
        seed: tuple[int, ...] | int | None = None,
        shuffle_rows: int = 65_536,
        part: Part = "all",
        held_out: float = 0.1,
        skip: int = 0,
    ) -> tf.data.Dataset:
        """The batches as a dataset of `(features, labels)`.

        Features are a dict from column name to a `[batch]` tensor: float32
        for numeric, int64 for categorical columns. Labels are `[batch]`
        float32. Arguments are those of `batches`; an error of the data
        reaches the caller as a TensorFlow error, its cause as `failure`.
        """

        def blocks() -> Iterator[Block]:
            return self.batches(
                batch_size,
                seed=seed,
                shuffle_rows=shuffle_rows,
                part=part,
                held_out=held_out,
                skip=skip,
            )

        return to_dataset(blocks, self.columns)

    def _stored_columns(self) -> Columns | None:
        """Columns as a converted file names them."""
        if self.layout.kind != "parquet" or not self.path.is_file():
            return None
        return parquet_columns(self.path)

    @property
    def _hour(self) -> str:
        derived = {"hour_of_day", "day_of_week"}
        used = derived & set(self.columns.categorical)
        return self.layout.hour if used else ""

    def _raw_rows(self) -> Iterator[RawRows]:
        if self.layout.kind == "parquet":
            return parquet_rows(self.path, self._source_names)
        return text_rows(self.path, self.layout)

    def _check_names(self) -> list[str]:
        if not self.path.is_file():
            kind = "a folder" if self.path.is_dir() else "missing"
            msg = f"{self.path}: expected a file; it is {kind}."
            raise DataError(msg)
        present = (
            parquet_names(self.path)
            if self.layout.kind == "parquet"
            else text_names(self.path, self.layout)
        )
        derived = ("hour_of_day", "day_of_week") if self._hour else ()
        wanted = [self.columns.label, *self.columns.features]
        wanted = [name for name in wanted if name not in derived]
        twice = sorted({n for n in present if present.count(n) > 1})
        if twice:
            msg = (
                f"{self.path}: more than one column is named "
                f"{', '.join(map(repr, twice))}. Expected each name once."
            )
            raise DataError(msg)
        absent = [name for name in wanted if name not in present]
        if absent:
            msg = (
                f"{self.path}: no column {', '.join(map(repr, absent))}. "
                f"The file has: {', '.join(present)}."
            )
            raise DataError(msg)
        return wanted

    def _account(self, faults: list[Fault]) -> None:
        for fault in faults:
            if self.on_error == "raise":
                msg = (
                    f"{self.path}:{fault.line}: {fault.reason}. Mend the "
                    'line, or leave malformed lines out with on_error="skip" '
                    "(--on-error skip)."
                )
                raise DataError(msg)
            self.report.add_malformed(fault.line, fault.reason)


def _select(
    blocks: Iterator[Block], held_out: float, *, wanted: bool
) -> Iterator[Block]:
    """Rows that are, or are not, set apart, by their place in the file."""
    start = 0
    for block in blocks:
        places = np.arange(start, start + len(block), dtype=np.uint64)
        # Fibonacci hashing scatters consecutive places evenly over [0, 1).
        scattered = places * np.uint64(0x9E3779B97F4A7C15)
        chosen = scattered < np.uint64(held_out * 2.0**64)
        start += len(block)
        rows = block.take(np.flatnonzero(chosen == wanted))
        if len(rows):
            yield rows
