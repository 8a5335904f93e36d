"""Embedra: exporting a large table, and lookups of what was exported."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from drivers import resident, tensorflow_setup as setup, workload
from drivers.protocol import Driver, parse_arguments
from embedra.layers import Embedding
from embedra.saved_model import export


LOOKUPS = 50_000
BATCHES = 16
SPEC = tf.TensorSpec([None], tf.int64)


def main() -> None:
    """Exports in turns, then lets both forms look up the same ids."""
    arguments = parse_arguments(["export"])
    setup.use_threads(arguments.threads)
    layer = Embedding(workload.DIM, name="feature")
    for chunk in workload.key_chunks(0, arguments.keys):
        layer.table.lookup(tf.constant(chunk), insert=True)
    folder = Path(arguments.path) / "exported"
    before = 0

    def prepare() -> None:
        nonlocal before
        shutil.rmtree(folder, ignore_errors=True)
        before = resident.settled_bytes()
        resident.reset_peak()

    def write(_: int) -> dict[str, float]:
        start = time.perf_counter()
        export(layer, folder, signature=SPEC)
        return {
            "seconds": time.perf_counter() - start,
            "extra_bytes": resident.peak_bytes() - before,
        }

    driver = Driver()
    prepare()
    write(0)
    files = [path for path in folder.rglob("*") if path.is_file()]
    driver.fact("bytes", sum(path.stat().st_size for path in files))
    driver.fact("graph_bytes", (folder / "saved_model.pb").stat().st_size)
    loaded = tf.saved_model.load(str(folder))
    add_lookups(driver, layer, loaded, arguments.keys)
    driver.measure("export", write, prepare=prepare, warm=False)
    driver.serve()


def add_lookups(driver: Driver, layer: Any, loaded: Any, keys: int) -> None:
    """Adds the measures of both forms, after a look at their answers."""
    drawn = np.random.default_rng(workload.SEED)
    known = np.concatenate(list(workload.key_chunks(0, keys)))
    batches = [
        tf.constant(drawn.choice(known, LOOKUPS)) for _ in range(BATCHES)
    ]
    native = tf.function(
        lambda ids: layer(ids, training=False), input_signature=[SPEC]
    )
    for batch in batches:
        if not np.array_equal(native(batch), loaded.serve(batch)):
            msg = "The exported rows differ from those of the layer."
            raise RuntimeError(msg)
    driver.measure("native", lambda i: _wait(native, batches[i % BATCHES]))
    driver.measure(
        "exported", lambda i: _wait(loaded.serve, batches[i % BATCHES])
    )


def _wait(function: Any, batch: tf.Tensor) -> float:
    return float(function(batch)[0, 0])


if __name__ == "__main__":
    main()
