"""`embedra demo` and `embedra doctor`."""

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from embedra.cli import _doctor
from embedra.cli._app import app


@pytest.mark.multiprocess
@pytest.mark.slow
def test_quick_demo_does_the_whole_job(tmp_path):
    output = tmp_path / "demo"
    result = CliRunner().invoke(app, ["demo", "--quick", f"--output={output}"])
    assert result.exit_code == 0, result.output
    assert "checkpoint of step 30" in result.output
    assert result.output.count("loaded in new processes") == 2
    for model in ("dlrm", "dcn_v2"):
        assert (output / f"{model}.keras").is_file()
        assert (output / model / "saved_model.pb").is_file()
    report = (output / "report.html").read_text()
    assert report.count("data:image/png;base64,") == 3
    assert "ideal" in report
    # Nothing is fetched from elsewhere.
    assert not re.search(r"(src|href)='?\"?http", report)


def test_demo_that_cannot_write_ends_with_one_message(tmp_path):
    path = tmp_path / "file"
    path.touch()
    result = CliRunner().invoke(app, ["demo", f"--output={path}"])
    assert result.exit_code == 1
    assert "file: cannot be written to (File exists)" in result.output


def test_doctor_passes_and_shows_versions():
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.output
    for name in ("Embedra", "TensorFlow", "Keras", "Python", "Compiler"):
        assert name in result.output
    assert result.output.count("pass") == 2


def test_doctor_fails_where_a_number_is_wrong(monkeypatch):
    def broken():
        _doctor._expect_close("rows", [1.0], [2.0])

    monkeypatch.setitem(_doctor._CHECKS, "update", broken)
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "rows: found [1.0], expected [2.0]" in result.output


@pytest.mark.multiprocess
def test_command_is_quiet_about_tensorflow():
    result = subprocess.run(
        [sys.executable, "-m", "embedra", "doctor"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "oneDNN" not in result.stdout + result.stderr
