"""Embedra: training on the 26-table model fed from Parquet, and from memory.

Both are in one process, on the same model and rows, which they read again and
again. A run goes on where the one before ended.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import pyarrow as pa
import pyarrow.parquet
import tensorflow as tf

from drivers import tensorflow_setup as setup, workload
from drivers.embedra_layers import (
    fill,
    make_click_model,
    make_optimizer,
    make_step,
)
from drivers.protocol import Driver, parse_arguments
from embedra.data import ParquetDataset


GROUP_ROWS = 131_072
STEPS = 32


def write(path: Path, drawn: workload.ClickBatches) -> None:
    """Writes click batches as a column for each feature, and the label."""
    ids = drawn.ids.reshape(-1, drawn.ids.shape[-1])
    columns = {f"C{f}": values for f, values in enumerate(ids.T)}
    table = pa.table({**columns, "label": drawn.labels.ravel()})
    pa.parquet.write_table(table, path, row_group_size=GROUP_ROWS)


def from_parquet(path: Path, features: int) -> tf.data.Dataset:
    """Batches of the file as the model takes them, without end."""

    def to_pair(row: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        ids = [row[f"C{f}"] for f in range(features)]
        return tf.stack(ids, axis=1), row["label"][:, tf.newaxis]

    data = ParquetDataset(str(path), workload.BATCH, drop_remainder=True)
    return data.repeat().map(to_pair).prefetch(2)


def from_memory(drawn: workload.ClickBatches) -> tf.data.Dataset:
    """The same batches, that lie ready as tensors."""
    data = tf.data.Dataset.from_tensor_slices((drawn.ids, drawn.labels))
    return data.repeat().prefetch(2)


def feeding_case(arguments: Any, folder: Path) -> None:
    """`STEPS` steps in both ways."""
    keras.utils.set_random_seed(1)
    driver = Driver()
    drawn = workload.clicks(
        arguments.keys, features=arguments.features, batches=arguments.batches
    )
    path = folder / "rows.parquet"
    write(path, drawn)
    model, layers = make_click_model(arguments.features)
    step = make_step(model, make_optimizer(arguments.optimizer))
    ids, labels = tf.constant(drawn.ids[0]), tf.constant(drawn.labels[0])
    setup.first_step(driver, step, ids, labels)
    fill(layers, arguments.keys)

    def train(batches: Iterator[Any]) -> float:
        loss = tf.constant(0.0)
        for inputs, targets in itertools.islice(batches, STEPS):
            loss = step(inputs, targets)
        return float(loss)

    parquet = from_parquet(path, arguments.features)
    memory = iter(from_memory(drawn))
    driver.fact("first_batch_s", seconds_to_first_batch(parquet))
    rows = iter(parquet)
    driver.measure("memory", lambda _: train(memory))
    driver.measure("parquet", lambda _: train(rows))
    driver.serve()


def seconds_to_first_batch(data: tf.data.Dataset) -> float:
    """What it takes to begin a pass, once the file has been read before."""
    next(iter(data))
    begin = time.perf_counter()
    next(iter(data))
    return time.perf_counter() - begin


def main() -> None:
    """Runs the case named on the command line."""
    arguments = parse_arguments(["feeding"])
    setup.use_threads(arguments.threads)
    pa.set_cpu_count(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        feeding_case(arguments, Path(folder))


if __name__ == "__main__":
    main()
