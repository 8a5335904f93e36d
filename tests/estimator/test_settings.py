"""RunConfig, EstimatorSpec and model functions: what they take and refuse."""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf

import embedra.compat.v1 as compat
import embedra.dynamic_embedding as de
from embedra import estimator as lib

from . import small


v1 = tf.compat.v1


def test_checkpoints_are_saved_by_steps_or_by_seconds():
    assert lib.RunConfig().save_checkpoints_secs == 600
    by_steps = lib.RunConfig(save_checkpoints_steps=5)
    assert by_steps.save_checkpoints_secs is None
    by_seconds = by_steps.replace(save_checkpoints_secs=3)
    assert by_seconds.save_checkpoints_steps is None
    assert by_seconds.replace(tf_random_seed=4).save_checkpoints_secs == 3
    with pytest.raises(ValueError, match="by steps or by seconds"):
        lib.RunConfig(save_checkpoints_steps=5, save_checkpoints_secs=5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"save_summary_steps": 0}, "`save_summary_steps` must be positive"),
        ({"keep_checkpoint_max": -1}, "`keep_checkpoint_max` must be 0"),
        ({"train_distribute": "mirrored"}, "`train_distribute` is not"),
    ],
)
def test_bad_configurations_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        lib.RunConfig(**arguments)
    with pytest.raises(TypeError):
        lib.RunConfig(unknown=1)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("save_checkpoints_steps", 1.5, "an integer"),
        ("save_checkpoints_secs", "60", "a number"),
        ("tf_random_seed", "one", "an integer"),
        ("keep_checkpoint_max", True, "an integer"),
        ("session_config", {}, "a tf.compat.v1.ConfigProto"),
        ("model_dir", 5, "a path"),
        ("model_dir", "", "a path"),
        ("device_fn", "/cpu:0", "a function"),
    ],
)
def test_values_of_another_kind_are_refused(name, value, kind):
    with pytest.raises(TypeError, match=f"`{name}` must be {kind}"):
        lib.RunConfig(**{name: value})


def test_numbers_of_numpy_are_numbers():
    assert lib.RunConfig(save_checkpoints_steps=np.int64(3)).is_chief


def test_the_cluster_is_that_of_tf_config(monkeypatch, tmp_path):
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
    task = {"type": "worker", "index": 1}
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": cluster, "task": task})
    )
    config = lib.RunConfig()
    assert (config.task_type, config.task_id) == ("worker", 1)
    assert (config.num_ps_replicas, config.num_worker_replicas) == (1, 3)
    assert config.global_id_in_cluster == 2
    assert config.master == "grpc://c:1"
    assert not config.is_chief
    estimator = small.make(tmp_path)
    assert set(estimator.config.cluster_spec.jobs) == {"chief", "ps", "worker"}

    del cluster["ps"]
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": cluster, "task": task})
    )
    with pytest.raises(NotImplementedError, match="without a parameter server"):
        small.make(tmp_path).train(small.input_fn(1))


def test_without_a_cluster_there_is_one_chief():
    config = lib.RunConfig()
    assert (config.task_type, config.task_id) == ("worker", 0)
    assert (config.num_ps_replicas, config.num_worker_replicas) == (0, 1)
    assert config.is_chief
    assert config.master == ""


def test_a_function_may_give_devices():
    def model_fn(features, mode):
        assert features.device == "/device:CPU:0"
        return lib.EstimatorSpec(mode, features + 1)

    config = lib.RunConfig(device_fn=lambda _: "/device:CPU:0")
    estimator = lib.Estimator(model_fn, config=config)
    found = estimator.predict(lambda: tf.constant([1]), allow_untrained=True)
    assert next(found) == 2


def test_folders_are_given_once(tmp_path):
    config = lib.RunConfig(model_dir=tmp_path / "one")
    estimator = lib.Estimator(small.model_fn, config=config)
    assert estimator.model_dir == str(tmp_path / "one")
    with pytest.raises(ValueError, match="must be the same"):
        lib.Estimator(small.model_fn, tmp_path / "two", config)
    temporary = lib.Estimator(small.model_fn)
    assert temporary.model_dir != lib.Estimator(small.model_fn).model_dir


def test_parameters_are_copied():
    params = {"layers": [1]}
    estimator = lib.Estimator(small.model_fn, params=params)
    params["layers"].append(2)
    estimator.params["layers"].append(3)
    assert estimator.params == {"layers": [1]}


class Model:
    def method(self, features, mode):
        return lib.EstimatorSpec(mode, features)

    def __call__(self, features, mode, params):
        return lib.EstimatorSpec(mode, features * params["factor"])


def of_all(features, labels, mode, params, config):
    assert labels is None
    assert isinstance(config, lib.RunConfig)
    return lib.EstimatorSpec(mode, features * params["factor"])


def of_anything(first, **others):
    assert set(others) == {"labels", "mode", "params", "config"}
    return lib.EstimatorSpec(others["mode"], first)


def of_more(scale, features, mode):
    return lib.EstimatorSpec(mode, features * scale)


@pytest.mark.parametrize(
    ("model_fn", "params", "expected"),
    [
        (of_all, {"factor": 3}, 3),
        (of_anything, {"factor": 3}, 1),
        (functools.partial(of_more, 5), None, 5),
        (Model().method, None, 1),
        (Model(), {"factor": 2}, 2),
    ],
    ids=["all", "anything", "partial", "method", "object"],
)
def test_model_functions_take_what_they_need(model_fn, params, expected):
    estimator = lib.Estimator(model_fn, params=params)
    found = estimator.predict(lambda: tf.constant([1]), allow_untrained=True)
    assert next(found) == expected


