"""What readers hold stays within bounds, and goes when they go."""

import gc
import resource
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from embedra.data import ParquetDataset
from embedra.data._chunk_sizes import ChunkSizes
from embedra.data._containers import ParquetContainer
from embedra.data._files import find_files


FILES, ROWS = 60, 20_000
FILE_BYTES = ROWS * 4 * 8


@pytest.fixture
def make(write, rng):
    """Writes files of 640 kB."""

    def made(count):
        columns = {name: rng.random(ROWS) for name in "abcd"}
        return [
            write(f"{number}.parquet", **columns) for number in range(count)
        ]

    return made


@pytest.fixture
def files(make):
    """38 MB in small files."""
    return make(FILES)


def resident():
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


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
def test_memory_does_not_grow_with_the_data(make, pytestconfig, window):
    count = pytestconfig.getoption("--megabytes") * 10**6 // FILE_BYTES + 1
    files = make(count)
    before = pa.total_allocated_bytes()
    reads, prefetch, size = 2, 2, 1000
    data = ParquetDataset(
        files,
        size,
        shuffle=window,
        num_parallel_reads=reads,
        prefetch=prefetch,
    )
    # A chunk is a file here. See "Memory" in docs/data.md.
    bound = reads * 4 * FILE_BYTES + 3 * (window + size) * 4 * 8
    bound += 2 * FILE_BYTES + (2 * prefetch + 2) * size * 4 * 8
    assert bound < count * FILE_BYTES / 2
    measured = [(pa.total_allocated_bytes(), resident()) for _ in data]
    held = [allocated - before for allocated, _ in measured]
    process = [size for _, size in measured]
    assert len(held) == count * ROWS // size
    assert max(held) <= bound
    # What allocators keep for themselves has come to its size by then.
    assert process[-1] - process[len(process) // 4] < 2 * bound
    assert settled(before) <= 0


def test_chunks_suit_row_groups_of_other_sizes(tmp_path, rng):
    path = tmp_path / "rows.parquet"
    schema = pa.schema({"s": pa.list_(pa.int64())})
    rows, lengths = (3000, 4000, 50, 60, 5000), (1, 2, 40_000, 30_000, 1)
    with pa.parquet.ParquetWriter(path, schema) as writer:
        for count, length in zip(rows, lengths, strict=True):
            values = rng.integers(0, 2**62, count * length)
            lists = pa.FixedSizeListArray.from_arrays(pa.array(values), length)
            writer.write_table(pa.table([lists.cast(schema.types[0])], schema))
    [container] = map(ParquetContainer, find_files(path))
    found = list(ChunkSizes(8).stretches(container, range(5), ["s"]))
    assert [stretch.units for stretch in found] == [(0, 1), (2, 3), (4,)]
    assert found[0].rows == found[2].rows == 65_536
    assert 10 * 2**20 < found[1].rows * 40_000 * 8 < 20 * 2**20
    data = ParquetDataset(str(path), 8, num_parallel_reads=1)
    read = [batch["s"].row_lengths() for batch in data]
    np.testing.assert_array_equal(
        np.concatenate(read), np.repeat(lengths, rows)
    )


def test_chunks_suit_text_that_repeats(write):
    words = pa.array([f"{i}" * 2**11 for i in range(10)])
    rows = pa.array(np.arange(200_000, dtype=np.int32) % 10)
    table = pa.table({"s": pa.DictionaryArray.from_arrays(rows, words)})
    path = write(table=table.cast(pa.schema({"s": pa.string()})), group=25_000)
    del table
    before = pa.total_allocated_bytes()
    data = ParquetDataset(path, 100, num_parallel_reads=1)
    held = [pa.total_allocated_bytes() - before for _ in data]
    assert len(held) == 2000
    # A chunk of as many rows as fit by what is stored would be 51 MB alone.
    # Four chunks and two more of 16 MiB, the first ones being smaller.
    assert max(held) < 6 * 2**24


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
