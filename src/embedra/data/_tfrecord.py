"""Batches of `tf.train.Example`s of TFRecord files, under the same fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ._containers import Container
from ._errors import DataError
from ._field import Field
from ._files import Names, SourceFile, find_files
from ._load_report import LoadReport
from ._read_options import ReadOptions, dataset_of_files
from ._row_dataset import RowDataset
from ._tfrecord_container import TFRecordContainer, stored_type


_COMPRESSIONS = ("", "GZIP", "ZLIB")


def read_tfrecord(
    filenames: Names,
    batch_size: int = 1,
    fields: Sequence[Field] = (),
    *,
    compression: str | None = None,
    **options: Unpack[ReadOptions],
) -> RowDataset:
    """Batches of the examples of TFRecord files, read by TensorFlow itself.

    How many rows there are is known after reading only, as for `read_csv`.

    Args:
        filenames: As for `ParquetDataset`.
        batch_size: Rows of a batch.
        fields: What to read: the records do not say. A field without shape and
            ragged rank is a scalar; `ragged_rank` is 0 or 1. A feature that an
            example lacks, or has no value of, is a null; for `ragged_rank=1`
            an empty list.
        compression: `""`, `"GZIP"` or `"ZLIB"`; default: `"GZIP"` for names
            that end in `.gz`, else none.
        **options: As for `ParquetDataset`. With `on_error="skip"`, examples
            that do not fit are left out; where a record is damaged, the file
            ends.

    Returns:
        Dicts from name to tensor.

    Raises:
        DataError: If no field is named, or a file is missing.
        ValueError: If a field cannot be had of examples.

    Example:
        >>> data = read_tfrecord(
        ...     "clicks.tfrecord", 4096, [Field("age", "float32", default=0)]
        ... )  # doctest: +SKIP
    """
    given: Sequence[Any] = fields
    if not given or any(isinstance(field, str) for field in given):
        msg = (
            "TFRecord files do not say what is in them: name the fields, as "
            f"Fields with a dtype each. Received: {list(given)}."
        )
        raise DataError(msg)
    if compression not in (None, *_COMPRESSIONS):
        msg = (
            f"compression is one of {', '.join(map(repr, _COMPRESSIONS))}. "
            f"Received: {compression!r}."
        )
        raise ValueError(msg)
    for field in fields:
        stored_type(field)
    report = LoadReport()
    skip = options.get("on_error") == "skip"

    def opened(file: SourceFile) -> Container:
        packed = compression
        if packed is None:
            packed = "GZIP" if file.path.endswith(".gz") else ""
        return TFRecordContainer(file, fields, packed, report if skip else None)

    files = find_files(filenames)
    return dataset_of_files(files, opened, batch_size, fields, report, options)
