"""Options of all readers but that of Parquet, and the datasets they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

from ._containers import Container
from ._field import Field
from ._files import SourceFile
from ._load_report import LoadReport
from ._make_source import make_options, make_source, open_files
from ._plan import share_of
from ._row_dataset import RowDataset
from ._source import OnError


class ReadOptions(TypedDict, total=False):
    """Options that all readers share; see `ParquetDataset`."""

    partition_count: int | None
    partition_index: int | None
    shuffle: bool | int
    seed: int
    drop_remainder: bool
    num_parallel_reads: int | None
    prefetch: int
    to_dense: bool
    on_error: OnError


def dataset_of_files(
    files: Sequence[SourceFile],
    opener: Callable[[SourceFile], Container],
    batch_size: int,
    fields: Sequence[Field | str] | None,
    report: LoadReport,
    options: ReadOptions,
) -> RowDataset:
    """A dataset of the rows of files.

    Args:
        files: The files.
        opener: Opens one.
        batch_size: Rows of a batch.
        fields: What to read.
        report: Counts what is found.
        options: Those of the reader.

    Raises:
        DataError: If files or columns are missing or do not fit together.
    """
    on_error = options.get("on_error", "raise")
    containers = open_files(files, opener, on_error, report)
    return dataset_of(containers, batch_size, fields, report, options)


def dataset_of(
    containers: Sequence[Container],
    batch_size: int,
    fields: Sequence[Field | str] | None,
    report: LoadReport,
    options: ReadOptions,
) -> RowDataset:
    """A dataset of the rows of containers; see `dataset_of_files`."""
    share = share_of(
        options.get("partition_count"), options.get("partition_index")
    )
    making = make_options(
        batch_size,
        shuffle=options.get("shuffle", False),
        seed=options.get("seed", 0),
        drop_remainder=options.get("drop_remainder", False),
        num_parallel_reads=options.get("num_parallel_reads"),
        prefetch=options.get("prefetch", 2),
        on_error=options.get("on_error", "raise"),
    )
    source = make_source(containers, fields, share, making, report)
    return RowDataset(source, to_dense=options.get("to_dense", False))
