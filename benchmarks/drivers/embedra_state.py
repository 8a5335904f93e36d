"""Embedra: memory of a large table, and saving and restoring it."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from drivers import resident, tensorflow_setup as setup, workload
from drivers.protocol import Driver, parse_arguments
from embedra.layers import Embedding


def make_layer() -> tuple[Any, keras.optimizers.Optimizer]:
    """A layer and its optimizer."""
    layer = Embedding(workload.DIM, name="feature")
    return layer, keras.optimizers.Adam(workload.LEARNING_RATE["adam"])


def train_once(layer: Any, optimizer: keras.optimizers.Optimizer) -> None:
    """One step on eight ids, so that the table has Adam's slots."""
    ids = tf.constant(next(workload.key_chunks(0, 8)))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(layer(ids, training=True)))
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables, strict=True))


def fill(layer: Any, keys: int) -> None:
    """Creates `keys` records in the layer's table."""
    for chunk in workload.key_chunks(0, keys):
        layer.table.lookup(tf.constant(chunk), insert=True)


def memory_case(arguments: Any) -> None:
    """Resident bytes of the table with Adam's slots, settled."""
    layer, optimizer = make_layer()
    train_once(layer, optimizer)
    before = resident.settled_bytes()
    resident.reset_peak()
    start = time.perf_counter()
    fill(layer, arguments.keys)
    seconds = time.perf_counter() - start
    peak = resident.peak_bytes() - before
    grown = resident.settled_bytes() - before
    driver = Driver()
    driver.fact("bytes_per_key", grown / arguments.keys)
    driver.fact("peak_bytes_per_key", peak / arguments.keys)
    driver.fact("fill_keys_per_second", arguments.keys / seconds)
    driver.fact("statistics", str(layer.table.statistics()))
    driver.serve()


def save_case(arguments: Any) -> None:
    """Saves the table, again and again, with `tf.train.Checkpoint`."""
    layer, optimizer = make_layer()
    train_once(layer, optimizer)
    fill(layer, arguments.keys)
    checkpoint = tf.train.Checkpoint(layer=layer, optimizer=optimizer)
    folder = Path(arguments.path)
    before = 0

    def prepare() -> None:
        nonlocal before
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        os.sync()
        before = resident.settled_bytes()
        resident.reset_peak()

    def save(_: int) -> dict[str, float]:
        start = time.perf_counter()
        checkpoint.write(str(folder / "checkpoint"))
        seconds = time.perf_counter() - start
        extra = resident.peak_bytes() - before
        files = [file for file in folder.iterdir() if file.is_file()]
        for file in files:
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
        return {
            "bytes": sum(file.stat().st_size for file in files),
            "extra_bytes": extra,
            "seconds_without_fsync": seconds,
        }

    driver = Driver()
    prepare()
    driver.fact("bytes", save(0)["bytes"])
    driver.measure("save", save, prepare=prepare, warm=False)
    driver.serve()


def restore_case(arguments: Any) -> None:
    """Restores the table into this new process."""
    layer, optimizer = make_layer()
    layer.build((None,))
    checkpoint = tf.train.Checkpoint(layer=layer, optimizer=optimizer)
    before = resident.settled_bytes()
    resident.reset_peak()
    start = time.perf_counter()
    checkpoint.read(str(Path(arguments.path) / "checkpoint"))
    seconds = time.perf_counter() - start
    peak = resident.peak_bytes()
    after = resident.settled_bytes()
    if (size := int(layer.table.size())) != arguments.keys:
        msg = f"Restored {size} keys, expected {arguments.keys}."
        raise RuntimeError(msg)
    driver = Driver()
    driver.fact("seconds", seconds)
    driver.fact("extra_bytes", peak - after)
    driver.fact("table_bytes", after - before)
    driver.serve()


def main() -> None:
    """Runs the case named on the command line."""
    cases = {
        "memory": memory_case,
        "save": save_case,
        "restore": restore_case,
    }
    arguments = parse_arguments(list(cases))
    setup.use_threads(arguments.threads)
    cases[arguments.case](arguments)


if __name__ == "__main__":
    main()
