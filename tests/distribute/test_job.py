"""What a process knows of its job, and tables of the ranks, without a job."""

import json

import numpy as np
import pytest

import embedra
from embedra import Table, distribute


@pytest.fixture
def rank(monkeypatch):
    monkeypatch.setenv("EMBEDRA_RANK", "1")
    monkeypatch.setenv("EMBEDRA_WORLD_SIZE", "4")


def test_one_process_is_no_job():
    assert distribute.job_communicator() is None
    assert distribute.table_communicator() is None
    assert embedra.layers.Embedding(2).table.communicator is None


def test_workers_of_parameter_servers_are_no_job_of_ranks(monkeypatch):
    cluster = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert embedra.context.world_size == 2
    assert distribute.job_communicator() is None


@pytest.mark.usefixtures("rank")
@pytest.mark.parametrize("options", [{"sharding": False}, {"mode": "infer"}])
def test_scopes_keep_tables_whole(options):
    with embedra.scope(**options):
        assert embedra.layers.Embedding(2).table.communicator is None


@pytest.mark.usefixtures("rank")
def test_tables_of_a_job_get_the_same_seed_on_all_ranks():
    first, second = Table(2, name="user"), Table(2, name="user")
    assert first.seed == second.seed != Table(2, name="item").seed
    with embedra.scope(seed=5):
        assert Table(2, name="user").seed == 5


def test_seeds_of_one_process_differ():
    assert Table(2, name="user").seed != Table(2, name="user").seed


def test_each_key_has_one_owner():
    class Rank(distribute.SingleCommunicator):
        size = 3

    keys = np.arange(-30, 30).reshape(3, 20)
    owners = []
    for number in range(3):
        rank = Rank()
        rank.rank = number
        owners.append(distribute.owned(keys, rank).numpy())
    assert np.array(owners).shape == (3, 3, 20)
    np.testing.assert_array_equal(np.sum(owners, axis=0), 1)
    assert np.sum(owners, axis=(1, 2)).min() > 10
    assert distribute.owned(keys, None).numpy().all()
