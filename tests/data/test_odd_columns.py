"""Columns, fields and defaults that do not fit, and those that just do."""

import numpy as np
import pyarrow as pa
import pytest

from embedra.data import DataError, Field, ParquetDataset, read_table


def values(data, name="x"):
    return [row for batch in data for row in batch[name].numpy().tolist()]


def test_missing_booleans_are_false_under_a_mask(write):
    path = write(x=pa.array([True, None]))
    batch = next(iter(ParquetDataset(path, 2, [Field("x", mask=True)])))
    assert batch["x"].numpy().tolist() == [True, False]
    assert batch["x_present"].numpy().tolist() == [True, False]


def test_lists_of_booleans_are_padded_with_false(write):
    path = write(x=pa.array([[True], [], [True, True]]))
    data = ParquetDataset(path, 3, to_dense=True)
    assert values(data) == [[True, False], [False, False], [True, True]]


@pytest.mark.parametrize(
    ("dtype", "default"),
    [("int8", 300), ("int64", "a"), ("int64", 0.5), ("string", 1)],
)
@pytest.mark.parametrize("name", ["x", "absent"])
def test_default_of_another_type_is_refused_at_once(
    write, name, dtype, default
):
    kind = pa.binary() if dtype == "string" else pa.int8()
    path = write(x=pa.array([None], kind))
    field = Field(name, dtype, default=default)
    with pytest.raises(DataError, match=f"'{name}': default={default!r}"):
        ParquetDataset(path, 1, [field], on_error="skip")


def test_mask_may_not_have_the_name_of_a_column(write):
    path = write(x=[1], x_present=[2])
    with pytest.raises(DataError, match="'x_present'"):
        ParquetDataset(path, 1, [Field("x", mask=True), "x_present"])


def test_null_list_of_fixed_size_is_filled_with_the_default(write):
    path = write(
        x=pa.array([[1, 2], None], pa.list_(pa.int32(), 2)),
        y=pa.array([[1, 2], None], pa.list_(pa.int32())),
    )
    assert values(ParquetDataset(path, 2, [Field("x", default=9)])) == [
        [1, 2],
        [9, 9],
    ]
    field = Field("y", shape=[2], default=9)
    assert values(ParquetDataset(path, 2, [field]), "y") == [[1, 2], [9, 9]]
    with pytest.raises(Exception, match="row 1: column 'x' is null"):
        values(ParquetDataset(path, 2, ["x"]))


@pytest.mark.parametrize(
    "other",
    [pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.int64()],
    ids=["unit", "zone", "number"],
)
@pytest.mark.parametrize("dtype", [None, "int64"], ids=["open", "declared"])
def test_times_that_count_something_else_are_not_mixed(write, other, dtype):
    first = write("a.parquet", x=pa.array([1], pa.timestamp("ms")))
    second = write("b.parquet", x=pa.array([1], other))
    with pytest.raises(DataError, match=r"b\.parquet: column 'x'.*one unit"):
        ParquetDataset([first, second], 1, [Field("x", dtype)])


def test_instants_of_several_zones_are_one_column(write):
    zones = "UTC", "Europe/Berlin"
    paths = [
        write(f"{i}.parquet", x=pa.array([i], pa.timestamp("ms", zone)))
        for i, zone in enumerate(zones)
    ]
    assert values(ParquetDataset(paths, 2)) == [0, 1]


def test_views_of_strings_are_strings():
    long = "longer than what a view holds itself"
    table = pa.table({"x": pa.array(["a", "", long], pa.string_view())})
    assert values(read_table(table, 3)) == [b"a", b"", long.encode()]


def test_table_without_rows_is_a_dataset_without_batches():
    assert not values(read_table({"x": np.zeros(0)}, 2))


def test_no_field_is_an_error(write):
    with pytest.raises(DataError, match="No column"):
        ParquetDataset(write(x=[1]), 1, [])


@pytest.mark.parametrize("batch_size", [2.5, "2", None])
def test_batch_size_is_an_integer(write, batch_size):
    with pytest.raises(ValueError, match="batch_size is an integer"):
        ParquetDataset(write(x=[1]), batch_size)
