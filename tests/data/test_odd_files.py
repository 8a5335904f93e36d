"""Files at which conversion and inspection must not break."""

import gzip
import re

import pyarrow as pa
import pyarrow.orc
import pytest

from embedra.data import CsvRows, DataError, convert, profile


def test_conversion_does_not_replace_its_source(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    link = tmp_path / "b.csv"
    link.symlink_to(path)
    for target in (path, link):
        with pytest.raises(DataError, match="is the file to read"):
            convert(CsvRows(path, ",", "raise"), target)
    with pytest.raises(DataError, match="is a folder"):
        convert(CsvRows(path, ",", "raise"), tmp_path)
    assert path.read_text() == "a\n1\n"


def test_text_that_is_none_is_refused(tmp_path):
    path = tmp_path / "packed.csv"
    path.write_bytes(gzip.compress(b"a\n1\n"))
    with pytest.raises(DataError, match=re.escape(str(path))):
        CsvRows(path, ",", "raise")


def test_names_given_twice_and_long_delimiters_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,a\n1,2\n")
    with pytest.raises(DataError, match="more than one column is named 'a'"):
        CsvRows(path, ",", "raise")
    with pytest.raises(DataError, match="one character"):
        CsvRows(path, ";;", "raise")


def test_parts_of_a_conversion_are_hidden(tmp_path, monkeypatch):
    from embedra.data import ParquetDataset, _convert

    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    (tmp_path / "out").mkdir()
    convert(CsvRows(path, ",", "raise"), tmp_path / "out" / "done.parquet")
    monkeypatch.setattr(_convert._Parts, "join", lambda _: None)
    convert(CsvRows(path, ",", "raise"), tmp_path / "out" / "broken.parquet")
    data = ParquetDataset(str(tmp_path / "out"), 2)
    assert [batch["a"].numpy().tolist() for batch in data] == [[1]]


def test_times_beyond_those_of_python_are_shown_as_numbers(write):
    path = write(
        far=pa.array([2**62], pa.timestamp("us")),
        zone=pa.array([5], pa.timestamp("us", "Mars/Base")),
    )
    assert profile(path).sample == [{"far": 2**62, "zone": 5}]


def test_column_that_is_a_struct_in_one_file_only(write, tmp_path):
    write("a.parquet", x=[1])
    write("b.parquet", x=[{"a": 1}])
    found = profile(str(tmp_path))
    assert found.rows == 2
    assert found.columns[0].distinct is None


def test_orc_is_inspected(tmp_path):
    path = tmp_path / "x.orc"
    pyarrow.orc.write_table(pa.table({"a": [1, 2]}), path)
    assert profile(str(path)).rows == 2
