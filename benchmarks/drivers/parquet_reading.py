"""Parquet files read to batches: bare pyarrow, and Embedra's dataset.

Both are in one process, with as many threads of Arrow. To bare pyarrow a batch
is a NumPy array for each column, for lists one of values and one of offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import tensorflow as tf

from drivers import tensorflow_setup as setup
from drivers.protocol import Driver, parse_arguments
from embedra.data import ParquetDataset


BATCH = 8192
FLOATS, IDS, LISTS, MEAN_LENGTH = 13, 26, 10, 20


def flat_rows(rng: np.random.Generator, rows: int) -> pa.Table:
    """Numbers and ids, as of a click log."""
    numbers = {
        f"I{i}": rng.standard_normal(rows, np.float32) for i in range(FLOATS)
    }
    return pa.table(
        {**numbers, **{f"C{i}": ids(rng, rows) for i in range(IDS)}}
    )


def list_rows(rng: np.random.Generator, rows: int) -> pa.Table:
    """Lists of ids of different lengths."""
    columns = {}
    for i in range(LISTS):
        lengths = np.maximum(rng.poisson(MEAN_LENGTH, rows), 1)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        columns[f"L{i}"] = pa.ListArray.from_arrays(
            pa.array(offsets), pa.array(ids(rng, int(offsets[-1])))
        )
    return pa.table(columns)


def ids(rng: np.random.Generator, count: int) -> Any:
    """Ids of which few are frequent, spread over 64 bits."""
    ranks = rng.zipf(1.2, count).clip(max=1_000_000).astype(np.uint64)
    return (ranks * np.uint64(0x9E3779B97F4A7C15)).view(np.int64)


def write(path: Path, rows: int, *, lists: bool) -> None:
    """Writes a file in eight row groups, four for lists."""
    rng = np.random.default_rng(1)
    step = -(-rows // (4 if lists else 8))
    make = list_rows if lists else flat_rows
    first = make(rng, step)
    with pa.parquet.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for start in range(step, rows, step):
            writer.write_table(make(rng, min(step, rows - start)))


def bare(path: Path) -> Iterator[int]:
    """Rows of each batch of pyarrow, made NumPy arrays."""
    for batch in pa.parquet.ParquetFile(path).iter_batches(BATCH):
        for column in batch.columns:
            if pa.types.is_list(column.type):
                offsets = np.asarray(column.offsets)
                np.asarray(column.values)[offsets[0] : offsets[-1]]
                offsets - offsets[0]
            else:
                column.to_numpy(zero_copy_only=False)
        yield batch.num_rows


def main() -> None:
    """Runs the case named on the command line.

    It writes the file at `path`, for other systems too; `keys` is the rows.
    """
    arguments = parse_arguments(["parquet-flat", "parquet-lists"])
    setup.use_threads(arguments.threads)
    pa.set_cpu_count(arguments.threads)
    driver = Driver()
    path = Path(arguments.path)
    write(path, arguments.keys, lists=arguments.case == "parquet-lists")
    data = ParquetDataset(str(path), BATCH)

    @tf.function
    def through() -> tf.Tensor:
        batches = tf.constant(0)
        for _ in data:
            batches += 1
        return batches

    driver.measure("bare", lambda _: sum(bare(path)))
    driver.measure("dataset", lambda _: int(through()))
    driver.serve()


if __name__ == "__main__":
    main()
