"""The Criteo example of Keras: with two ranks it learns as with one."""

import re
from pathlib import Path

import pytest

from distribute.launching import needs_mpi, run_embedra


EXAMPLE = Path(__file__).parents[2] / "examples" / "keras_criteo.py"


def auc(count, folder):
    result = run_embedra("-n", count, EXAMPLE, folder, timeout=600)
    assert result.returncode == 0, result.stderr[-6000:]
    (found,) = re.findall(r"AUC on test\.csv: (\S+)", result.stdout)
    return float(found)


@pytest.mark.slow
@pytest.mark.distributed
@needs_mpi
def test_two_ranks_learn_as_one(shared_data):
    one = auc(1, shared_data / "criteo")
    assert one > 0.68
    assert abs(auc(2, shared_data / "criteo") - one) < 0.002


def test_a_wrong_folder_is_named(tmp_path):
    result = run_embedra("-n", 1, EXAMPLE, tmp_path)
    assert result.returncode != 0
    assert re.search(r"no file .*train\.csv", result.stdout + result.stderr)
