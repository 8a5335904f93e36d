"""Training: when it ends, what it goes on from, what it saves."""

import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra import estimator as lib

from . import small


v1 = tf.compat.v1


def step_of(estimator):
    return int(estimator.get_variable_value("global_step"))


def test_a_run_that_goes_on_is_one_that_never_stopped(tmp_path):
    halves = small.make(tmp_path / "halves")
    assert halves.train(small.input_fn(5), steps=2) is halves
    assert step_of(halves) == 2
    halves = small.make(tmp_path / "halves")
    halves.train(small.input_fn(3, start=8), max_steps=5)
    whole = small.make(tmp_path / "whole").train(small.input_fn(5))
    assert step_of(halves) == step_of(whole) == 5
    assert small.records(halves.latest_checkpoint()) == small.records(
        whole.latest_checkpoint()
    )
    assert len(small.records(whole.latest_checkpoint())) == small.IDS
    np.testing.assert_array_equal(
        halves.get_variable_value("weight"), whole.get_variable_value("weight")
    )


def test_initial_rows_follow_the_seed(tmp_path):
    uniform = {"table": {"initializer": "uniform"}}
    rows = []
    for seed in (1, 1, 2):
        estimator = small.make(
            tmp_path / str(len(rows)), params=uniform, tf_random_seed=seed
        )
        estimator.train(small.input_fn(1))
        rows.append(estimator.get_variable_value("user/rows").tolist())
    assert rows[0] == rows[1] != rows[2]


def test_es02_a_number_of_steps_that_was_reached_is_said(tmp_path, caplog):
    estimator = small.make(tmp_path)
    estimator.train(small.input_fn(5), max_steps=2)
    assert estimator.train(small.input_fn(5), max_steps=2) is estimator
    assert "is at step 2, and max_steps is 2" in caplog.text
    estimator.train(small.input_fn(5), max_steps=4)
    assert step_of(estimator) == 4


def test_listeners_are_told_of_checkpoints_and_hooks_of_steps(tmp_path):
    class Listener(v1.train.CheckpointSaverListener):
        steps = []

        def after_save(self, session, global_step_value):
            del session
            self.steps.append(int(global_step_value))

    class Hook(v1.train.SessionRunHook):
        count = 0

        def after_run(self, run_context, run_values):
            del run_context, run_values
            Hook.count += 1

    estimator = small.make(
        tmp_path, save_checkpoints_steps=2, keep_checkpoint_max=2
    )
    estimator.train(
        small.input_fn(5), hooks=[Hook()], saving_listeners=[Listener()]
    )
    assert Listener.steps == [0, 2, 4, 5]
    assert Hook.count == 5
    state = tf.train.get_checkpoint_state(str(tmp_path))
    kept = [
        path.rpartition("-")[2] for path in state.all_model_checkpoint_paths
    ]
    assert kept == ["4", "5"]


def test_a_folder_that_was_moved_is_gone_on_with(tmp_path):
    small.make(tmp_path / "before").train(small.input_fn(2))
    (tmp_path / "before").rename(tmp_path / "after")
    moved = small.make(tmp_path / "after").train(small.input_fn(2))
    assert step_of(moved) == 4


def test_events_and_the_log_tell_of_speed_loss_and_sizes(tmp_path, caplog):
    before = v1.logging.get_verbosity()
    v1.logging.set_verbosity(v1.logging.INFO)
    try:
        estimator = small.make(
            tmp_path, save_summary_steps=1, log_step_count_steps=1
        )
        estimator.train(small.input_fn(3))
        estimator.evaluate(small.input_fn(1))
    finally:
        v1.logging.set_verbosity(before)
    events = lib.experimental.read_eval_metrics(str(tmp_path))
    assert list(events) == [1, 2, 3]
    assert set(events[3]) == {"loss", "global_step/sec", "table_size/user"}
    assert events[1]["table_size/user"] == 4
    assert events[3]["table_size/user"] == 12
    assert "global_step/sec" in caplog.text
    assert "loss = " in caplog.text
    evaluated = lib.experimental.read_eval_metrics(estimator.eval_dir())
    assert set(evaluated[3]) == {"loss", "error", "keys"}


def test_o07_tables_have_an_optimizer_each(tmp_path):
    def model_fn(features, labels, mode):
        wide = de.get_variable("wide", dim=1)
        deep = de.get_variable("deep", dim=2)
        parts = [
            de.embedding_lookup(one, features["user"], return_trainable=True)
            for one in (wide, deep)
        ]
        score = sum(tf.reduce_sum(rows, axis=1) for rows, _ in parts)
        loss = tf.reduce_mean((score - labels) ** 2)
        optimizers = (v1.train.FtrlOptimizer(0.1), v1.train.AdamOptimizer(0.1))
        step = v1.train.get_global_step()
        train_ops = [
            de.DynamicEmbeddingOptimizer(optimizer).minimize(
                loss, var_list=[trainable]
            )
            for optimizer, (_, trainable) in zip(optimizers, parts, strict=True)
        ]
        with tf.control_dependencies(train_ops):
            train_op = v1.assign_add(step, 1)
        return lib.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = small.make(tmp_path, model_fn).train(small.input_fn(2))
    slots = {
        name: estimator.get_variable_value(f"{name}/slot_names").tolist()
        for name in ("wide", "deep")
    }
    assert len(slots["wide"]) == len(slots["deep"]) == 2
    assert slots["wide"] != slots["deep"]
    assert estimator.get_variable_value("wide/slots").any()
    assert estimator.get_variable_value("deep/slots").any()
    assert step_of(estimator) == 2


