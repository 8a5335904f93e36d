"""`embedra convert`, `embedra inspect data`, and training on the result."""

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from embedra.cli._app import app


@pytest.fixture
def log(tmp_path):
    lines = [f"{i % 5 % 2},{i},s{i % 5},a{i % 9}" for i in range(400)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["click,age,site,ad", *lines]) + "\n")
    return path


def invoke(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


CLICKS = (
    "--label=click",
    "--integer-columns=age",
    "--categorical-columns=site,ad",
)


def test_converted_log_is_looked_into_and_trained_on(log, tmp_path):
    target = tmp_path / "log.parquet"
    result = invoke("convert", "csv", log, target, *CLICKS)
    assert result.exit_code == 0, result.output
    assert "Wrote 400 rows" in result.output
    result = invoke("inspect", "data", target)
    assert result.exit_code == 0, result.output
    assert "1 files, 1 x row group, 400 rows" in result.output
    assert "site" in result.output
    result = invoke("train", f"--data={target}", "--epochs=1", "--dim=4")
    assert result.exit_code == 0, result.output
    assert "(site 5, ad 9)" in result.output


def test_malformed_rows_are_counted(log, tmp_path):
    log.write_text(log.read_text() + "7,1,s,a\n")
    target = tmp_path / "log.parquet"
    result = invoke("convert", "csv", log, target, *CLICKS)
    assert result.exit_code == 1
    assert "log.csv:402: column 'click' is '7'" in result.output
    result = invoke("convert", "csv", log, target, *CLICKS, "--on-error=skip")
    assert result.exit_code == 0, result.output
    assert "1 malformed" in result.output
    assert "Wrote 400 rows" in result.output


def test_types_of_text_are_told(tmp_path):
    path, target = tmp_path / "rows.csv", tmp_path / "rows.parquet"
    path.write_text("zip,price\n007,1\n")
    types = "--types=zip=string,price=float64"
    result = invoke("convert", "csv", path, target, types)
    assert result.exit_code == 0, result.output
    found = pyarrow.parquet.read_table(target).to_pylist()
    assert found == [{"zip": "007", "price": 1.0}]
    result = invoke("convert", "csv", path, target, "--types=zip")
    assert result.exit_code == 1
    assert "NAME=TYPE,NAME=TYPE" in result.output
    result = invoke("convert", "tfrecord", path, target, types)
    assert "--types is for csv" in result.output


def test_what_cannot_be_done_is_said(log, tmp_path):
    result = invoke("convert", "criteo", log, tmp_path / "none" / "x.parquet")
    assert result.exit_code == 1
    assert "no such folder" in result.output
    result = invoke("convert", "tfrecord", tmp_path / "no", tmp_path / "x")
    assert result.exit_code == 1
    assert "no file matches" in result.output
    result = invoke("inspect", "data", tmp_path / "no.parquet")
    assert result.exit_code == 1
    assert "no.parquet: no file matches" in result.output
    result = invoke("train", f"--data={log}")
    assert result.exit_code == 1
    assert "--format" in result.output
