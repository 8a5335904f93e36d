"""What is in a set of files."""

import numpy as np
import pyarrow as pa
import pytest

from embedra.data import DistinctCounter, profile


CODECS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}


def test_profile_counts_rows_nulls_and_values(write, tmp_path):
    write(
        "a.parquet",
        group=3,
        x=pa.array([1, None, 2, 2, None]),
        s=pa.array(["a", "b", "a", None, "a"]),
        l=pa.array([[1, 2], None, [2, None], [], [3]]),
        struct=pa.array([{"k": 1}] * 5),
    )
    found = profile(str(tmp_path / "*.parquet"), sample=2)
    assert (found.files, found.units, found.rows) == (1, 2, 5)
    assert [(c.name, c.nulls, c.values) for c in found.columns] == [
        ("x", 2, 3),
        ("s", 1, 4),
        ("l", 2, 4),
        ("struct", 0, 0),
    ]
    counts = [c.distinct and c.distinct.estimate() for c in found.columns]
    assert counts == [2, 2, 3, None]
    assert [c.tensor for c in found.columns] == [
        "int64",
        "string",
        "int64[]",
        "",
    ]
    assert [row["x"] for row in found.sample] == [1, None]


def test_profile_of_folders_of_hive(write, tmp_path):
    for day in (6, 7):
        path = f"day={day}/city=K%C3%B6ln/rows.parquet"
        write(path, x=np.arange(day))
    write("day=8/city=__HIVE_DEFAULT_PARTITION__/r.parquet", x=np.arange(3))
    found = profile(str(tmp_path))
    assert found.rows == 6 + 7 + 3
    assert [
        (c.name, c.tensor, c.nulls, c.values, c.distinct.estimate())
        for c in found.columns
    ] == [
        ("x", "int64", 0, 16, 7),
        ("day", "int64", 0, 16, 3),
        ("city", "string", 3, 13, 1),
    ]
    assert found.sample[0] == {"x": 0, "day": 6, "city": "Köln"}


@pytest.mark.parametrize("codec", ["gz", "bz2", "zst"])
def test_profile_of_text(tmp_path, codec):
    path = tmp_path / f"rows.tsv.{codec}"
    with pa.CompressedOutputStream(str(path), CODECS[codec]) as stream:
        stream.write(b"x\ty\n1\t0.5\n2\t0.5\n")
    found = profile(str(path))
    assert found.rows == 2
    assert [c.distinct.estimate() for c in found.columns] == [2, 1]


@pytest.mark.parametrize("count", [0, 1, 4095, 4096, 300_000])
def test_distinct_values_are_estimated(rng, count):
    counter = DistinctCounter()
    values = rng.permutation(np.arange(count) * 4096)
    for part in np.array_split(np.concatenate([values, values]), 5):
        counter.add(pa.array(part))
    assert counter.exact == (count < 4096)
    assert counter.estimate() == pytest.approx(count, rel=0.06 * (count > 4095))