class After(v1.train.SessionRunHook):
    """Runs an op after each step."""

    def __init__(self, operation):
        self.operation = operation

    def after_run(self, run_context, run_values):
        del run_values
        run_context.session.run(self.operation)


def test_k08_counters_for_restriction_are_saved(tmp_path):
    def model_fn(features, labels, mode):
        user = de.get_variable(
            "user", dim=2, restrict_policy=de.FrequencyRestrictPolicy
        )
        rows = de.embedding_lookup(user, features["user"])
        loss = tf.reduce_mean((tf.reduce_sum(rows, axis=1) - labels) ** 2)
        optimizer = de.DynamicEmbeddingOptimizer(
            v1.train.GradientDescentOptimizer(0.1)
        )
        step = v1.train.get_global_step()
        train_op = optimizer.minimize(loss, step)
        hooks = {"all": (), "two": (After(user.restrict(2)),)}
        return lib.EstimatorSpec(
            mode, loss=loss, train_op=train_op, training_hooks=hooks[kept]
        )

    def used_often():
        ids = [1, 2, 3, 4, 2, 4, 2, 4]
        return tf.data.Dataset.from_tensor_slices(
            ({"user": ids}, [1.0] * len(ids))
        ).batch(4)

    kept = "all"
    small.make(tmp_path, model_fn).train(used_often)
    kept = "two"
    estimator = small.make(tmp_path, model_fn)
    estimator.train(lambda: ({"user": tf.constant([1, 3])}, 0.0), steps=1)
    left = estimator.get_variable_value("user/keys").tolist()
    assert sorted(left) == [2, 4]


def test_checkpoints_that_lack_a_table_are_noticed(tmp_path):
    def model_fn(features, labels, mode, params):
        spec = small.model_fn(features, labels, mode, params)
        saver = v1.train.Saver(v1.global_variables())
        return spec._replace(scaffold=v1.train.Scaffold(saver=saver))

    estimator = small.make(tmp_path, model_fn)
    with pytest.raises(ValueError, match=r"leaves out tables: \['user'\]"):
        estimator.train(small.input_fn(1))


def test_another_model_is_told_from_the_one_of_the_checkpoint(tmp_path):
    small.make(tmp_path).train(small.input_fn(1))

    def model_fn(features, labels, mode, params):
        v1.get_variable("another", ())
        return small.model_fn(features, labels, mode, params)

    other = small.make(tmp_path, model_fn)
    with pytest.raises(ValueError, match="another is not in it.*warm_start"):
        other.train(small.input_fn(1))
    with pytest.raises(ValueError, match="another is not in it"):
        other.evaluate(small.input_fn(1))


def test_a_table_of_another_width_is_told(trained):
    def wider(features, labels, mode):
        user = de.get_variable("user", dim=3)
        rows = de.embedding_lookup(user, features["user"])
        loss = tf.reduce_mean((tf.reduce_sum(rows, axis=1) - labels) ** 2)
        optimizer = de.DynamicEmbeddingOptimizer(v1.train.AdamOptimizer(0.1))
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
        return lib.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = small.make(trained.model_dir, wider)
    said = r"user/rows has shape \[20, 2\] there and \[None, 3\] here"
    with pytest.raises(ValueError, match=said):
        estimator.train(small.input_fn(1))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("steps", 2.5),
        ("max_steps", "3"),
        ("hooks", v1.train.StopAtStepHook(2)),
        ("saving_listeners", [3]),
    ],
)
def test_arguments_of_another_kind_are_refused(trained, argument, value):
    with pytest.raises(TypeError, match=f"`{argument}` must be"):
        trained.train(small.input_fn(1), **{argument: value})


def test_labels_that_are_not_there_are_told(tmp_path):
    with pytest.raises(ValueError, match="None") as caught:
        small.make(tmp_path).train(small.batches_of(1, 2))
    assert "gives features alone" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    "give", [lambda: "text", lambda: iter([1])], ids=["text", "iterator"]
)
def test_what_is_no_input_is_refused(tmp_path, give):
    with pytest.raises(ValueError, match="input function must return"):
        small.make(tmp_path).train(give)


def test_another_seed_is_told(tmp_path, caplog):
    small.make(tmp_path, tf_random_seed=1).train(small.input_fn(1))
    small.make(tmp_path, tf_random_seed=2).train(small.input_fn(1))
    assert "began with tf_random_seed=1, and goes on with 2" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"steps": 0}, "`steps` must be positive. Received: steps=0"),
        ({"max_steps": -1}, "`max_steps` must be positive"),
        ({"steps": 1, "max_steps": 1}, "not both"),
    ],
)
def test_numbers_of_steps_are_checked(trained, arguments, said):
    with pytest.raises(ValueError, match=said):
        trained.train(small.input_fn(1), **arguments)


def test_input_must_have_a_batch_and_be_made_in_the_function(tmp_path):
    estimator = small.make(tmp_path)
    with pytest.raises(ValueError, match="no batch to train on"):
        estimator.train(small.input_fn(0))
    outside = small.input_fn(1)()
    with pytest.raises(ValueError, match="made before the input function"):
        estimator.train(lambda: outside)
    with pytest.raises(ValueError, match="Received: 3 values"):
        estimator.train(lambda: (1, 2, 3))
    with pytest.raises(TypeError, match="`input_fn` must be a function"):
        estimator.train(outside)
    with pytest.raises(TypeError, match="`hooks` must be"):
        estimator.train(small.input_fn(1), hooks=[print])
