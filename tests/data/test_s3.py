"""Files on a server that speaks S3, on this machine."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from moto.server import ThreadedMotoServer
from pyarrow.fs import S3FileSystem

from embedra.data import DataError, ParquetDataset, profile, read_csv


@pytest.fixture(scope="module")
def server():
    """Its address."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield "{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


@pytest.fixture(scope="module")
def remote(server):
    """A bucket with two days of rows, 0 to 99."""
    remote = S3FileSystem(
        access_key="user",
        secret_key="secret",
        scheme="http",
        endpoint_override=server,
        region="us-east-1",
        allow_bucket_creation=True,
    )
    remote.create_dir("bucket")
    for day, rows in ((6, np.arange(40)), (7, np.arange(40, 100))):
        pa.parquet.write_table(
            pa.table({"x": rows, "y": rows / 2}),
            f"bucket/clicks/day={day}/rows.parquet",
            filesystem=remote,
            row_group_size=20,
        )
    with remote.open_output_stream("bucket/log.csv") as stream:
        stream.write(b"x,y\n1,2\n3,4\n")
    return remote


@pytest.fixture
def url(server, remote):
    """Makes a URL of a path in the bucket."""
    del remote
    options = f"scheme=http&endpoint_override={server}&region=us-east-1"
    return lambda path: f"s3://user:secret@bucket/{path}?{options}"


def rows(data, name="x"):
    return [value for batch in data for value in batch[name].numpy().tolist()]


@pytest.mark.parametrize(
    "path", ["clicks", "clicks/*/rows.parquet", "clic?s/day=[67]/*"]
)
def test_files_of_a_url(url, path):
    data = ParquetDataset(url(path), 16, num_parallel_reads=3)
    assert rows(data) == list(range(100))
    assert rows(data, "day") == [6] * 40 + [7] * 60
    shuffled = ParquetDataset(url(path), 16, ["x"], 2, 1, shuffle=True)
    assert len(set(rows(shuffled))) == 50


def test_file_system_that_is_given(remote):
    data = ParquetDataset("bucket/clicks/day=7", 16, filesystem=remote)
    assert rows(data) == list(range(40, 100))
    assert rows(read_csv("bucket/log.csv", 2, filesystem=remote)) == [1, 3]


def test_profile_of_a_url(url):
    found = profile(url("clicks"))
    assert (found.files, found.units, found.rows) == (2, 5, 100)


def test_errors_name_the_url_and_no_keys(url, remote):
    with pytest.raises(DataError, match="s3://bucket/none.*no file") as none:
        ParquetDataset(url("none"))
    pa.parquet.write_table(
        pa.table({"x": ["a"]}), "bucket/odd/r.parquet", filesystem=remote
    )
    names = [url("clicks/day=6/rows.parquet"), url("odd")]
    with pytest.raises(DataError, match="s3://bucket/odd/r.parquet") as odd:
        ParquetDataset(names, fields=["x"])
    with pytest.raises(DataError, match="s3://bucket/a.*'colour'") as option:
        ParquetDataset("s3://user:secret@bucket/a?colour=red")
    for error in (none, odd, option):
        assert "secret" not in str(error.value)
