"""What readers hold stays within bounds, and goes when they go."""

import gc
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest

from embedra.data import ParquetDataset


FILES, ROWS = 60, 20_000
FILE_BYTES = ROWS * 4 * 8


@pytest.fixture
def files(write, rng):
    """38 MB in small files."""
    return [
        write(
            f"{number}.parquet",
            **{name: rng.random(ROWS) for name in "abcd"},
        )
        for number in range(FILES)
    ]


def settled(bytes_before):
    """Arrow's bytes beyond those before, once all threads have let go."""
    deadline = time.monotonic() + 60
    while True:
        gc.collect()
        extra = pa.total_allocated_bytes() - bytes_before
        if extra <= 0 or time.monotonic() > deadline:
            return extra
        time.sleep(0.01)


@pytest.mark.parametrize("window", [0, 20_000], ids=["in_order", "shuffled"])
def test_memory_does_not_grow_with_the_data(files, window):
    before = pa.total_allocated_bytes()
    reads, prefetch, batch = 2, 2, 1000
    data = ParquetDataset(
        files,
        batch,
        shuffle=window,
        num_parallel_reads=reads,
        prefetch=prefetch,
    )
    # A chunk is a file here. See "Memory" in docs/data.md.
    bound = reads * 4 * FILE_BYTES + 3 * (window + batch) * 4 * 8
    bound += 2 * FILE_BYTES + (2 * prefetch + 2) * batch * 4 * 8
    assert bound < FILES * FILE_BYTES / 2
    held = [pa.total_allocated_bytes() - before for _ in data]
    assert len(held) == FILES * ROWS // batch
    assert max(held) <= bound
    assert settled(before) <= 0


def test_iterators_left_behind_hold_no_more_than_four(files):
    before = pa.total_allocated_bytes()
    data = ParquetDataset(files, 1000)
    for _ in range(12):
        next(iter(data))
    assert len(data._lease.streams._idle) <= 4
    del data
    assert settled(before) <= 0


def test_batches_outlive_their_dataset(files):
    kept = [batch["a"] for batch in ParquetDataset(files[:3], 999)]
    gc.collect()
    again = [batch["a"] for batch in ParquetDataset(files[:3], 999)]
    for one, other in zip(kept, again, strict=True):
        np.testing.assert_array_equal(one, other)


SCRIPT = """
import sys
from embedra.data import ParquetDataset
data = ParquetDataset(sys.argv[1:], 100, num_parallel_reads=4)
iterator = iter(data.repeat())
print(len(next(iterator)["a"]))
raise SystemExit(3)
"""


def test_process_ends_in_the_middle_of_reading(files):
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, *files[:8]],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (result.returncode, result.stdout) == (3, "100\n"), result.stderr
