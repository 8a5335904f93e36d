"""Warm starts: what training begins with."""

import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra import estimator as lib

from . import small


v1 = tf.compat.v1


def larger_model_fn(features, labels, mode, params):
    """The small model with one more table and one more weight."""
    new = de.get_variable("new", dim=2)
    rows = de.embedding_lookup(new, features["user"])
    v1.get_variable("new_weight", (2,))
    spec = small.model_fn(features, labels, mode, params)
    with tf.control_dependencies([rows]):
        return spec._replace(train_op=tf.group(spec.train_op))


@pytest.mark.parametrize("how", ["folder", "settings"])
def test_es05_c06_a_larger_model_begins_with_a_smaller_one(
    trained, tmp_path, how
):
    warm = trained.model_dir
    if how == "settings":
        warm = lib.WarmStartSettings(warm, ["user.*", "weight.*"])
    estimator = small.make(
        tmp_path, larger_model_fn, {"rate": 0.0}, warm_start_from=warm
    )
    estimator.train(small.input_fn(1))
    before = small.records(trained.latest_checkpoint())
    after = small.records(estimator.latest_checkpoint())
    assert [row for _, (row, *_) in sorted(before.items())] == [
        row for _, (row, *_) in sorted(after.items())
    ]
    # Key 19 is not in the batch: its slots are as they were restored.
    restored_slots = any(after[19][1])
    assert restored_slots == (how == "settings")
    np.testing.assert_array_equal(
        estimator.get_variable_value("weight"),
        trained.get_variable_value("weight"),
    )
    assert len(estimator.get_variable_value("new/keys")) == 4
    assert int(estimator.get_variable_value("global_step")) == 1


def test_a_run_that_goes_on_is_not_started_again(trained, tmp_path):
    def train():
        estimator = small.make(tmp_path, warm_start_from=trained.model_dir)
        estimator.train(small.input_fn(1))
        return estimator.get_variable_value("weight").tolist()

    first = train()
    assert train() != first
    estimator = small.make(tmp_path)
    assert int(estimator.get_variable_value("global_step")) == 2


def test_bad_warm_starts_are_refused(tmp_path):
    with pytest.raises(TypeError, match="`warm_start_from` must be"):
        small.make(tmp_path, warm_start_from=7)
    with pytest.raises(ValueError, match="must be a checkpoint or its folder"):
        lib.WarmStartSettings("")
    with pytest.raises(ValueError, match="`var_name_to_vocab_info` is not"):
        lib.WarmStartSettings("run", var_name_to_vocab_info={"a": "b"})
    nothing = small.make(tmp_path, warm_start_from=str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        nothing.train(small.input_fn(1))
