"""Parquet files: types, missing values, and errors."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from embedra.data import Block, ClickReader, Columns, DataError, string_ids


COLUMNS = Columns("click", numeric=("age",), categorical=("site", "ad"))
MISSING = string_ids([""])[0]


@pytest.fixture
def write(tmp_path):
    def write_file(**columns):
        values = {
            "click": pa.array([1, 0, 1], pa.int8()),
            "age": pa.array([2.5, None, 4.0], pa.float32()),
            "site": pa.array([7, None, -9], pa.int64()),
            "ad": pa.array(["x", None, "y"]),
        }
        path = tmp_path / "log.parquet"
        pyarrow.parquet.write_table(pa.table({**values, **columns}), path)
        return path

    return write_file


def read(path, **options):
    reader = ClickReader(path, "parquet", COLUMNS, **options)
    return Block.concatenate(list(reader.blocks())), reader.report


def test_integers_are_ids_and_strings_are_hashed(write):
    block, _ = read(write())
    np.testing.assert_array_equal(block.labels, [1, 0, 1])
    np.testing.assert_array_equal(block.numeric[:, 0], [2.5, np.nan, 4.0])
    np.testing.assert_array_equal(block.categorical[:, 0], [7, MISSING, -9])
    x, y = string_ids(["x", "y"])
    np.testing.assert_array_equal(block.categorical[:, 1], [x, MISSING, y])


def test_unsigned_ids_keep_their_bits(write):
    block, _ = read(write(site=pa.array([2**64 - 1, 0, 1], pa.uint64())))
    np.testing.assert_array_equal(block.categorical[:, 0], [-1, 0, 1])


def test_dictionaries_and_booleans_are_understood(write):
    path = write(
        click=pa.array([True, False, True]),
        ad=pa.array(["x", None, "x"]).dictionary_encode(),
    )
    block, _ = read(path)
    assert block.labels.tolist() == [1, 0, 1]
    assert block.categorical[1, 1] == MISSING


def test_column_of_a_wrong_type_is_found_at_the_beginning(write):
    path = write(ad=pa.array([1.5, None, 2.5]))
    reader = ClickReader(path, "parquet", COLUMNS)
    with pytest.raises(DataError, match="column 'ad' has type double"):
        reader.check_beginning()


def test_bad_label_is_named_by_row_or_left_out(write):
    path = write(click=pa.array([1, 3, None]))
    with pytest.raises(DataError, match=r"log\.parquet:2: column 'click'"):
        read(path)
    block, report = read(path, on_error="skip")
    assert (len(block), report.malformed) == (1, 2)


def test_float_ids_are_refused_with_the_remedy(write):
    path = write(site=pa.array([1.0, 2.0, 3.0]))
    with pytest.raises(DataError, match="'site' has type double. Expected"):
        read(path)


def test_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "log.parquet"
    path.write_text("site,click\n")
    with pytest.raises(DataError, match=r"log\.parquet: not a Parquet file"):
        ClickReader(path, "parquet", COLUMNS)
