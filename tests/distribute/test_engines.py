"""Which engine a process takes, and what it says if there is none."""

import json

import pytest
import tensorflow as tf

from embedra import distribute


@pytest.fixture
def two_workers(monkeypatch):
    """An environment of two workers; the process's TensorFlow runs already."""
    tf.constant(1.0)
    cluster = {"worker": ["localhost:1", "localhost:2"]}
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": cluster, "task": task})
    )


def test_tensorflow_needs_a_cluster():
    with pytest.raises(RuntimeError, match="--engine tf -n 4 train.py"):
        distribute.communicator("tf")


@pytest.mark.usefixtures("two_workers")
def test_tf_config_alone_means_tensorflow_which_must_start_first():
    with pytest.raises(RuntimeError, match="first lines of the program"):
        distribute.communicator()


def test_parameter_servers_leave_tables_to_themselves(monkeypatch):
    cluster = {"chief": ["a:1"], "worker": ["a:2"], "ps": ["a:3"]}
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": cluster, "task": task})
    )
    assert distribute.job_communicator() is None
