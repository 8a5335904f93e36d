"""Text, Arrow files, TFRecords and tables in memory, under the same fields."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pytest
import tensorflow as tf

from embedra.data import (
    DataError,
    Dataset,
    Field,
    read_arrow,
    read_csv,
    read_orc,
    read_table,
)


def rows(data, name="x"):
    parts = [batch[name] for batch in data]
    if isinstance(parts[0], tf.RaggedTensor):
        return [row for part in parts for row in part.to_list()]
    return [value for part in parts for value in part.numpy().tolist()]


def test_csv_infers_types_and_nulls(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('x,f,s\n1,0.5,"a,b"\n2,,c\n')
    fields = ["x", Field("f", default=-1.0), "s"]
    data = read_csv(path, 2, fields)
    assert data.element_spec["x"].dtype == tf.int64
    assert rows(data) == [1, 2]
    assert rows(data, "f") == [0.5, -1.0]
    assert rows(data, "s") == [b"a,b", b"c"]


def test_tsv_packed_and_with_declared_types(tmp_path):
    path = tmp_path / "rows.tsv.gz"
    path.write_bytes(gzip.compress(b"x\ty\n1\t007\n"))
    fields = [Field("x", "float32"), Field("y", "string")]
    data = read_csv(path, 2, fields, delimiter="\t")
    assert rows(data) == [1.0]
    assert rows(data, "y") == [b"007"]


def test_ranks_share_the_rows_of_text(tmp_path):
    for name, start in (("a.csv", 0), ("b.csv", 11)):
        values = "\n".join(map(str, range(start, start + 11)))
        (tmp_path / name).write_text(f"x\n{values}\n")
    shares = [
        rows(read_csv(tmp_path, 4, partition_count=3, partition_index=rank))
        for rank in range(3)
    ]
    assert sorted(sum(shares, [])) == list(range(22))
    assert {len(share) for share in shares} == {7, 8}
    shuffled = read_csv(tmp_path, 4, shuffle=True)
    assert sorted(rows(shuffled)) == list(range(22))


def test_lines_of_a_wrong_width(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,2\n3\n4,5\n")
    with pytest.raises((DataError, tf.errors.OpError), match=r"rows\.csv"):
        rows(read_csv(path, 2))
    data = read_csv(path, 2, on_error="skip")
    assert rows(data) == [1, 4]
    assert data.report.skipped_rows == 1
    assert "1 columns, expected 2" in data.report.summary()


# More than the first MiB, of which types are inferred.
MANY = 150_000


@pytest.fixture
def changing(tmp_path):
    """Numbers, dates and words, with other values far behind."""
    lines = [f"{i},2024-05-{i % 28 + 1:02},s{i}" for i in range(MANY)]
    lines[MANY - 9] = "x9,2024-05-01,a"
    lines[MANY - 7] = "7,never,b"
    lines[MANY - 5] = "0.5,someday,c"
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["x,day,s", *lines, ""]))
    return path


def test_values_of_another_type_name_column_and_remedy(changing):
    message = r"rows.csv.*column 'x'.*x9.*first MiB of the file; declare"
    with pytest.raises(tf.errors.OpError, match=message):
        rows(read_csv(changing, 20_000))
    fields = [Field("x", "string")]
    assert rows(read_csv(changing, 20_000, fields))[-9] == b"x9"


def test_values_of_another_type_are_left_out_row_by_row(changing):
    data = read_csv(changing, 20_000, on_error="skip")
    assert data.element_spec["x"].dtype == tf.int64
    assert data.element_spec["day"].dtype == tf.int32
    wrong = {MANY - 9, MANY - 7, MANY - 5}
    assert rows(data) == [i for i in range(MANY) if i not in wrong]
    assert data.report.skipped_rows == 3
    assert f"row {MANY - 8}: column 'x' holds 'x9', expected int64" in (
        data.report.summary()
    )
    # Of the columns that are read only.
    words = rows(read_csv(changing, 20_000, ["s"], on_error="skip"), "s")
    assert len(words) == MANY


def test_text_is_read_the_same_with_and_without_errors(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        'i,f,b,t,s,n\n 1 ,1e3,true,2024-01-02 03:04:05,"",\n'
        "-2,nan,False,,NA,\n,.5,,2024-01-02 03:04:06,é,\n"
    )
    fields = [
        Field("i", default=0),
        Field("f", default=0.0),
        Field("b", default=False),
        Field("t", default=0),
        Field("s", default="none"),
        Field("n", "float32", default=3),
    ]
    strict = next(iter(read_csv(path, 3, fields)))
    lenient = next(iter(read_csv(path, 3, fields, on_error="skip")))
    for name, values in strict.items():
        np.testing.assert_array_equal(values, lenient[name], err_msg=name)


def test_arrow_files(tmp_path):
    table = pa.table(
        {"x": np.arange(10), "l": [[i] * (i % 3) for i in range(10)]}
    )
    pa.feather.write_feather(table, tmp_path / "a.feather", chunksize=4)
    data = read_arrow(tmp_path / "a.feather", 3)
    assert rows(data) == list(range(10))
    assert rows(data, "l") == table["l"].to_pylist()
    assert int(data.cardinality()) == 4
    (tmp_path / "bad.feather").write_bytes(b"not Arrow")
    with pytest.raises(DataError, match=r"bad\.feather: not an Arrow IPC"):
        read_arrow(tmp_path / "bad.feather")


def test_orc_files(tmp_path):
    table = pa.table({"x": np.arange(10), "s": [f"s{i}" for i in range(10)]})
    pa.orc.write_table(table, tmp_path / "a.orc")
    data = read_orc(tmp_path / "a.orc", 3)
    assert rows(data) == list(range(10))
    assert rows(data, "s")[9] == b"s9"
    assert int(data.cardinality()) == 4
    late = Dataset.from_orc(tmp_path / "a.orc", ["x"]).batch(5)
    assert [len(batch["x"]) for batch in late] == [5, 5]
    (tmp_path / "bad.orc").write_bytes(b"not ORC")
    with pytest.raises(DataError, match=r"bad\.orc: not an ORC file"):
        read_orc(tmp_path / "bad.orc")


def test_tables_in_memory():
    arrays = {"x": np.arange(6), "m": np.arange(12.0).reshape(6, 2)}
    data = read_table(arrays, 4)
    assert data.element_spec["m"] == tf.TensorSpec([None, 2], tf.float64)
    assert rows(data) == list(range(6))
    assert rows(data, "m") == arrays["m"].tolist()
    frame = pd.DataFrame({"x": [1, 2], "s": ["a", None]})
    data = read_table(frame, 4, ["x", Field("s", default="?")])
    assert rows(data, "s") == [b"a", b"?"]
    table = pa.table({"x": [[1], []]})
    assert rows(read_table(table, 4)) == [[1], []]
    with pytest.raises(DataError, match="Received: list"):
        read_table([1, 2])


def test_memory_of_the_caller_is_never_written_to():
    values = np.arange(8192, dtype=np.float32)
    data = read_table({"x": values}, 8192)
    for _ in data.map(lambda row: row["x"] * 2 + 1):
        pass
    np.testing.assert_array_equal(values, np.arange(8192))


def test_large_tables_are_shuffled_over_all_of_their_parts():
    data = read_table({"x": np.arange(200_000)}, 200_000, shuffle=200_000)
    order = next(iter(data))["x"].numpy()
    assert np.abs(np.mean(order[:1000]) - 100_000) < 10_000
    np.testing.assert_array_equal(np.sort(order), np.arange(200_000))
