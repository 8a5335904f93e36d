"""The names under which HybridBackend has readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ._field import Field
from ._files import Names
from ._other_readers import read_orc
from ._parquet_dataset import ParquetDataset
from ._row_dataset import RowDataset


class UnbatchedRows:
    """Rows of files before it is said how to batch them.

    Args:
        reader: Reads them.
        filenames: Their names.
        **options: For the reader.
    """

    def __init__(
        self,
        reader: Callable[..., RowDataset],
        filenames: Names,
        **options: Any,
    ) -> None:
        self._reader = reader
        self._filenames = filenames
        self._options = options

    def batch(
        self, batch_size: int, drop_remainder: bool = False
    ) -> RowDataset:
        """Batches of rows in order.

        Args:
            batch_size: Rows of a batch.
            drop_remainder: Whether to leave out a last, smaller batch.
        """
        return self._reader(
            self._filenames,
            batch_size,
            drop_remainder=drop_remainder,
            **self._options,
        )

    def shuffle_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        buffer_size: int | None = None,
        seed: int | None = None,
    ) -> RowDataset:
        """Batches of shuffled rows, in another order in each epoch.

        Args:
            batch_size: Rows of a batch.
            drop_remainder: Whether to leave out a last, smaller batch.
            buffer_size: Rows that are shuffled together; default 65,536.
            seed: Seed of the order; default 0.
        """
        return self._reader(
            self._filenames,
            batch_size,
            drop_remainder=drop_remainder,
            shuffle=buffer_size or True,
            seed=seed or 0,
            **self._options,
        )


class Dataset:
    """Readers that are told the size of batches last."""

    @staticmethod
    def from_parquet(
        filenames: Names,
        fields: Sequence[Field | str] | None = None,
        partition_count: int | None = None,
        partition_index: int | None = None,
        skip_corrupted_data: bool = False,
        to_dense: bool = False,
        num_parallel_reads: int | None = None,
        num_parallel_parser_calls: int | None = None,
    ) -> UnbatchedRows:
        """Rows of Parquet files, to call `batch` or `shuffle_batch` on.

        Args:
            filenames: As for `ParquetDataset`.
            fields: Names or `Field`s to read; default: all columns.
            partition_count: Number of ranks that share the rows; by default
                those of the job, not 1 as in HybridBackend.
            partition_index: This rank, from 0.
            skip_corrupted_data: Leaves out and counts what cannot be read.
            to_dense: Whether to pad ragged columns.
            num_parallel_reads: Row groups read at the same time.
            num_parallel_parser_calls: Taken for HybridBackend's signature:
                columns are decoded by the threads of Arrow.
        """
        del num_parallel_parser_calls
        return UnbatchedRows(
            ParquetDataset,
            filenames,
            fields=fields,
            partition_count=partition_count,
            partition_index=partition_index,
            on_error="skip" if skip_corrupted_data else "raise",
            to_dense=to_dense,
            num_parallel_reads=num_parallel_reads,
        )

    @staticmethod
    def from_orc(
        filenames: Names,
        fields: Sequence[Field | str] | None = None,
        partition_count: int | None = None,
        partition_index: int | None = None,
        skip_corrupted_data: bool = False,
        to_dense: bool = False,
        num_parallel_reads: int | None = None,
    ) -> UnbatchedRows:
        """Rows of ORC files, to call `batch` or `shuffle_batch` on.

        Args:
            filenames: As for `ParquetDataset`.
            fields: Names or `Field`s to read; default: all columns.
            partition_count: Number of ranks that share the rows; by default
                those of the job, not 1 as in HybridBackend.
            partition_index: This rank, from 0.
            skip_corrupted_data: Leaves out and counts what cannot be read.
            to_dense: Whether to pad ragged columns.
            num_parallel_reads: Stripes read at the same time.
        """
        return UnbatchedRows(
            read_orc,
            filenames,
            fields=fields,
            partition_count=partition_count,
            partition_index=partition_index,
            on_error="skip" if skip_corrupted_data else "raise",
            to_dense=to_dense,
            num_parallel_reads=num_parallel_reads,
        )


def read_parquet(
    batch_size: int,
    fields: Sequence[Field | str] | None = None,
    partition_count: int | None = None,
    partition_index: int | None = None,
    **options: Any,
) -> Callable[[tf.data.Dataset], RowDataset]:
    """A transformation of a dataset of file names to one of batches.

    Args:
        batch_size: Rows of a batch.
        fields: Names or `Field`s to read; default: all columns.
        partition_count: Number of ranks that share the rows; by default those
            of the job, not 1 as in HybridBackend.
        partition_index: This rank, from 0.
        **options: As for `ParquetDataset`.

    Example:
        >>> names = tf.data.Dataset.list_files("*.parquet")  # doctest: +SKIP
        >>> data = names.apply(read_parquet(4096))  # doctest: +SKIP
    """
    return lambda names: ParquetDataset(
        names,
        batch_size,
        fields,
        partition_count,
        partition_index,
        **options,
    )
