"""Files of rows for the tests of readers."""

import pyarrow as pa
import pyarrow.parquet
import pytest


@pytest.fixture
def write(tmp_path):
    """Writes columns to a Parquet file of the test's folder."""

    def write_file(name="rows.parquet", group=None, **columns):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = columns.pop("table", None)
        table = pa.table(columns) if table is None else table
        pyarrow.parquet.write_table(table, path, row_group_size=group)
        return str(path)

    return write_file
