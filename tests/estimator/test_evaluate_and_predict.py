"""Evaluation and prediction: what they give, and that they change nothing."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import estimator as lib

from . import small


v1 = tf.compat.v1

UNSEEN = 1000


def test_metrics_are_those_of_the_checkpoint(trained):
    predicted = [
        one["score"]
        for one in trained.predict(small.input_fn(2), predict_keys="score")
    ]
    labels = np.arange(8) % 2
    found = trained.evaluate(small.input_fn(2))
    errors = labels - np.array(predicted)
    assert list(found) == ["error", "global_step", "keys", "loss"]
    np.testing.assert_allclose(found["loss"], np.mean(errors**2), rtol=1e-5)
    np.testing.assert_allclose(
        found["error"], np.mean(np.abs(errors)), rtol=1e-5
    )
    assert found["global_step"] == 5


def test_ids_that_are_evaluated_are_not_added(trained):
    found = trained.evaluate(small.input_fn(2, start=UNSEEN // 2))
    assert found["keys"] == small.IDS
    rows = [one["row"] for one in trained.predict(small.batches_of(UNSEEN))]
    np.testing.assert_array_equal(rows, [[0.0, 0.0]])


def test_a_number_of_batches_is_evaluated(trained):
    first = trained.evaluate(small.input_fn(1))["loss"]
    assert trained.evaluate(small.input_fn(3), steps=1)["loss"] == first


def test_scaffold_with_a_local_init_op_of_its_own_is_evaluated(tmp_path):
    def model_fn(features, labels, mode, params):
        spec = small.model_fn(features, labels, mode, params)
        own = v1.get_local_variable("own", (), initializer=v1.ones_initializer)
        init = v1.local_variables_initializer()
        scaffold = v1.train.Scaffold(local_init_op=init)
        metrics = spec.eval_metric_ops | {"own": (own.read_value(), own)}
        return spec._replace(scaffold=scaffold, eval_metric_ops=metrics)

    estimator = lib.Estimator(model_fn, tmp_path)
    estimator.train(small.input_fn(2))
    found = estimator.evaluate(small.input_fn(1))
    assert found["own"] == 1
    assert np.isfinite(found["loss"])


def test_an_older_checkpoint_can_be_evaluated(tmp_path):
    estimator = small.make(tmp_path, save_checkpoints_steps=1)
    estimator.train(small.input_fn(2))
    path = f"{tmp_path}/model.ckpt-1"
    found = estimator.evaluate(
        small.input_fn(1), checkpoint_path=path, name="old"
    )
    assert (found["global_step"], found["keys"]) == (1, 4)
    (events,) = lib.experimental.read_eval_metrics(
        estimator.eval_dir("old")
    ).items()
    assert events[0] == 1
    assert estimator.eval_dir("old") == f"{tmp_path}/eval_old"


def test_predictions_are_one_by_one_or_in_batches(trained):
    examples = list(trained.predict(small.batches_of(1, 2, 3)))
    assert [one["row"].shape for one in examples] == [(2,)] * 3
    batches = list(
        trained.predict(small.batches_of(1, 2, 3), yield_single_examples=False)
    )
    assert [batch["score"].shape for batch in batches] == [(2,), (1,)]
    np.testing.assert_array_equal(
        np.concatenate([batch["score"] for batch in batches]),
        [one["score"] for one in examples],
    )


def test_other_things_can_be_done_between_predictions(trained):
    predictions = trained.predict(small.batches_of(1, 2, 3))
    first = next(predictions)
    with tf.Graph().as_default():
        second = next(predictions)
    assert first["score"] != second["score"]
    predictions.close()
    assert tf.executing_eagerly()


def test_predictions_may_be_one_tensor_and_know_no_labels(tmp_path):
    def model_fn(features, labels, mode):
        if mode == lib.ModeKeys.PREDICT:
            assert labels is None
            return lib.EstimatorSpec(mode, features["user"] * 2)
        raise AssertionError

    estimator = small.make(tmp_path, model_fn)
    found = estimator.predict(small.input_fn(1), allow_untrained=True)
    assert list(found) == [0, 2, 4, 6]


def test_what_uses_labels_in_a_prediction_is_told_so(trained):
    def model_fn(features, labels, mode):
        loss = tf.reduce_mean(labels - tf.cast(features["user"], tf.float32))
        return lib.EstimatorSpec(mode, {}, loss)

    estimator = small.make(trained.model_dir, model_fn)
    with pytest.raises((TypeError, ValueError)) as error:
        next(estimator.predict(small.input_fn(1)))
    assert "labels are None" in error.value.__notes__[0]


@pytest.mark.parametrize("keys", [["score", "other"], []])
def test_keys_of_predictions_are_checked(trained, keys):
    with pytest.raises(ValueError, match=r"among \['row', 'score'\]"):
        next(trained.predict(small.batches_of(1), predict_keys=keys))


def test_examples_need_predictions_of_one_size(trained):
    def model_fn(features, labels, mode, params):
        spec = small.model_fn(features, labels, mode, params)
        return spec._replace(
            predictions={**spec.predictions, "mean": tf.constant(1.0)}
        )

    estimator = small.make(trained.model_dir, model_fn)
    with pytest.raises(ValueError, match="yield_single_examples=False"):
        next(estimator.predict(small.batches_of(1)))


def test_a_checkpoint_is_needed(tmp_path):
    estimator = small.make(tmp_path / "new")
    with pytest.raises(ValueError, match="no checkpoint .* to evaluate"):
        estimator.evaluate(small.input_fn(1))
    with pytest.raises(ValueError, match="no checkpoint .* to predict by"):
        estimator.predict(small.input_fn(1))
    with pytest.raises(ValueError, match="no checkpoint .* to export"):
        estimator.export_saved_model(tmp_path, lambda: None)
    with pytest.raises(ValueError, match="model.ckpt-7"):
        estimator.evaluate(small.input_fn(1), checkpoint_path="model.ckpt-7")
    with pytest.raises(ValueError, match="no checkpoint"):
        estimator.get_variable_names()
    assert estimator.latest_checkpoint() is None


def test_bad_evaluations_are_refused(trained):
    with pytest.raises(ValueError, match="no batch to evaluate"):
        trained.evaluate(small.input_fn(0))
    with pytest.raises(ValueError, match="`steps` must be positive"):
        trained.evaluate(small.input_fn(1), steps=0)

    def model_fn(features, labels, mode, params):
        spec = small.model_fn(features, labels, mode, params)
        metric = (spec.loss, tf.no_op())
        return spec._replace(eval_metric_ops={"loss": metric})

    estimator = small.make(trained.model_dir, model_fn)
    with pytest.raises(ValueError, match="must not have 'loss'"):
        estimator.evaluate(small.input_fn(1))


def test_names_and_values_of_a_checkpoint_are_read(trained):
    names = trained.get_variable_names()
    assert {"weight", "weight/Adam", "user/keys", "user/slots"} < set(names)
    assert trained.get_variable_value("user/rows").shape == (small.IDS, 2)
    with pytest.raises(ValueError, match=r"no variable 'wait'.*'weight'"):
        trained.get_variable_value("wait")


def test_metrics_are_added(trained):
    def more(features, labels, predictions):
        assert set(features) == {"user"}
        error = tf.reduce_max(tf.abs(predictions["score"] - labels))
        return {"largest": tf.compat.v1.metrics.mean(error)}

    with_more = lib.add_metrics(trained, more)
    found = with_more.evaluate(small.input_fn(1))
    assert found["largest"] > found["error"] > 0
    assert "largest" not in trained.evaluate(small.input_fn(1))
    with pytest.raises(ValueError, match="a function of x"):
        lib.add_metrics(trained, lambda x: x)
