"""Files written as Parquet, and what is told of files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import tensorflow as tf

from embedra.data import (
    Block,
    ClickReader,
    ClickRows,
    Columns,
    CsvRows,
    DataError,
    RowSource,
    TFRecordRows,
    convert,
)


COLUMNS = Columns("click", numeric=("age",), categorical=("site", "ad"))


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    lines = [f"{i % 2},{i if i % 3 else ''},s{i % 7},a{i}" for i in range(50)]
    path.write_text("\n".join(["click,age,site,ad", *lines]) + "\n")
    return path


def test_click_log_reads_the_same_from_parquet(log, tmp_path):
    reader = ClickReader(log, "csv", COLUMNS)
    target = tmp_path / "log.parquet"
    assert convert(ClickRows(reader), target) == 50
    converted = ClickReader(target, "parquet")
    assert converted.columns == COLUMNS
    expected, found = (
        Block.concatenate(list(one.blocks())) for one in (reader, converted)
    )
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.numeric, expected.numeric)
    np.testing.assert_array_equal(found.categorical, expected.categorical)
    assert pa.parquet.read_table(target)["age"].null_count == 17


def test_public_extracts_are_converted(shared_data, tmp_path):
    for name, rows in (("criteo", 7200), ("avazu", None)):
        reader = ClickReader(shared_data / name / "dev.csv", name)
        target = tmp_path / f"{name}.parquet"
        written = convert(ClickRows(reader), target, row_group_rows=100)
        assert ClickReader(target, "parquet").columns == reader.columns
        expected = sum(len(block) for block in reader.blocks())
        assert written == pa.parquet.read_metadata(target).num_rows == expected
        assert rows is None or written <= rows


class Numbers(RowSource):
    """Runs of ten numbers each, some of which stop the conversion."""

    def __init__(self, path, runs=6, fails=()):
        if not path.exists():
            path.touch()
        super().__init__(path)
        self.runs, self.fails, self.read = runs, list(fails), []

    def tables(self, skip=0):
        for run in range(skip, self.runs):
            if run in self.fails:
                raise KeyboardInterrupt
            self.read.append(run)
            self.report.rows += 10
            yield pa.table({"x": np.arange(run * 10, run * 10 + 10)})


def test_stopped_conversion_goes_on_behind_the_last_row_group(tmp_path):
    target = tmp_path / "out.parquet"
    source = Numbers(tmp_path / "source", fails=[5])
    with pytest.raises(KeyboardInterrupt):
        convert(source, target, row_group_rows=20)
    assert not target.exists()
    again = Numbers(tmp_path / "source")
    assert convert(again, target, row_group_rows=20) == 60
    assert again.read == [4, 5]
    file = pa.parquet.ParquetFile(target)
    assert file.read()["x"].to_pylist() == list(range(60))
    assert file.num_row_groups == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "out.parquet",
        "source",
    ]


@pytest.mark.parametrize("change", ["settings", "source"])
def test_conversion_of_something_else_begins_anew(tmp_path, change):
    target = tmp_path / "out.parquet"
    with pytest.raises(KeyboardInterrupt):
        convert(
            Numbers(tmp_path / "source", fails=[5]), target, row_group_rows=20
        )
    again = Numbers(tmp_path / "source")
    if change == "source":
        again.path.write_text("changed")
    settings = "other" if change == "settings" else ""
    rows = convert(again, target, row_group_rows=20, settings=settings)
    assert rows == 60
    assert again.read == list(range(6))


def test_nothing_to_convert(tmp_path):
    with pytest.raises(DataError, match="no usable row"):
        convert(Numbers(tmp_path / "source", runs=0), tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    with pytest.raises(ValueError, match="row_group_rows"):
        convert(Numbers(tmp_path / "source"), tmp_path / "o", row_group_rows=0)


def test_text_keeps_its_types(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,s\n1,a\n2\n,b\n")
    target = tmp_path / "rows.parquet"
    with pytest.raises(DataError, match=r"rows\.csv"):
        convert(CsvRows(path, ",", "raise"), target)
    rows = CsvRows(path, ",", "skip")
    assert convert(rows, target) == 2
    assert rows.report.malformed == 1
    assert pa.parquet.read_table(target).to_pylist() == [
        {"x": 1, "s": "a"},
        {"x": None, "s": "b"},
    ]


def test_text_of_which_types_change_far_behind(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{i},s{i}" for i in range(150_000)]
    lines[149_000] = "0.5,s"
    path.write_text("\n".join(["x,s", *lines, ""]))
    target = tmp_path / "rows.parquet"
    message = r"rows\.csv.*column 'x'.*0\.5.*--types NAME=TYPE.*--on-error skip"
    with pytest.raises(DataError, match=message):
        convert(CsvRows(path, ",", "raise"), target)
    assert not target.exists()
    typed = CsvRows(path, ",", "raise", {"x": "float64", "s": "string"})
    assert convert(typed, target, settings="types") == 150_000
    table = pa.parquet.read_table(target)
    assert table["x"][149_000].as_py() == 0.5
    assert table.schema.field("s").type == pa.string()
    skipping = CsvRows(path, ",", "skip")
    assert convert(skipping, target, settings="skip") == 149_999
    assert skipping.report.malformed == 1
    assert "row 149001: column 'x' holds '0.5'" in skipping.report.summary()


def test_types_of_text_are_checked(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,s\n1,a\n")
    with pytest.raises(DataError, match="'x': there is no type 'number'"):
        CsvRows(path, ",", "raise", {"x": "number"})
    with pytest.raises(DataError, match="no column 'y'"):
        CsvRows(path, ",", "raise", {"y": "int64"})


def write_examples(path, rows):
    kinds = {
        int: ("int64_list", tf.train.Int64List),
        float: ("float_list", tf.train.FloatList),
        bytes: ("bytes_list", tf.train.BytesList),
    }
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            features = {}
            for name, values in row.items():
                kind, make = kinds[type(values[0]) if values else int]
                features[name] = tf.train.Feature(**{kind: make(value=values)})
            example = tf.train.Example(
                features=tf.train.Features(feature=features)
            )
            writer.write(example.SerializeToString())


def test_examples_become_columns(tmp_path, monkeypatch):
    path = tmp_path / "rows.tfrecord"
    rows = [
        {"x": [1], "l": [1, 2], "s": [b"a"]},
        {"x": [2], "l": [], "f": [0.5]},
    ]
    write_examples(path, rows)
    target = tmp_path / "rows.parquet"
    assert convert(TFRecordRows(path, "raise"), target) == 2
    assert pa.parquet.read_table(target).to_pylist() == [
        {"f": None, "l": [1, 2], "s": b"a", "x": 1},
        {"f": 0.5, "l": [], "s": None, "x": 2},
    ]
    monkeypatch.setattr("embedra.data._converted_rows._RUN_ROWS", 2)
    write_examples(path, [*rows, {"x": [1, 2]}, {"x": [3]}])
    with pytest.raises(DataError, match=r"tfrecord:3: feature 'x' has 2 value"):
        convert(TFRecordRows(path, "raise"), target)
    source = TFRecordRows(path, "skip")
    assert convert(source, target) == 3
    assert source.report.malformed == 1


def test_damaged_records_are_named(tmp_path):
    path = tmp_path / "rows.tfrecord"
    write_examples(path, [{"x": [1]}])
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DataError, match=r"rows\.tfrecord: damaged after"):
        convert(TFRecordRows(path, "raise"), tmp_path / "out.parquet")
