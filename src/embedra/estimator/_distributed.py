"""What a process does in a cluster of workers and parameter servers."""

import time
from typing import Any

import tensorflow as tf

from embedra.distribute import graph_communicator, is_cluster_alone
from embedra.scopes import context

from ._checkpoints import global_step_of
from ._graphs import session_config


# Servers live as long as their process.
_SERVERS: list[Any] = []


def check_cluster(config: Any) -> None:
    """Raises if processes that train have nothing in common.

    Args:
        config: A `RunConfig`.

    Raises:
        NotImplementedError: If several train without a parameter server, and
            are no ranks of a job of MPI.
    """
    count = max(config.num_worker_replicas, context.world_size)
    if count == 1 or config.num_ps_replicas:
        return
    if is_cluster_alone():
        msg = (
            f"{count} processes are to train without a parameter server, and "
            "would each train a model of their own. Start them as ranks, with "
            "`embedra run -n 2 train.py`, or add a job 'ps' to TF_CONFIG, and "
            "name its devices in tables: "
            "de.Variable(devices=['/job:ps/task:0'])."
        )
        raise NotImplementedError(msg)


def starts_server(config: Any) -> bool:
    """Whether the process is one that others, or its own session, connect to.

    Args:
        config: A `RunConfig`.
    """
    jobs = config.cluster_spec.jobs
    if graph_communicator() is not None:
        return False
    return bool(jobs) and config.task_type != "evaluator"


def serve(config: Any) -> bool:
    """Starts the TensorFlow server of this process.

    A parameter server serves until its process is ended.

    Args:
        config: A `RunConfig`.

    Returns:
        Whether it has nothing else to do.
    """
    if not _SERVERS:
        server = tf.distribute.Server(
            config.cluster_spec,
            job_name=config.task_type,
            task_index=config.task_id,
            config=session_config(config),
            protocol=config.protocol,
        )
        _SERVERS.append(server)
    if config.task_type != "ps":
        return False
    _SERVERS[0].join()
    return True


def evaluate_until_trained(estimator: Any, evaluations: Any) -> None:
    """Evaluates checkpoints as they appear, until the last step of training.

    Args:
        estimator: Whose checkpoints.
        evaluations: What is done with each.
    """
    specs = evaluations.specs
    time.sleep(min(getattr(spec, "start_delay_secs", 0) for spec in specs))
    throttle = min(getattr(spec, "throttle_secs", 0) for spec in specs)
    checkpoints = tf.train.checkpoints_iterator(
        estimator.model_dir, min_interval_secs=throttle
    )
    for checkpoint in checkpoints:
        final = evaluations.is_last(global_step_of(checkpoint))
        evaluations.run_all(final=final)
        if final:
            return
