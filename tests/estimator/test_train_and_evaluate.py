"""train_and_evaluate: when it evaluates, exports and ends early."""

import math

import pytest
import tensorflow as tf

from embedra import estimator as lib

from . import small


class Recorder(lib.Exporter):
    """Notes what it was called with, and exports nothing."""

    name = "recorder"

    def __init__(self):
        self.calls = []

    def export(
        self,
        estimator,
        export_path,
        checkpoint_path,
        eval_result,
        is_the_final_export,
    ):
        del estimator, checkpoint_path
        self.calls.append(
            (int(eval_result["global_step"]), is_the_final_export)
        )
        return export_path if is_the_final_export else None


def steps_of(history):
    return [int(values["global_step"]) for values in history]


def test_every_so_many_steps_are_evaluated_and_the_last(tmp_path):
    recorder = Recorder()
    estimator = small.make(tmp_path)
    history = []
    metrics, exports = estimator.train_and_evaluate(
        lib.TrainSpec(small.input_fn(4), max_steps=4),
        lib.EvalSpec(small.input_fn(1), exporters=recorder),
        eval_every_n_iter=2,
        eval_history=history,
    )
    assert steps_of(history) == [1, 3, 4]
    assert estimator.eval_history is history
    assert metrics == history[-1]
    assert recorder.calls == [(1, False), (3, False), (4, True)]
    assert exports == [f"{tmp_path}/export/recorder"]
    events = lib.experimental.read_eval_metrics(estimator.eval_dir())
    assert list(events) == [1, 3, 4]


def test_the_first_step_may_be_left_out_and_the_input_end(tmp_path):
    recorder = Recorder()
    estimator = small.make(tmp_path)
    estimator.train_and_evaluate(
        lib.TrainSpec(small.input_fn(4)),
        lib.EvalSpec(small.input_fn(1), exporters=[recorder]),
        eval_every_n_iter=2,
        eval_at_start=False,
    )
    # What was evaluated at the end is not evaluated again.
    assert steps_of(estimator.eval_history) == [2, 4]
    assert recorder.calls == [(2, False), (4, False), (4, True)]


def test_checkpoints_of_the_configuration_are_evaluated(tmp_path):
    estimator = small.make(tmp_path, save_checkpoints_steps=2)
    train_spec = lib.TrainSpec(small.input_fn(5), max_steps=5)
    estimator.train_and_evaluate(
        train_spec, lib.EvalSpec(small.input_fn(1), throttle_secs=0)
    )
    assert steps_of(estimator.eval_history) == [2, 4, 5]


def test_es07_several_evaluations_are_told_apart_and_throttled(tmp_path):
    estimator = small.make(tmp_path, save_checkpoints_steps=2)
    metrics, exports = estimator.train_and_evaluate(
        lib.TrainSpec(small.input_fn(3), max_steps=3),
        [
            lib.EvalSpec(small.input_fn(1), name="one", throttle_secs=0),
            lib.EvalSpec(small.input_fn(2), name="two", throttle_secs=600),
        ],
    )
    assert set(metrics) == set(exports) == {"one", "two"}
    assert [
        (int(values["global_step"]), values["name"])
        for values in estimator.eval_history
    ] == [(2, "one"), (3, "one"), (3, "two")]
    assert metrics["one"]["loss"] != metrics["two"]["loss"]
    for name, steps in (("one", [2, 3]), ("two", [3])):
        folder = estimator.eval_dir(name)
        assert list(lib.experimental.read_eval_metrics(folder)) == steps


def test_es02_a_finished_training_is_evaluated_all_the_same(tmp_path, caplog):
    specs = (
        lib.TrainSpec(small.input_fn(2), max_steps=2),
        lib.EvalSpec(small.input_fn(1)),
    )
    first, _ = small.make(tmp_path).train_and_evaluate(*specs)
    again, _ = lib.train_and_evaluate(small.make(tmp_path), *specs)
    assert again == first
    assert "Nothing is trained" in caplog.text


def test_es01_the_best_counts_after_a_restart(tmp_path):
    class Fake:
        """Exports folders named by what was evaluated."""

        def export_saved_model(self, folder, *args, **kwargs):
            del args, kwargs
            path = f"{folder}/{self.number}"
            tf.io.gfile.makedirs(path)
            return path

    def export(number, auc):
        exporter = lib.BestExporter(
            "best",
            dict,
            compare_fn=lambda best_eval_result, current_eval_result: (
                current_eval_result["auc"] > best_eval_result["auc"]
            ),
            exports_to_keep=2,
        )
        fake = Fake()
        fake.number = number
        folder = f"{tmp_path}/export/best"
        return exporter.export(fake, folder, "checkpoint", {"auc": auc}, False)

    assert export(1, 0.80)
    assert export(2, 0.85)
    assert export(3, 0.79) is None
    assert export(4, 0.85) is None
    assert export(5, 0.86)
    versions = {p.name for p in (tmp_path / "export/best").iterdir()}
    assert versions == {"2", "5", "best_evaluation.json"}
    (tmp_path / "export/best/best_evaluation.json").write_text('{"auc": ')
    with pytest.raises(ValueError, match=r"best_evaluation\.json is damaged"):
        export(6, 0.9)


def test_the_loss_says_what_is_best_by_default():
    compare = lib.BestExporter(serving_input_receiver_fn=dict)._compare
    assert compare({"loss": 2.0}, {"loss": 1.0})
    assert not compare({"loss": 1.0}, {"loss": 1.0})
    with pytest.raises(ValueError, match="by their loss"):
        compare({"auc": 1.0}, {"auc": 2.0})


