"""The Criteo example: what it learns, goes on from, and serves."""

import re
import runpy
import sys
from pathlib import Path

import pytest
import tensorflow as tf


EXAMPLE = Path(__file__).parents[2] / "examples" / "estimator_criteo.py"


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [EXAMPLE.name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")


@pytest.mark.slow
def test_it_learns_goes_on_and_is_served(
    shared_data, monkeypatch, capsys, tmp_path
):
    folder = tmp_path / "run"
    run(monkeypatch, shared_data / "criteo", "--model-dir", folder)
    output = capsys.readouterr().out
    assert float(re.search(r"AUC on test\.csv: (\S+)", output)[1]) > 0.70
    steps = [int(step) for step in re.findall(r"^step +(\d+)", output, re.M)]
    assert steps == [60, 85, 145, 170]
    served = re.search(r"Served from (\S+)", output)[1]
    signature = tf.saved_model.load(served).signatures["serving_default"]
    inputs = signature.structured_input_signature[1]
    answer = signature(
        **{
            name: tf.constant([1.0] if spec.dtype == tf.float32 else ["word"])
            for name, spec in inputs.items()
        }
    )
    assert 0.0 < float(answer["click"][0]) < 1.0


def test_a_wrong_folder_is_named(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match=r"no file .*train\.csv"):
        run(monkeypatch, tmp_path)
