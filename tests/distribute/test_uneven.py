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
    names = estimator.get_variable_names()
    dense = ("weights", "bias", "moving_mean")
    found = {name: value(name) for name in dense if name in names}
    for table in ("user", "tag"):
        if f"{table}/keys" not in names:
            continue
        order = np.argsort(value(f"{table}/keys"))
        for part in ("keys", "rows", "slots"):
            found[f"{table}/{part}"] = value(f"{table}/{part}")[order]
    return found


@pytest.mark.distributed
@needs_mpi
@pytest.mark.parametrize("count", TWO_OR_THREE)
def test_es06_uneven_ranks_train_what_one_process_does(count, tmp_path):
    steps = models.joined(count)
    assert len(steps) == 5
    models.train(tmp_path / "source", "adam", steps)

    result = run_ranks(count, "uneven.py", tmp_path)
    check_passed(result, count)

    def check_state(joint, alone, name):
        expected, found = state(alone), state(joint)
        assert found.keys() == expected.keys()
        for part, value in expected.items():
            np.testing.assert_allclose(
                found[part],
                value,
                rtol=1e-4,
                atol=1e-5,
                err_msg=f"{name}: {part}",
            )

    def check(name, *arguments, **others):
        alone = models.train(tmp_path / "alone" / name, *arguments, **others)
        # Nothing is left to train.
        joint = models.train(tmp_path / name, *arguments, **others, max_steps=1)
        check_state(joint, alone, name)
        losses = [
            {step: one["loss"] for step, one in read_summaries(folder).items()}
            for folder in (alone.model_dir, joint.model_dir)
        ]
        assert list(losses[0]) == [1, 2, 3, 4, 5]
        assert losses[1] == pytest.approx(losses[0], rel=1e-4)

    for name in models.OPTIMIZERS:
        check(name, name, steps)
    alone = models.make(tmp_path / "alone" / "iterated", "sgd")
    alone.train(models.iterated(models.input_fn(steps)))
    check_state(models.make(tmp_path / "iterated", "sgd"), alone, "iterated")
    check("averages", "adam", steps, models.averaging_model_fn)
    for name, (source, which) in models.WARM_STARTS.items():
        warm = (tmp_path / source, which)
        check(f"from_{name}", "adam", steps, warm=warm)

    # Monitored sessions: one that was stopped, and one that went on.
    for some in (steps[:2], steps):
        models.train_session(tmp_path / "alone" / "session", some)
    check_state(
        *(
            models.make(folder / "session", "sgd")
            for folder in (tmp_path, tmp_path / "alone")
        ),
        "session",
    )