def test_a_loss_is_better_than_one_that_is_no_number():
    compare = lib.BestExporter(serving_input_receiver_fn=dict)._compare
    nan = {"loss": math.nan}
    assert compare(nan, {"loss": 2.0})
    assert not compare({"loss": 2.0}, nan)
    assert not compare(nan, nan)


def test_es03_training_ends_when_the_loss_no_longer_falls(tmp_path):
    estimator = small.make(tmp_path, params={"rate": 0.0})
    hook = lib.experimental.stop_if_no_decrease_hook(
        estimator, "loss", max_steps_without_decrease=4, run_every_steps=1
    )
    estimator.train_and_evaluate(
        lib.TrainSpec(small.input_fn(20), max_steps=20, hooks=[hook]),
        lib.EvalSpec(small.input_fn(1)),
        eval_every_n_iter=2,
    )
    # Evaluated at 1, 3 and 5; step 5 is 4 after the best one, which is the
    # first. The hook sees it at the next step.
    assert steps_of(estimator.eval_history) == [1, 3, 5, 6]


@pytest.mark.parametrize(
    ("hook", "argument", "values", "ends_at"),
    [
        ("stop_if_higher_hook", 0.5, [0.4, 0.5, 0.6], 3),
        ("stop_if_lower_hook", 0.5, [0.6, 0.5, 0.4], 3),
        ("stop_if_no_increase_hook", 2, [0.4, 0.5, 0.5, 0.5], 4),
        ("stop_if_no_decrease_hook", 2, [0.4, 0.5, 0.3, 0.3, 0.4], 5),
        ("stop_if_no_decrease_hook", 9, [0.4, 0.4, 0.4], None),
    ],
)
def test_early_stopping_follows_the_events(
    tmp_path, hook, argument, values, ends_at
):
    estimator = small.make(tmp_path)
    folder = estimator.eval_dir()
    stop = getattr(lib.experimental, hook)(
        estimator, "auc", argument, run_every_steps=1
    )
    ended = None
    with tf.Graph().as_default():
        step = tf.compat.v1.train.get_or_create_global_step()
        increment = tf.compat.v1.assign_add(step, 1)
        with tf.compat.v1.train.MonitoredSession(hooks=[stop]) as session:
            for i, value in enumerate(values, start=1):
                writer = tf.compat.v1.summary.FileWriterCache.get(folder)
                summary = tf.compat.v1.Summary()
                summary.value.add(tag="auc", simple_value=value)
                writer.add_summary(summary, i)
                writer.flush()
                session.run(increment)
                if session.should_stop():
                    ended = i
                    break
    assert ended == ends_at


def test_early_stopping_says_which_metrics_there_are(tmp_path, caplog):
    estimator = small.make(tmp_path)
    hook = lib.experimental.stop_if_higher_hook(
        estimator, "ACU", 0.5, run_every_steps=1
    )
    estimator.train_and_evaluate(
        lib.TrainSpec(small.input_fn(2), max_steps=2, hooks=[hook]),
        lib.EvalSpec(small.input_fn(1)),
        eval_every_n_iter=1,
    )
    assert "waits for metric 'ACU'" in caplog.text
    assert "'error', 'keys', 'loss'" in caplog.text


def test_bad_specs_are_refused(trained):
    input_fn = small.input_fn(1)
    eval_spec = lib.EvalSpec(input_fn)
    train_spec = lib.TrainSpec(input_fn, max_steps=1)
    for every in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="`eval_every_n_iter` must be 1"):
            trained.train_and_evaluate(train_spec, eval_spec, every)
    with pytest.raises(ValueError, match="distinct names"):
        trained.train_and_evaluate(train_spec, [eval_spec, eval_spec])
    with pytest.raises(ValueError, match="`max_steps` must be positive"):
        lib.TrainSpec(input_fn, max_steps=0)
    with pytest.raises(ValueError, match="`throttle_secs` must be 0"):
        lib.EvalSpec(input_fn, throttle_secs=-1)
    with pytest.raises(TypeError, match="`exporters` must be exporters"):
        lib.EvalSpec(input_fn, exporters=["latest"])
    with pytest.raises(ValueError, match="distinct names"):
        lib.EvalSpec(input_fn, exporters=[Recorder(), Recorder()])
    with pytest.raises(TypeError, match="needs a function that returns"):
        lib.LatestExporter("latest", None)
    for number in (0, 1.5, True):
        with pytest.raises(ValueError, match="`exports_to_keep` must be a pos"):
            lib.LatestExporter("latest", dict, exports_to_keep=number)
    for name in ("a/b", "..", "", None):
        with pytest.raises(ValueError, match="must not have slashes"):
            lib.FinalExporter(name, dict)
    with pytest.raises(TypeError, match="`saving_listeners` must be a list"):
        lib.TrainSpec(input_fn, saving_listeners=[3])
    with pytest.raises(TypeError, match="`name` must be a string"):
        lib.EvalSpec(input_fn, name=3)
    with pytest.raises(ValueError, match="the other must be None"):
        lib.experimental.make_early_stopping_hook(
            trained, lambda: True, run_every_secs=None
        )
    with pytest.raises(TypeError, match="`should_stop_fn` must be"):
        lib.experimental.make_early_stopping_hook(trained, should_stop_fn=True)


def test_specs_of_a_users_own_kind_serve_too(tmp_path):
    class Spec:
        def __init__(self, **fields):
            vars(self).update(fields)

    estimator = small.make(tmp_path)
    metrics, exports = estimator.train_and_evaluate(
        Spec(input_fn=small.input_fn(1), max_steps=1),
        Spec(input_fn=small.input_fn(1), steps=None, name=None),
    )
    assert math.isfinite(metrics["loss"])
    assert exports == []
