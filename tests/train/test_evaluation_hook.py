"""Evaluation within the session of a training."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra import feature_column, metrics, train

from .clicks import IDS, LABELS, Model, logits_of


v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def evaluation(model, batches=2, *, once=False):
    """An evaluation function over ids that training never sees."""

    def evaluate():
        data = tf.data.Dataset.from_tensor_slices((IDS[:, 1] + 100, LABELS))
        data = data.batch(6 // batches)
        if once:
            iterator = v1.data.make_one_shot_iterator(data)
        else:
            iterator = v1.data.make_initializable_iterator(data)
        ids, labels = iterator.get_next()
        logits = logits_of(model.users, ids)
        return {
            "auc": metrics.auc(labels, tf.sigmoid(logits)),
            "examples": count(labels),
        }

    return evaluate


def count(labels):
    """A metric: how many examples there were since the last reset."""
    total = v1.get_variable(
        "total",
        initializer=np.int64(0),
        collections=[v1.GraphKeys.LOCAL_VARIABLES],
    )
    return total.value(), total.assign_add(tf.size(labels, tf.int64))


def run(model, hook, steps):
    with v1.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(steps):
            session.run(model.train)
        # Not a step, that hooks would count.
        return session.run_step_fn(
            lambda step_context: step_context.session.run(
                [model.global_step, model.size]
            )
        )


@pytest.mark.parametrize(
    ("at_start", "expected"), [(True, [1, 4, 7]), (False, [3, 6])]
)
def test_evaluates_at_the_first_step_and_every_n_steps(at_start, expected):
    model, history = Model(), []
    hook = train.EvaluationHook(
        evaluation(model),
        every_n_iter=3,
        history=history,
        eval_at_start=at_start,
    )
    run(model, hook, 8)
    assert [int(values["global_step"]) for values in history] == expected
    assert hook.latest is history[-1]


def test_evaluation_trains_nothing_and_moves_no_step():
    model = Model()
    hook = train.EvaluationHook(evaluation(model), every_n_iter=1)
    step, size = run(model, hook, 5)
    # Of the ids that are evaluated, none has a row.
    assert (step, size) == (5, 6)


def test_metrics_and_data_begin_anew_at_each_evaluation():
    model, history = Model(), []
    hook = train.EvaluationHook(
        evaluation(model), steps=None, every_n_iter=1, history=history
    )
    run(model, hook, 3)
    assert [int(values["examples"]) for values in history] == [6, 6, 6]


@pytest.mark.parametrize(("steps", "examples"), [(1, 2), (2, 4), (9, 6)])
def test_evaluation_takes_as_many_batches_as_asked(steps, examples):
    model = Model()
    hook = train.EvaluationHook(evaluation(model, batches=3), steps=steps)
    run(model, hook, 1)
    assert hook.latest["examples"] == examples


def test_value_is_that_of_the_model_as_it_is():
    model, history = Model(train.GradientDescentOptimizer(0.5)), []

    def evaluate():
        logits = logits_of(model.users, tf.constant([0], tf.int64))
        value = tf.identity(logits[0])
        return train.EvaluationSpec("check", None, value, {"logit": value})

    hook = train.EvaluationHook(evaluate, 1, 1, history=history)
    expected = []
    with v1.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(3):
            session.run(model.train)
            expected.append(hook.latest["logit"])
    found = [values["logit"] for values in history]
    assert found == expected
    assert len(set(found)) == 3


def test_feature_columns_and_layers_are_those_of_training():
    dense, history = keras.layers.Dense(1), []
    column = feature_column.embedding_column(
        feature_column.categorical_column_with_embedding("user", tf.int64), 2
    )

    def logits(ids):
        with v1.variable_scope("embedding"):
            rows = feature_column.input_layer({"user": ids}, [column])
        return dense(rows)[:, 0]

    value = logits(tf.constant(IDS[:, 0]))
    loss = tf.reduce_mean((value - LABELS.astype(np.float32)) ** 2)
    optimizer = train.AdagradOptimizer(0.5)
    step = v1.train.get_or_create_global_step()
    minimize = optimizer.minimize(loss, global_step=step)

    def evaluate():
        found = logits(tf.constant(IDS[:, 0]))
        error = tf.abs(found - LABELS.astype(np.float32))
        return {"error": metrics.mean(error)}

    hook = train.EvaluationHook(evaluate, 1, 9, history=history)
    with v1.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(20):
            session.run(minimize)
    errors = [float(values["error"]) for values in history]
    assert errors[2] < errors[1] < errors[0]


def test_values_are_written_for_tensorboard(tmp_path):
    model = Model()
    hook = train.EvaluationHook(
        evaluation(model), every_n_iter=2, summary_dir=str(tmp_path)
    )
    run(model, hook, 3)
    (path,) = tmp_path.iterdir()
    found = [
        (event.step, value.tag)
        for event in v1.train.summary_iterator(str(path))
        for value in event.summary.value
    ]
    assert sorted(found) == [
        (1, "auc"),
        (1, "examples"),
        (3, "auc"),
        (3, "examples"),
    ]


def test_data_that_is_at_its_end_is_an_error_with_the_remedy():
    model = Model()
    hook = train.EvaluationHook(evaluation(model, once=True), every_n_iter=1)
    with pytest.raises(ValueError, match="make_initializable_iterator"):
        run(model, hook, 2)
    assert hook.latest["examples"] == 6


def test_variables_that_training_lacks_are_an_error():
    def dense():
        weights = v1.get_variable("other", (2, 1))
        return {"mean": metrics.mean(weights)}

    def table():
        other = de.get_variable("other", dim=2)
        return {"mean": metrics.mean(other.lookup([1]))}

    for evaluate in (dense, table):
        with tf.Graph().as_default():
            model = Model()
            hook = train.EvaluationHook(evaluate)
            with pytest.raises(ValueError, match=r"does not have.*other"):
                run(model, hook, 1)


@pytest.mark.parametrize(
    "returned",
    [None, {}, {"auc": 1.0}, {1: (0.5, 0.5)}, [("auc", 1.0)]],
    ids=repr,
)
def test_function_that_returns_no_metrics_is_an_error(returned):
    hook = train.EvaluationHook(lambda: returned)
    with pytest.raises(TypeError, match="valuation function must"):
        run(Model(), hook, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [("every_n_iter", 0), ("every_n_iter", None), ("steps", 0), ("steps", 1.5)],
)
def test_numbers_out_of_range_are_named(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be.*{value}"):
        train.EvaluationHook(dict, **{name: value})


class Recorder(v1.train.SessionRunHook):
    """Asks for a tensor with every step, and notes what it is told."""

    def __init__(self, make):
        self.calls, self.values, self._make = [], [], make

    def begin(self):
        self.calls.append("begin")
        self.asked = self._make()

    def after_create_session(self, session, coord):
        del session, coord
        self.calls.append("session")

    def before_run(self, run_context):
        del run_context
        return v1.train.SessionRunArgs(self.asked)

    def after_run(self, run_context, run_values):
        del run_context
        self.values.append(run_values.results)

    def end(self, session):
        del session
        self.calls.append("end")


def test_hooks_of_the_evaluation_see_its_steps_alone():
    model = Model()
    recorder = Recorder(lambda: tf.constant(7))

    def evaluate():
        return train.EvaluationSpec("e", [recorder], tf.no_op(), {})

    hook = train.EvaluationHook(evaluate, steps=2, every_n_iter=2)
    run(model, hook, 4)
    assert recorder.values == [7] * 4
    assert recorder.calls == ["begin", "session", "end"]


def test_summaries_of_the_evaluation_are_not_those_of_training():
    model = Model()
    before = v1.summary.scalar("loss", model.loss)

    def evaluate():
        v1.summary.scalar("other", 1.0)
        return evaluation(model)()

    hook = train.EvaluationHook(evaluate)
    run(model, hook, 1)
    assert v1.get_collection(v1.GraphKeys.SUMMARIES) == [before]
