"""Datasets of rows of Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._containers import ParquetContainer
from ._field import Field
from ._files import Names, find_files
from ._load_report import LoadReport
from ._make_source import make_options, make_source, open_files
from ._plan import share_of
from ._row_dataset import RowDataset
from ._schema import resolve
from ._source import OnError


class ParquetDataset(RowDataset):
    """Batches of rows of Parquet files, as a `tf.data.Dataset`.

    Args:
        filenames: A path, folder, pattern or URL, a list of these, or a
            dataset of names. Folders such as `day=7/` are columns.
        batch_size: Rows of a batch; the last of an epoch may have fewer.
        fields: Names or `Field`s to read; default: all columns of the first
            file, with types wide enough for all files.
        partition_count: Number of ranks that share the rows. Default: those
            of the job, `embedra.context.world_size`; give 1 to have all rows
            on each rank.
        partition_index: This rank, from 0; default `embedra.context.rank`. All
            ranks together read each row once, none more than one row more than
            another.
        shuffle: Whether to shuffle files, row groups, and rows in windows of
            65,536; or the number of rows of a window. Each epoch has another
            order.
        seed: Seed of the order; the same on all ranks.
        drop_remainder: Whether to leave out a last, smaller batch.
        num_parallel_reads: Row groups read at the same time; default 2.
            Each is decoded by the threads of Arrow too.
        prefetch: Batches made ahead.
        to_dense: Whether to pad ragged columns to the longest list of the
            batch, with the default of the field or zero.
        on_error: `"raise"` stops at the first thing that cannot be read;
            `"skip"` leaves it out and counts it in `report`.
        filesystem: A `pyarrow.fs` or fsspec file system of the names.

    Raises:
        DataError: If files or columns are missing or do not fit together;
            the message names them.
        ValueError: If an argument has no sense.

    Example:
        >>> data = ParquetDataset(
        ...     "clicks/*.parquet", 4096, shuffle=True
        ... )  # doctest: +SKIP
    """

    def __init__(
        self,
        filenames: Names,
        batch_size: int = 1,
        fields: Sequence[Field | str] | None = None,
        partition_count: int | None = None,
        partition_index: int | None = None,
        *,
        shuffle: bool | int = False,
        seed: int = 0,
        drop_remainder: bool = False,
        num_parallel_reads: int | None = None,
        prefetch: int = 2,
        to_dense: bool = False,
        on_error: OnError = "raise",
        filesystem: Any = None,
    ) -> None:
        options = make_options(
            batch_size,
            shuffle=shuffle,
            seed=seed,
            drop_remainder=drop_remainder,
            num_parallel_reads=num_parallel_reads,
            prefetch=prefetch,
            on_error=on_error,
        )
        share = share_of(partition_count, partition_index)
        report = LoadReport()
        files = find_files(filenames, filesystem)
        containers = open_files(files, ParquetContainer, on_error, report)
        source = make_source(containers, fields, share, options, report)
        super().__init__(source, to_dense=to_dense)

    @staticmethod
    def read_schema(
        filename: Names,
        fields: Sequence[Field | str] | None = None,
        filesystem: Any = None,
    ) -> list[Field]:
        """What there is to read in files, with nothing left open.

        Args:
            filename: As `filenames` of the dataset.
            fields: Names or `Field`s to tell of; default: all columns.
            filesystem: As for the dataset.

        Returns:
            Fields with a dtype each, and a `ragged_rank` or a `shape`.

        Raises:
            DataError: If files or columns are missing or do not fit together.
        """
        files = find_files(filename, filesystem)
        containers = open_files(files, ParquetContainer, "raise", LoadReport())
        return [column.settled() for column in resolve(containers, fields)]