def test_without_parameters_a_model_function_gets_none_by_name():
    def model_fn(features, mode, params):
        return lib.EstimatorSpec(mode, features * params.get("factor", 5))

    estimator = lib.Estimator(model_fn)
    assert estimator.params == {}
    found = estimator.predict(lambda: tf.constant([1]), allow_untrained=True)
    assert next(found) == 5


def test_input_functions_take_what_they_need():
    def input_fn(mode, params, config):
        assert mode == lib.ModeKeys.PREDICT
        assert config.is_chief
        return tf.constant([params["factor"]])

    estimator = lib.Estimator(of_anything, params={"factor": 7})
    assert next(estimator.predict(input_fn, allow_untrained=True)) == 7


@pytest.mark.parametrize(
    ("model_fn", "params", "said"),
    [
        (lambda features, other: (features, other), None, "needs other"),
        (lambda features: features, {"a": 1}, "has no argument `params`"),
        (lambda: None, None, "takes features first"),
    ],
)
def test_other_model_functions_are_refused(model_fn, params, said):
    with pytest.raises(ValueError, match=said):
        lib.Estimator(model_fn, params=params)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="`model_fn` must be a function"):
        lib.Estimator("model")
    with pytest.raises(TypeError, match=r"embedra.estimator.RunConfig"):
        lib.Estimator(small.model_fn, config={"tf_random_seed": 1})
    with pytest.raises(TypeError):
        lib.Estimator(small.model_fn, unknown=1)


def test_model_functions_return_a_spec_of_their_mode(tmp_path):
    def train(model_fn):
        lib.Estimator(model_fn, tmp_path).train(small.input_fn(1))

    with pytest.raises(TypeError, match=r"must return an .*EstimatorSpec"):
        train(lambda features, labels: (features, labels))
    with pytest.raises(ValueError, match="of mode 'infer'. Pass `mode` on"):
        train(
            lambda features, labels: lib.EstimatorSpec(
                "infer", [features, labels][0]
            )
        )
    with pytest.raises(ValueError, match="has no argument `labels`"):
        train(lambda features, mode: lib.EstimatorSpec(mode, features))


LOSS = 1.0


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"mode": "test"}, ValueError, "`mode` must be one of"),
        ({"mode": "infer"}, ValueError, "`predictions`. Received"),
        ({"mode": "train"}, ValueError, "`loss`. Received: loss=None"),
        ({"mode": "train", "loss": LOSS}, ValueError, "`train_op`"),
        (
            {"mode": "train", "loss": LOSS, "train_op": 1},
            TypeError,
            "`train_op` must be an operation",
        ),
        ({"mode": "eval", "loss": [1.0, 2.0]}, ValueError, "must be a scalar"),
        (
            {"mode": "eval", "loss": LOSS, "eval_metric_ops": {"a": 1}},
            TypeError,
            "pairs of a value and an update op",
        ),
        ({"mode": "infer", "predictions": [1]}, TypeError, "must be a tensor"),
        (
            {"mode": "eval", "loss": LOSS, "export_outputs": {"a": 1}},
            TypeError,
            "`export_outputs` must have",
        ),
        (
            {"mode": "eval", "loss": LOSS, "evaluation_hooks": [print]},
            TypeError,
            "`evaluation_hooks` must be",
        ),
        (
            {"mode": "eval", "loss": LOSS, "scaffold": print},
            TypeError,
            "`scaffold` must be",
        ),
    ],
)
def test_specs_are_checked(arguments, error, said):
    with tf.Graph().as_default(), pytest.raises(error, match=said):
        lib.EstimatorSpec(**arguments)


def test_specs_are_of_one_graph():
    with tf.Graph().as_default():
        elsewhere = tf.constant([1.0])
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match="`predictions` has .* another graph"),
    ):
        lib.EstimatorSpec("infer", elsewhere)


def test_a_loss_of_one_element_is_a_scalar():
    with tf.Graph().as_default():
        spec = lib.EstimatorSpec("eval", loss=tf.constant([[1.0]]))
    assert spec.loss.shape.rank == 0


def test_layers_and_metrics_of_tf_keras_are_used(tmp_path):
    tf_keras = pytest.importorskip("tf_keras")

    def model_fn(features, labels, mode):
        user = de.get_variable("user", dim=2)
        rows = de.embedding_lookup(user, features["user"])
        layer = tf_keras.layers.Dense(1, name="dense")
        score = tf.squeeze(layer(rows), axis=1)
        loss = tf.reduce_mean((score - labels) ** 2)
        metric = tf_keras.metrics.MeanAbsoluteError()
        metric.update_state(labels, score)
        optimizer = de.DynamicEmbeddingOptimizer(v1.train.AdamOptimizer(0.1))
        return lib.EstimatorSpec(
            mode,
            loss=loss,
            train_op=optimizer.minimize(loss, v1.train.get_global_step()),
            eval_metric_ops={"error": metric},
        )

    estimator = small.make(tmp_path, model_fn).train(small.input_fn(3))
    assert "dense/kernel/Adam" in estimator.get_variable_names()
    found = estimator.evaluate(small.input_fn(2))
    assert 0 < found["error"] < 1


def test_all_names_are_those_of_tf_estimator_too():
    names = [name for name in dir(lib) if not name.startswith("_")]
    theirs = dir(compat.estimator)
    # Not a name that `tf.estimator` had.
    assert [n for n in names if n not in theirs] == ["TrainAndEvaluate"]
    assert compat.estimator.Estimator is lib.Estimator
