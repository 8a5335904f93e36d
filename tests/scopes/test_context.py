"""Rank and cluster, from what launchers and TF_CONFIG say."""

import json

import pytest
import tensorflow as tf

import embedra as hb


HOSTS = ["a:1", "a:2", "b:1"]


@pytest.fixture(autouse=True)
def _not_launched(monkeypatch):
    for name in ("TF_CONFIG", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)


def set_config(monkeypatch, task_type, task_id, **jobs):
    config = {"cluster": jobs, "task": {"type": task_type, "index": task_id}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))


def test_process_that_nothing_launched_is_alone():
    context = hb.context
    assert (context.rank, context.world_size) == (0, 1)
    assert (context.local_rank, context.local_world_size) == (0, 1)
    assert context.is_chief
    assert (context.task_type, context.task_id) == ("localhost", 0)
    assert context.cluster_spec is None
    assert context.target == ""
    assert context.get_tf_config() is None
    with tf.device(context.default_device):
        assert tf.constant(1).device.startswith(context.default_device)


def test_devices_are_one_per_process():
    assert hb.context.devices == hb.context.local_devices
    assert hb.context.rank_at(0) == 0
    assert hb.context.rank_at(hb.context.devices[0]) == 0
    assert hb.context.current_index() == 0
    assert hb.context.has_gpu == (hb.context.num_gpus > 0)
    with pytest.raises(ValueError, match="no device 'cuda'"):
        hb.context.rank_at("cuda")


@pytest.mark.parametrize(
    "names",
    [
        "EMBEDRA_RANK EMBEDRA_WORLD_SIZE "
        "EMBEDRA_LOCAL_RANK EMBEDRA_LOCAL_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE "
        "OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE",
        "PMI_RANK PMI_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS",
        "HOROVOD_RANK HOROVOD_SIZE HOROVOD_LOCAL_RANK HOROVOD_LOCAL_SIZE",
    ],
    ids=["embedra", "open_mpi", "mpich", "horovod"],
)
def test_rank_comes_from_a_launcher(monkeypatch, names):
    for name, value in zip(names.split(), "3412", strict=True):
        monkeypatch.setenv(name, value)
    assert (hb.context.rank, hb.context.world_size) == (3, 4)
    assert (hb.context.local_rank, hb.context.local_world_size) == (1, 2)
    assert not hb.context.is_chief
    assert len(hb.context.devices) == 4


@pytest.mark.parametrize(
    ("rank", "size"),
    [
        ("0", None),
        (None, "2"),
        ("2", "2"),
        ("-1", "2"),
        ("one", "2"),
        ("²", "5"),
    ],
)
def test_wrong_rank_names_the_variables(monkeypatch, rank, size):
    for name, value in (("RANK", rank), ("WORLD_SIZE", size)):
        if value is not None:
            monkeypatch.setenv(f"EMBEDRA_{name}", value)
    with pytest.raises(
        ValueError, match=f"EMBEDRA_RANK and EMBEDRA_WORLD_SIZE.*{rank!r}"
    ):
        _ = hb.context.rank


@pytest.mark.parametrize(
    ("task", "rank", "local"),
    [(("chief", 0), 0, 0), (("worker", 0), 1, 1), (("worker", 1), 2, 0)],
)
def test_rank_counts_the_chief_and_then_workers(monkeypatch, task, rank, local):
    set_config(monkeypatch, *task, chief=HOSTS[:1], worker=HOSTS[1:], ps=["p"])
    context = hb.context
    assert (context.rank, context.world_size) == (rank, 3)
    assert context.local_rank == local
    assert context.local_world_size == (1 if rank == 2 else 2)
    assert context.is_chief == (rank == 0)
    assert context.target == f"grpc://{HOSTS[rank]}"
    assert context.rank_at(context.devices[rank]) == rank
    assert context.devices[rank] == context.local_devices[0]
    assert context.cluster_spec.num_tasks("worker") == 2


def test_first_worker_is_chief_where_none_is_named(monkeypatch):
    set_config(monkeypatch, "worker", 0, worker=HOSTS)
    assert hb.context.is_chief
    assert hb.context.world_size == 3


@pytest.mark.parametrize("task_type", ["ps", "evaluator"])
def test_servers_and_evaluators_are_not_in_training(monkeypatch, task_type):
    set_config(monkeypatch, task_type, 0, chief=["a:1"], ps=["b:1"])
    assert (hb.context.rank, hb.context.world_size) == (0, 1)
    assert not hb.context.is_chief
    assert hb.context.task_type == task_type


def test_rank_of_our_launcher_goes_before_tf_config(monkeypatch):
    set_config(monkeypatch, "chief", 0, chief=["a:1"], ps=["b:1"])
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "5")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "8")
    assert (hb.context.rank, hb.context.world_size) == (0, 1)
    monkeypatch.setenv("EMBEDRA_RANK", "1")
    monkeypatch.setenv("EMBEDRA_WORLD_SIZE", "2")
    assert (hb.context.rank, hb.context.world_size) == (1, 2)
    assert hb.context.task_type == "chief"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '{"cluster": {"worker": ["a:1"]}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "ps", "index": 0}}',
        '{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 1}}',
        '{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": -1}}',
        '{"cluster": {"chief": "a:1"}, "task": {"type": "chief", "index": 0}}',
        '{"cluster": {"chief": [1]}, "task": {"type": "chief", "index": 0}}',
    ],
    ids=[
        "no_json",
        "list",
        "no_task",
        "no_such_job",
        "no_such_task",
        "negative",
        "text",
        "numbers",
    ],
)
def test_wrong_tf_config_is_shown(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match="TF_CONFIG must be JSON like"):
        _ = hb.context.rank


@pytest.mark.parametrize(
    ("task_id", "evaluator", "task"),
    [
        (0, False, ("chief", 0)),
        (2, False, ("worker", 1)),
        (0, True, ("chief", 0)),
        (1, True, ("evaluator", 0)),
        (2, True, ("worker", 0)),
    ],
)
def test_tf_config_is_set_from_lists_of_hosts(
    monkeypatch, task_id, evaluator, task
):
    monkeypatch.setenv("TF_CONFIG", "")
    hb.context.set_tf_config("worker", task_id, HOSTS, ["p:1"], evaluator)
    found = hb.context.get_tf_config()
    assert (found.task_type, found.task_id) == task
    assert found.cluster["chief"] == HOSTS[:1]
    assert found.cluster["ps"] == ["p:1"]
    assert found.cluster["worker"] == HOSTS[2 if evaluator else 1 :]


def test_tf_config_is_not_set_for_a_process_in_no_list(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "")
    with pytest.raises(ValueError, match="TF_CONFIG"):
        hb.context.set_tf_config("worker", 3, HOSTS)
    assert hb.context.get_tf_config() is None


class Listener(tf.compat.v1.train.CheckpointSaverListener):
    pass


def test_saving_listeners_are_kept_by_name():
    context = hb.Context()
    first = Listener()
    context.add_saving_listener("report", first)
    context.add_saving_listener("report", Listener())
    assert context.saving_listeners == [first]
    with pytest.raises(TypeError, match="CheckpointSaverListener.*'x'"):
        context.add_saving_listener("other", "x")


def test_there_is_one_context():
    assert hb.Context.get() is hb.context
    assert repr(hb.context).startswith("Context(task=localhost:0, rank=0")
