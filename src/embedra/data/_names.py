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
from ._transformations import deduplicate, rebatch


FieldMap = Callable[[dict[str, Any]], Any]


class UnbatchedRows:
    """Rows of files before it is said how to batch them.

    Args:
        reader: Reads them.
        filenames: Their names.
        change: What to make of each dataset, and of the size and the
            remainder of its batches.
        expands: Whether that makes several rows of one.
        **options: For the reader.
    """

    def __init__(
        self,
        reader: Callable[..., RowDataset],
        filenames: Names,
        change: Callable[[RowDataset, int, bool], tf.data.Dataset],
        expands: bool,
        **options: Any,
    ) -> None:
        self._reader = reader
        self._filenames = filenames
        self._change = change
        self._expands = expands
        self._options = options

    def batch(
        self, batch_size: int, drop_remainder: bool = False
    ) -> tf.data.Dataset:
        """Batches of rows in order.

        Args:
            batch_size: Rows of a batch.
            drop_remainder: Whether to leave out a last, smaller batch.
        """
        return self._batch(batch_size, drop_remainder)

    def shuffle_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        buffer_size: int | None = None,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
    ) -> tf.data.Dataset:
        """Batches of shuffled rows, in another order in each epoch.

        Args:
            batch_size: Rows of a batch.
            drop_remainder: Whether to leave out a last, smaller batch.
            buffer_size: Rows that are shuffled together; default 65,536.
            seed: Seed of the order; default 0.
            reshuffle_each_iteration: True, or left out.

        Raises:
            ValueError: If `reshuffle_each_iteration` is False.
        """
        if reshuffle_each_iteration is False:
            msg = (
                "Each epoch has an order of its own. For the same order again "
                "call `embedra.data.set_epoch(dataset, 0)` before each one, "
                "instead of reshuffle_each_iteration=False."
            )
            raise ValueError(msg)
        return self._batch(
            batch_size,
            drop_remainder,
            shuffle=buffer_size or True,
            seed=seed or 0,
        )

    def _batch(
        self, batch_size: int, drop_remainder: bool, **order: Any
    ) -> tf.data.Dataset:
        data = self._reader(
            self._filenames,
            batch_size,
            # Of what is expanded, the remainder is another.
            drop_remainder=drop_remainder and not self._expands,
            **order,
            **self._options,
        )
        return self._change(data, batch_size, drop_remainder)


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
        field_ignore_case: bool = False,
        field_map_fn: FieldMap | None = None,
        key_idx_field_names: Sequence[str] = (),
        value_field_names: Sequence[Sequence[str] | str] = (),
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
            num_parallel_reads: Row groups read at the same time; default, and
                with `tf.data.AUTOTUNE`: 2.
            num_parallel_parser_calls: Taken for HybridBackend's signature:
                columns are decoded by the threads of Arrow.
            field_ignore_case: Must be False: names are those of the files.
            field_map_fn: Called with each batch, a dict from name to tensor;
                what it returns takes its place.
            key_idx_field_names: As for `deduplicate`, which is applied; batches
                are of as many expanded samples then.
            value_field_names: As for `deduplicate`.

        Raises:
            ValueError: If `field_ignore_case` is True, or the names do not fit
                together.
        """
        del num_parallel_parser_calls
        return _unbatched(
            ParquetDataset,
            filenames,
            fields,
            partition_count,
            partition_index,
            skip_corrupted_data,
            to_dense,
            num_parallel_reads,
            field_ignore_case,
            field_map_fn,
            key_idx_field_names,
            value_field_names,
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
        num_parallel_parser_calls: int | None = None,
        field_ignore_case: bool = False,
        field_map_fn: FieldMap | None = None,
        key_idx_field_names: Sequence[str] = (),
        value_field_names: Sequence[Sequence[str] | str] = (),
    ) -> UnbatchedRows:
        """Rows of ORC files; see `from_parquet`.

        Args:
            filenames: As for `ParquetDataset`.
            fields: Names or `Field`s to read; default: all columns.
            partition_count: See `from_parquet`.
            partition_index: See `from_parquet`.
            skip_corrupted_data: See `from_parquet`.
            to_dense: See `from_parquet`.
            num_parallel_reads: Stripes read at the same time.
            num_parallel_parser_calls: See `from_parquet`.
            field_ignore_case: See `from_parquet`.
            field_map_fn: See `from_parquet`.
            key_idx_field_names: See `from_parquet`.
            value_field_names: See `from_parquet`.
        """
        del num_parallel_parser_calls
        return _unbatched(
            read_orc,
            filenames,
            fields,
            partition_count,
            partition_index,
            skip_corrupted_data,
            to_dense,
            num_parallel_reads,
            field_ignore_case,
            field_map_fn,
            key_idx_field_names,
            value_field_names,
        )


def _unbatched(
    reader: Callable[..., RowDataset],
    filenames: Names,
    fields: Sequence[Field | str] | None,
    partition_count: int | None,
    partition_index: int | None,
    skip_corrupted_data: bool,
    to_dense: bool,
    num_parallel_reads: int | None,
    field_ignore_case: bool,
    field_map_fn: FieldMap | None,
    key_idx_field_names: Sequence[str],
    value_field_names: Sequence[Sequence[str] | str],
) -> UnbatchedRows:
    if field_ignore_case:
        msg = (
            "Columns are matched by their very names: give fields as the files "
            "have them, and leave field_ignore_case out. "
            "ParquetDataset.read_schema tells the names."
        )
        raise ValueError(msg)
    keys = tuple(key_idx_field_names)
    expand = deduplicate(keys, value_field_names)

    def change(
        data: RowDataset, batch_size: int, drop_remainder: bool
    ) -> tf.data.Dataset:
        changed: tf.data.Dataset = data
        if keys:
            regroup = rebatch(batch_size, drop_remainder)
            changed = changed.apply(expand).apply(regroup)
        return changed.map(field_map_fn) if field_map_fn else changed

    return UnbatchedRows(
        reader,
        filenames,
        change,
        expands=bool(keys),
        fields=fields,
        partition_count=partition_count,
        partition_index=partition_index,
        on_error="skip" if skip_corrupted_data else "raise",
        to_dense=to_dense,
        num_parallel_reads=(
            None
            if num_parallel_reads == tf.data.AUTOTUNE
            else num_parallel_reads
        ),
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
