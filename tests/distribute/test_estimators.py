"""Estimators of several ranks do what those of one process do."""

import importlib.util
import json

import numpy as np
import pytest
import tensorflow as tf

from distribute.launching import RANKS, check_passed, needs_mpi, run_ranks


spec = importlib.util.spec_from_file_location(
    "estimator_models", RANKS / "estimator_models.py"
)
models = importlib.util.module_from_spec(spec)
spec.loader.exec_module(models)


@pytest.mark.distributed
@needs_mpi
def test_es06_estimators_of_a_job_are_those_of_one_process(tmp_path):
    result = run_ranks(2, "estimators.py", tmp_path, timeout=400)
    check_passed(result, 2)

    alone = models.make(tmp_path / "alone")
    alone.train(models.input_fn(), max_steps=7)
    alone.train(models.input_fn(), max_steps=9)
    together = models.make(tmp_path / "trained")
    whole, joint = models.state(alone), models.state(together)
    assert whole.keys() == joint.keys()
    for name, value in whole.items():
        np.testing.assert_allclose(
            joint[name], value, rtol=1e-4, atol=1e-5, err_msg=name
        )
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    found = alone.evaluate(models.input_fn())
    for name, value in found.items():
        assert metrics[name] == pytest.approx(value, rel=1e-4), name

    exports = (tmp_path / "both" / "export" / "best").glob("*/saved_model.pb")
    loaded = tf.saved_model.load(str(sorted(exports)[-1].parent))
    clicks = loaded.signatures["serving_default"](
        user=tf.constant(models.USERS),
        word=tf.constant(models.WORDS),
        age=tf.constant(models.AGES),
    )["click"]
    assert clicks.shape == (models.ROWS,)
    assert float(tf.math.reduce_std(clicks)) > 0.01

    # One process goes on with what the ranks have trained.
    together.train(models.input_fn(), steps=1)
    assert int(together.get_variable_value("global_step")) == 10
