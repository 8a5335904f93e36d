"""Which files are found, what they may differ in, and damage."""

import pathlib

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import tensorflow as tf

from embedra.data import DataError, Field, ParquetDataset


def rows(data, name="x"):
    return [value for batch in data for value in batch[name].numpy().tolist()]


@pytest.fixture
def folder(write, tmp_path):
    """A folder with two files, one below, and some that are no data."""
    write("rows/b.parquet", x=[3, 4])
    write("rows/a.parquet", x=[1, 2])
    write("rows/deep/c.parquet", x=[5])
    (tmp_path / "rows" / "_SUCCESS").touch()
    (tmp_path / "rows" / ".hidden").touch()
    return tmp_path / "rows"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("", [1, 2, 3, 4, 5]),
        ("*.parquet", [1, 2, 3, 4]),
        ("**/*.parquet", [1, 2, 3, 4, 5]),
        ("*/?.parquet", [5]),
        ("[!b].parquet", [1, 2]),
        ("b.parquet", [3, 4]),
    ],
)
def test_folders_and_patterns(folder, pattern, expected):
    assert rows(ParquetDataset(str(folder / pattern), 2)) == expected


def test_lists_keep_their_order(folder):
    names = [folder / "b.parquet", folder / "a.parquet"]
    assert rows(ParquetDataset(names, 3)) == [3, 4, 1, 2]


@pytest.mark.parametrize("name", ["none.parquet", "*.orc", "none/*"])
def test_name_that_matches_nothing_is_named(folder, name):
    with pytest.raises(DataError, match="no file matches") as error:
        ParquetDataset(str(folder / name))
    assert name in str(error.value)


def test_no_name_at_all():
    with pytest.raises(DataError, match="No file is named"):
        ParquetDataset([])


def test_folders_of_hive_are_columns(write, tmp_path):
    for day, place, value in ((7, "a%20b", 1), (8, "c", 2)):
        write(f"t/day={day}/place={place}/part.parquet", x=[value, value + 10])
    write("t/day=9/place=__HIVE_DEFAULT_PARTITION__/part.parquet", x=[3])
    fields = ["x", "day", Field("place", default="none")]
    data = ParquetDataset(tmp_path / "t", 4, fields)
    assert rows(data) == [1, 11, 2, 12, 3]
    assert rows(data, "day") == [7, 7, 8, 8, 9]
    assert rows(data, "place") == [b"a b", b"a b", b"c", b"c", b"none"]
    assert set(ParquetDataset(tmp_path / "t").element_spec) == {
        "x",
        "day",
        "place",
    }


@pytest.fixture
def memory():
    """A file system in memory, with two files."""
    filesystem = fsspec.filesystem("memory")
    for name, values in (("a", [1, 2]), ("b", [3])):
        with filesystem.open(f"/bucket/{name}.parquet", "wb") as file:
            pa.parquet.write_table(pa.table({"x": values}), file)
    yield filesystem
    filesystem.rm("/bucket", recursive=True)


@pytest.mark.parametrize(
    "url",
    [
        "memory://bucket",
        "memory://bucket/*.parquet",
        ["memory://bucket/a.parquet", "memory://bucket/b.parquet"],
    ],
    ids=["folder", "pattern", "list"],
)
@pytest.mark.usefixtures("memory")
def test_urls_of_other_file_systems(url):
    assert rows(ParquetDataset(url, 2)) == [1, 2, 3]


def test_file_system_that_is_given(memory):
    assert rows(ParquetDataset("/bucket", 2, filesystem=memory)) == [1, 2, 3]


@pytest.mark.usefixtures("memory")
def test_unreadable_remote_is_named():
    with pytest.raises(DataError, match="memory://bucket/c: no file matches"):
        ParquetDataset("memory://bucket/c")
    with pytest.raises(DataError, match="nowhere://x: cannot be looked up"):
        ParquetDataset("nowhere://x")


def test_p05_columns_are_matched_by_name_and_widened(write):
    paths = [
        write("a.parquet", x=pa.array([1, 2], pa.int32()), y=[1.0, 2.0]),
        write("b.parquet", y=[3.0], x=pa.array([2**40], pa.int64())),
        write("c.parquet", x=pa.array([7], pa.uint8())),
    ]
    fields = ["x", Field("y", default=-1.0)]
    data = ParquetDataset(paths, 3, fields)
    assert data.element_spec["x"].dtype == tf.int64
    assert rows(data) == [1, 2, 2**40, 7]
    assert rows(data, "y") == [1, 2, 3, -1]
    with pytest.raises(DataError, match=r"c\.parquet: no column 'y'\. The fil"):
        ParquetDataset(paths, 3, ["x", "y"])


@pytest.mark.parametrize(
    ("kinds", "wide"),
    [
        ((pa.int8(), pa.uint8()), tf.int16),
        ((pa.uint32(), pa.int32()), tf.int64),
        ((pa.float32(), pa.float64()), tf.float64),
        ((pa.int16(), pa.float32()), tf.float32),
        ((pa.int32(), pa.float32()), tf.float64),
        ((pa.null(), pa.int16()), tf.int16),
    ],
    ids=str,
)
def test_p05_widening_is_without_loss(write, kinds, wide):
    paths = [
        write(f"{i}.parquet", x=pa.array([None], kind))
        for i, kind in enumerate(kinds)
    ]
    data = ParquetDataset(paths, 2, [Field("x", default=1)])
    assert data.element_spec["x"].dtype == wide
    assert rows(data) == [1, 1]


