"""`fit`, `evaluate` and `predict` of models whose ranks train together."""

import pytest

from distribute.launching import (
    TWO_OR_THREE,
    check_passed,
    needs_mpi,
    run_ranks,
)


pytestmark = [pytest.mark.distributed, needs_mpi]


@pytest.mark.parametrize("count", TWO_OR_THREE)
def test_d01_d02_ranks_with_less_data_or_none_train_as_one_does(count):
    check_passed(run_ranks(count, "fitting.py", timeout=500), count)


def test_fit_takes_what_keras_takes_and_ends_on_all_ranks():
    check_passed(run_ranks(2, "fit_inputs.py", timeout=500), 2)


def test_a_signal_to_one_rank_stops_all_after_the_same_step(tmp_path):
    result = run_ranks(2, "stopping.py", tmp_path / "run")
    check_passed(result, 2)
    assert result.stderr.count("The training stopped") == 1
    assert result.stdout.count("Epoch 1/3") == 2, "only the first rank prints"
