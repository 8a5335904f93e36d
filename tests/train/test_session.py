"""Monitored sessions: checkpoints, evaluation, policies, their place."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
from embedra import metrics, train

from .clicks import LABELS, Model, logits_of


v1 = tf.compat.v1


def run(steps, model=None, **arguments):
    """Trains in a new graph.

    Returns:
        Global step, number of rows, and the losses.
    """
    with tf.Graph().as_default():
        model = (model or Model)()
        arguments.setdefault("log_step_count_steps", None)
        losses = []
        with train.monitored_session(**arguments) as session:
            for _ in range(steps):
                losses.append(session.run([model.loss, model.train])[0])
            step, size = session.run([model.global_step, model.size])
        return step, size, losses


def checkpoints(folder):
    return sorted(
        int(path.stem.rpartition("-")[2])
        for path in folder.glob("model.ckpt-*.index")
    )


def test_session_trains_without_a_folder():
    step, size, losses = run(4)
    assert (step, size) == (4, 6)
    assert losses[-1] < losses[0]


def test_session_goes_on_where_it_was(tmp_path):
    folder = str(tmp_path)
    whole = run(6)[2]
    first = run(4, checkpoint_dir=folder, save_checkpoint_steps=100)
    # As the data are read from the start, by two batches.
    second = run(2, checkpoint_dir=folder, save_checkpoint_steps=100)
    assert second[:2] == (6, 6)
    np.testing.assert_allclose(first[2] + second[2], whole, rtol=1e-6)


def test_as_many_checkpoints_are_kept_as_asked(tmp_path):
    arguments = {"save_checkpoint_steps": 1, "checkpoint_dir": str(tmp_path)}
    run(6, keep_checkpoint_max=2, **arguments)
    assert checkpoints(tmp_path) == [5, 6]
    with hb.scope(keep_checkpoint_max=3):
        run(4, **arguments)
    assert checkpoints(tmp_path) == [8, 9, 10]


def test_folder_and_limits_come_from_the_scope(tmp_path):
    with hb.scope(model_dir=str(tmp_path), keep_checkpoint_max=1):
        run(3, save_checkpoint_steps=1)
    assert checkpoints(tmp_path) == [3]


def test_checkpoint_is_saved_at_the_end_by_default(tmp_path):
    run(3, checkpoint_dir=str(tmp_path))
    assert 3 in checkpoints(tmp_path)


def test_no_checkpoint_is_saved_if_told_so(tmp_path):
    run(3, checkpoint_dir=str(tmp_path), save_checkpoint_secs=None)
    assert checkpoints(tmp_path) == []


def test_folder_of_checkpoints_may_be_moved(tmp_path):
    run(3, checkpoint_dir=str(tmp_path / "old"))
    os.rename(tmp_path / "old", tmp_path / "new")
    assert run(1, checkpoint_dir=str(tmp_path / "new"))[0] == 4


class Listener(v1.train.CheckpointSaverListener):
    def __init__(self):
        self.steps = []

    def after_save(self, session, global_step_value):
        del session
        self.steps.append(global_step_value)


def test_listeners_of_the_context_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(hb.context, "_listeners", {})
    listener = Listener()
    hb.context.add_saving_listener("test", listener)
    run(2, checkpoint_dir=str(tmp_path), save_checkpoint_steps=1)
    assert listener.steps == [0, 1, 2]


def test_session_evaluates(tmp_path):
    history, models = [], []

    def model():
        models.append(Model())
        return models[-1]

    def evaluate():
        logits = logits_of(models[-1].users, tf.range(6, dtype=tf.int64))
        return {"auc": metrics.auc(LABELS, tf.sigmoid(logits))}

    run(
        5,
        model,
        checkpoint_dir=str(tmp_path),
        eval_every_n_iter=2,
        eval_fn=evaluate,
        eval_steps=1,
        eval_history=history,
    )
    assert [int(values["global_step"]) for values in history] == [1, 3, 5]
    assert len(list((tmp_path / "eval").iterdir())) == 1


def test_evaluation_without_a_function_is_an_error():
    with pytest.raises(ValueError, match="needs `eval_fn`"):
        run(1, eval_every_n_iter=2)


def test_eager_execution_is_an_error():
    with pytest.raises(RuntimeError, match="within `with tf.Graph"):
        train.monitored_session()


def test_workers_without_servers_are_an_error(monkeypatch):
    place = {
        "cluster": {"worker": ["localhost:4001", "localhost:4002"]},
        "task": {"type": "worker", "index": 0},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(place))
    said = pytest.raises(NotImplementedError, match="one of 2 processes")
    with tf.Graph().as_default(), said:
        train.monitored_session()


class Note(train.Policy):
    def __init__(self, **arguments):
        loss = arguments.pop("loss", None)
        metrics = None if loss is None else {"loss": loss}
        super().__init__(metrics, **arguments)
        self.calls = []

    def __call__(self, global_step, metrics, session, **others):
        value = session.run(v1.train.get_global_step(session.graph))
        assert value == global_step
        at_end = others["context"] is None
        self.calls.append((global_step, int(metrics["iter"]), at_end))
        self.seen = {**others, **metrics}


def test_policies_are_called_when_it_is_their_time(tmp_path):
    with tf.Graph().as_default():
        model = Model()
        often = Note(every_n_steps=2, loss=model.loss)
        last = Note(at_end=True)
        both = Note(every_n_steps=4, at_end=True)
        soon = Note(every_n_secs=1e-9)
        with train.monitored_session(
            [often, last, both], chief_only_hooks=[soon], summary_dir=tmp_path
        ) as session:
            for _ in range(4):
                loss = session.run([model.train, model.loss])[1]
    assert often.calls == [(2, 1, False), (4, 3, False)]
    assert last.calls == [(4, 4, True)]
    # Not again at a step at which it was called already.
    assert both.calls == [(4, 3, False)]
    assert [call[0] for call in soon.calls] == [1, 2, 3, 4]
    assert often.seen["loss"] == loss
    assert isinstance(often.seen["scaffold"], v1.train.Scaffold)
    assert isinstance(often.seen["writer"], v1.summary.FileWriter)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"every_n_steps": 1, "every_n_secs": 1},
        {"every_n_steps": 0},
        {"every_n_secs": -1.0},
    ],
    ids=repr,
)
def test_policy_that_is_never_called_is_an_error(arguments):
    with pytest.raises(ValueError, match="policy"):
        train.Policy(**arguments)


def test_policy_says_what_to_override():
    with pytest.raises(TypeError, match="dict of tensors"):
        train.Policy(["loss"], at_end=True)
    with pytest.raises(NotImplementedError, match="override `__call__`"):
        train.Policy(at_end=True)(1, {}, None)


@pytest.mark.parametrize("counted", ["number", "tensor", "nothing"])
def test_step_statistics_count_all_steps_once(counted):
    with tf.Graph().as_default():
        model = Model()
        count = {"number": 3, "tensor": tf.constant(3), "nothing": None}
        hook = train.StepStatHook(2, count[counted])
        seen = []
        with train.monitored_session([hook]) as session:
            for _ in range(5):
                session.run(model.train)
                seen.append(hook.latest and hook.latest.steps)
    assert seen == [None, 2, 2, 2, 2]
    statistics = hook.latest
    assert statistics.steps == 1
    assert 0 < statistics.steadiness <= 1
    if counted == "nothing":
        assert statistics.rate is None
    else:
        expected = 3 / statistics.seconds
        np.testing.assert_allclose(statistics.rate, expected, rtol=1e-6)


def test_step_statistics_of_no_steps_are_an_error():
    with pytest.raises(ValueError, match="at least 1"):
        train.StepStatHook(0)


def cluster(monkeypatch, task, **jobs):
    config = {"cluster": jobs, "task": {"type": task, "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))


def test_session_config_is_for_training(monkeypatch):
    config = train.get_session_config(inter_op_parallelism_threads=3)
    assert config.allow_soft_placement
    assert config.inter_op_parallelism_threads == 3
    assert not config.device_filters
    own = v1.ConfigProto(allow_soft_placement=False)
    wrapped = train.wraps_session_config(own)
    assert not wrapped.allow_soft_placement
    assert wrapped.gpu_options.allow_growth
    assert not own.gpu_options.allow_growth
    assert train.wraps_session_config(log_device_placement=True).ByteSize()
    cluster(monkeypatch, "worker", chief=["a:1"], worker=["b:1"], ps=["c:1"])
    filters = list(train.get_session_config().device_filters)
    assert filters == ["/job:ps", "/job:chief", "/job:worker/task:0"]


def test_process_in_no_cluster_needs_no_server():
    assert train.target() == ""
    assert train.Server.get() is train.Server.get()
    assert issubclass(train.Server, tf.distribute.Server)
    assert train.wraps_server(train.Server) is train.Server
    with pytest.raises(RuntimeError, match="in no cluster"):
        train.Server().join()
    wrapped = train.wraps_server(tf.distribute.Server)
    with tf.Graph().as_default():
        model = Model()
        with wrapped.get().monitored_session() as session:
            session.run(model.train)
            assert session.run(model.size) == 3


def test_process_in_a_cluster_trains_on_its_server(monkeypatch):
    server = train.Server({"local": ["localhost:0"]}, "local", 0)
    assert server.target.startswith("grpc://")
    monkeypatch.setattr(train.Server, "_default", server)
    assert train.target() == server.target
    assert run(2)[0] == 2
