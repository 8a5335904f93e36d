"""NumPy as the floor: what plain array access and plain writing cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from drivers import workload
from drivers.protocol import Driver, parse_arguments


CORE_BATCH = 65_536


def take_case(arguments: Any) -> None:
    """`take` of random rows from a dense array of `keys` rows."""
    random = np.random.default_rng(workload.SEED)
    rows = random.standard_normal(
        (arguments.keys, workload.DIM), dtype=np.float32
    )
    batches = random.integers(
        0, arguments.keys, (arguments.batches, CORE_BATCH)
    )
    out = np.empty((CORE_BATCH, workload.DIM), np.float32)

    def take(i: int) -> None:
        # `clip` is NumPy's fast mode: `raise` would copy through a buffer.
        np.take(rows, batches[i % len(batches)], axis=0, out=out, mode="clip")

    driver = Driver()
    driver.fact("items", CORE_BATCH)
    driver.measure("take", take)
    driver.serve()


def write_case(arguments: Any) -> None:
    """Writes `bytes` random bytes to `path` and waits for the disk."""
    data = np.random.default_rng(workload.SEED).integers(
        0, 256, arguments.bytes, dtype=np.uint8
    )
    path = Path(arguments.path)

    def remove() -> None:
        path.unlink(missing_ok=True)
        os.sync()

    def write(_: int) -> None:
        with path.open("wb") as file:
            data.tofile(file)
            file.flush()
            os.fsync(file.fileno())

    driver = Driver()
    driver.measure("write", write, prepare=remove, warm=False)
    driver.serve()
    remove()


def main() -> None:
    """Runs the case named on the command line."""
    cases = {"take": take_case, "write": write_case}
    arguments = parse_arguments(list(cases))
    cases[arguments.case](arguments)


if __name__ == "__main__":
    main()