@pytest.mark.parametrize(
    "kinds",
    [
        (pa.int64(), pa.float64()),
        (pa.int64(), pa.uint64()),
        (pa.int64(), pa.string()),
        (pa.bool_(), pa.int8()),
        (pa.int64(), pa.list_(pa.int64())),
    ],
    ids=str,
)
def test_p05_types_that_do_not_agree_name_file_and_column(write, kinds):
    paths = [
        write(f"{i}.parquet", x=pa.array([None], kind))
        for i, kind in enumerate(kinds)
    ]
    with pytest.raises(DataError, match=r"1\.parquet: column 'x' has type"):
        ParquetDataset(paths, 2)


def test_files_that_do_not_fit_can_be_left_out(write):
    paths = [
        write("a.parquet", x=[1, 2]),
        write("b.parquet", x=["text"]),
        write("c.parquet", y=[3]),
        write("d.parquet", x=[4]),
    ]
    data = ParquetDataset(paths, 2, ["x"], on_error="skip")
    assert rows(data) == [1, 2, 4]
    assert data.report.skipped_files == paths[1:3]
    assert "b.parquet: column 'x' has type" in data.report.summary()
    with pytest.raises(DataError, match="no column 'z'"):
        ParquetDataset(paths, 2, ["z"], on_error="skip")


def test_missing_column_of_lists(write):
    paths = [
        write("a.parquet", k=[1], x=[[1, 2]]),
        write("b.parquet", k=[2]),
    ]
    ragged = ParquetDataset(paths, 2, [Field("x", default=0)])
    assert next(iter(ragged))["x"].to_list() == [[1, 2], []]
    dense = ParquetDataset(paths, 2, [Field("x", shape=[2], default=5)])
    assert rows(dense) == [[1, 2], [5, 5]]


def test_column_that_no_file_has(write):
    path = write(x=[1, 2])
    field = Field("new", "float32", default=0.5)
    assert rows(ParquetDataset(path, 2, ["x", field]), "new") == [0.5, 0.5]
    with pytest.raises(DataError, match="No file has a column 'new'"):
        ParquetDataset(path, 2, [Field("new", default=1)])


def test_column_named_twice(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    pa.parquet.write_table(table, tmp_path / "two.parquet")
    with pytest.raises(DataError, match="More than one column .* 'x'"):
        ParquetDataset(tmp_path / "two.parquet")


def test_files_without_rows(write):
    empty = pa.table({"x": pa.array([], pa.int64())})
    paths = [
        write("a.parquet", table=empty),
        write("b.parquet", x=[1, 2]),
        write("c.parquet", table=empty),
    ]
    assert rows(ParquetDataset(paths, 2)) == [1, 2]
    nothing = ParquetDataset(paths[0], 2)
    assert nothing.element_spec == {"x": tf.TensorSpec([None], tf.int64)}
    assert rows(nothing) == rows(nothing.repeat()) == []
    assert int(nothing.cardinality()) == 0


def damage(path, places):
    with open(path, "r+b") as file:
        for place in places:
            file.seek(place)
            file.write(b"\xff" * 30)


@pytest.fixture
def damaged(write):
    """A file of which column `y` cannot be read in row group 1."""
    table = pa.table({"x": np.arange(30), "y": np.arange(30) * 0.5})
    path = write(group=10, table=table)
    column = pa.parquet.read_metadata(path).row_group(1).column(1)
    damage(path, [column.dictionary_page_offset or column.data_page_offset])
    return path


def test_damage_names_file_row_group_and_column(damaged):
    with pytest.raises(
        tf.errors.OpError,
        match=r"rows\.parquet: row group 1, column 'y': cannot be read",
    ):
        rows(ParquetDataset(damaged, 4))
    assert rows(ParquetDataset(damaged, 4, ["x"])) == list(range(30))


def test_damage_can_be_left_out_and_is_listed(damaged):
    data = ParquetDataset(damaged, 4, on_error="skip")
    assert rows(data) == [*range(10), *range(20, 30)]
    assert data.report.skipped_rows == 10
    assert "row group 1, column 'y'" in data.report.summary()
    assert int(data.cardinality()) == tf.data.UNKNOWN_CARDINALITY


def test_truncated_files_are_refused_or_listed(write, tmp_path):
    good = write("good.parquet", x=[1, 2])
    content = pathlib.Path(good).read_bytes()
    (tmp_path / "short.parquet").write_bytes(content[:-20])
    (tmp_path / "text.parquet").write_text("x\n1\n")
    (tmp_path / "zero.parquet").touch()
    with pytest.raises(DataError, match=r"short\.parquet: not a Parquet file"):
        ParquetDataset([good, tmp_path / "short.parquet"])
    data = ParquetDataset(tmp_path, 2, on_error="skip")
    assert rows(data) == [1, 2]
    names = [name.rsplit("/", 1)[1] for name in data.report.skipped_files]
    assert names == ["short.parquet", "text.parquet", "zero.parquet"]
    with pytest.raises(DataError, match="No file can be opened"):
        ParquetDataset(tmp_path / "zero.parquet", on_error="skip")


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 0},
        {"num_parallel_reads": 0},
        {"prefetch": 0},
        {"shuffle": -1},
        {"seed": -1},
        {"on_error": "ignore"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_without_sense_are_refused(write, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ParquetDataset(write(x=[1]), **options)
