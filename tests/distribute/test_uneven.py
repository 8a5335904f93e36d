"""Ranks with uneven data train what one process with all rows does."""

import importlib.util

import numpy as np
import pytest

from distribute.launching import (
    RANKS,
    TWO_OR_THREE,
    check_passed,
    needs_mpi,
    run_ranks,
)
from embedra.estimator._summaries import read_summaries


spec = importlib.util.spec_from_file_location(
    "uneven_models", RANKS / "uneven_models.py"
)
models = importlib.util.module_from_spec(spec)
spec.loader.exec_module(models)


def state(estimator):
    """Returns dense weights, and rows and slots of tables by key."""
    value = estimator.get_variable_value
    found = {name: value(name) for name in ("weights", "bias")}
    for table in ("user", "tag"):
        order = np.argsort(value(f"{table}/keys"))
        for part in ("keys", "rows", "slots"):
            found[f"{table}/{part}"] = value(f"{table}/{part}")[order]
    return found


@pytest.mark.distributed
@needs_mpi
@pytest.mark.parametrize("count", TWO_OR_THREE)
def test_es06_uneven_ranks_train_what_one_process_does(count, tmp_path):
    result = run_ranks(count, "uneven.py", tmp_path)
    check_passed(result, count)

    steps = models.joined(count)
    assert len(steps) == 5
    for name in models.OPTIMIZERS:
        alone = models.train(tmp_path / "alone" / name, name, steps)
        together = models.train(tmp_path / name, name, steps, max_steps=5)
        whole, joint = state(alone), state(together)
        for part, value in whole.items():
            np.testing.assert_allclose(
                joint[part],
                value,
                rtol=1e-4,
                atol=1e-5,
                err_msg=f"{name}: {part}",
            )
        losses = [
            {step: one["loss"] for step, one in read_summaries(folder).items()}
            for folder in (alone.model_dir, together.model_dir)
        ]
        assert list(losses[0]) == [1, 2, 3, 4, 5]
        assert losses[1] == pytest.approx(losses[0], rel=1e-4)
