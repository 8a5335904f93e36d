"""Cluster: which of how many processes this is, as the environment says."""

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from embedra import _env


_TRAINING_TASKS = ("chief", "master", "worker")

# What launchers set: rank, number of processes, and both on this machine.
# The first that is set counts.
_LAUNCHERS = (
    (
        "EMBEDRA_RANK",
        "EMBEDRA_WORLD_SIZE",
        "EMBEDRA_LOCAL_RANK",
        "EMBEDRA_LOCAL_WORLD_SIZE",
    ),
    (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    (
        "HOROVOD_RANK",
        "HOROVOD_SIZE",
        "HOROVOD_LOCAL_RANK",
        "HOROVOD_LOCAL_SIZE",
    ),
)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Where a process stands.

    Attributes:
        rank: Of this process among those that train, from 0.
        world_size: How many train.
        local_rank: Of this process among those on its machine.
        local_world_size: How many train on its machine.
        task_type: Its job: "chief", "worker", "ps", "evaluator", or
            "localhost" without `TF_CONFIG`.
        task_id: Its index in the job.
        jobs: Addresses of the tasks by job; empty without `TF_CONFIG`.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    task_type: str = "localhost"
    task_id: int = 0
    jobs: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints and logs for all."""
        trains = self.task_type in ("localhost", *_TRAINING_TASKS)
        return trains and self.rank == 0


def current_cluster() -> Cluster:
    """Returns where this process stands, as the environment says now.

    A rank that a launcher of Embedra gives counts before `TF_CONFIG`, and that
    before other launchers.

    Raises:
        ValueError: If a variable of the environment has no such value; the
            message names it.
    """
    names = [name for launcher in _LAUNCHERS for name in launcher]
    return _cluster(
        _env.setting("TF_CONFIG") or "",
        tuple((name, _env.setting(name)) for name in names),
    )


def read_tf_config(text: str) -> tuple[str, int, dict[str, list[str]]] | None:
    """Returns task type, index and jobs that `TF_CONFIG` tells, or None.

    Args:
        text: Its value.

    Raises:
        ValueError: If it tells no task of its cluster.
    """
    try:
        config = json.loads(text or "{}")
        given: dict[str, Any] = dict(config.get("cluster") or {})
        if not given:
            return None
        jobs = {job: _addresses(job, given[job]) for job in given}
        task_type = str(config["task"]["type"])
        task_id = int(config["task"]["index"])
        if task_type != "evaluator" and task_id not in range(
            len(jobs[task_type])
        ):
            msg = f"job {task_type!r} has no task {task_id}"
            raise ValueError(msg)
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        msg = (
            "Environment variable TF_CONFIG must be JSON like "
            '{"cluster": {"chief": ["host:port"], "worker": ["host:port"]}, '
            '"task": {"type": "worker", "index": 0}}, with the task in the '
            f"cluster. Received: TF_CONFIG={text!r} ({type(e).__name__}: {e})."
        )
        raise ValueError(msg) from None
    return task_type, task_id, jobs


def _addresses(job: str, given: Any) -> list[str]:
    """Returns the addresses of a job's tasks, in the order of their index."""
    # A string is a list, too, of its letters.
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        return given
    msg = f"job {job!r} must be a list of addresses, not {given!r}"
    raise TypeError(msg)


@functools.lru_cache(maxsize=1)
def _cluster(
    tf_config: str, settings: tuple[tuple[str, str | None], ...]
) -> Cluster:
    variables = {name: value for name, value in settings if value is not None}
    told = read_tf_config(tf_config)
    cluster = Cluster()
    if told is not None:
        cluster = _of_tf_config(*told)
    launchers = _LAUNCHERS[:1] if told is not None else _LAUNCHERS
    for names in launchers:
        if any(name in variables for name in names[:2]):
            return _launched(cluster, names, variables)
    return cluster


def _of_tf_config(
    task_type: str, task_id: int, jobs: dict[str, list[str]]
) -> Cluster:
    if task_type not in _TRAINING_TASKS:
        # A process of its own: no other has a part of its work.
        return Cluster(task_type=task_type, task_id=task_id, jobs=jobs)
    tasks = [
        (job, index, address)
        for job in _TRAINING_TASKS
        for index, address in enumerate(jobs.get(job, ()))
    ]
    own = next(t for t in tasks if t[:2] == (task_type, task_id))
    host = own[2].rpartition(":")[0]
    here = [task for task in tasks if task[2].rpartition(":")[0] == host]
    return Cluster(
        rank=tasks.index(own),
        world_size=len(tasks),
        local_rank=here.index(own),
        local_world_size=len(here),
        task_type=task_type,
        task_id=task_id,
        jobs=jobs,
    )


def _launched(
    cluster: Cluster, names: Sequence[str], variables: Mapping[str, str]
) -> Cluster:
    rank, world_size = _place(names[0], names[1], variables)
    local_rank, local_world_size = 0, 1
    if all(name in variables for name in names[2:]):
        local_rank, local_world_size = _place(names[2], names[3], variables)
    return dataclasses.replace(
        cluster,
        rank=rank,
        world_size=world_size,
        local_rank=local_rank,
        local_world_size=local_world_size,
    )


def _place(
    rank: str, size: str, variables: Mapping[str, str]
) -> tuple[int, int]:
    values = {name: variables.get(name) for name in (rank, size)}
    numbers = [
        int(value) if value and value.isascii() and value.isdigit() else None
        for value in values.values()
    ]
    if numbers[0] is None or numbers[1] is None or numbers[0] >= numbers[1]:
        given = ", ".join(f"{name}={value!r}" for name, value in values.items())
        msg = (
            f"Environment variables {rank} and {size} must both be set, the "
            f"first from 0 to the second less one. Received: {given}."
        )
        raise ValueError(msg)
    return numbers[0], numbers[1]
