"""context: rank, cluster and options of this process, as HybridBackend says."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import tensorflow as tf

from embedra import _env

from ._cluster import Cluster, current_cluster, read_tf_config
from ._current import current_options, holding
from ._options import Options


class TfConfig(NamedTuple):
    """What the environment variable `TF_CONFIG` tells.

    Attributes:
        task_type: Job of this process.
        task_id: Its index in the job.
        cluster: Addresses of the tasks by job.
    """

    task_type: str
    task_id: int
    cluster: dict[str, list[str]]


class Context:
    """Rank, cluster and options of this process.

    There is one, `embedra.context`. It reads the environment whenever it is
    asked: first what Embedra's launcher sets (`EMBEDRA_RANK` and
    `EMBEDRA_WORLD_SIZE`), then `TF_CONFIG`, then what Open MPI, MPICH and
    Horovod set. A process that none of them started is rank 0 of 1. A parameter
    server or an evaluator is on its own too, rank 0 of 1, and no chief.

    Example:
        >>> context = Context.get()
        >>> context.rank, context.world_size, context.is_chief
        (0, 1, True)
    """

    _instance: "Context | None" = None

    def __init__(self) -> None:
        self._listeners: dict[str, Any] = {}

    @classmethod
    def get(cls) -> "Context":
        """Returns the context of this process."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    @classmethod
    @contextlib.contextmanager
    def scope(cls, **options: Any) -> Iterator["Context"]:
        """Sets options for a block, as `embedra.scope` does.

        Args:
            **options: See there.

        Yields:
            The context of this process.
        """
        with holding(options):
            yield cls.get()

    @property
    def options(self) -> Options:
        """The options that hold here; `embedra.scope` sets them."""
        return current_options()

    @property
    def rank(self) -> int:
        """Of this process among those that train, from 0."""
        return self._cluster.rank

    @property
    def world_size(self) -> int:
        """How many processes train."""
        return self._cluster.world_size

    @property
    def local_rank(self) -> int:
        """Of this process among those that train on its machine."""
        return self._cluster.local_rank

    @property
    def local_world_size(self) -> int:
        """How many processes train on this machine."""
        return self._cluster.local_world_size

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints and logs for all."""
        return self._cluster.is_chief

    @property
    def task_type(self) -> str:
        """Job of this process; "localhost" without `TF_CONFIG`."""
        return self._cluster.task_type

    @property
    def task_id(self) -> int:
        """Index of this process in its job."""
        return self._cluster.task_id

    @property
    def cluster_spec(self) -> Any:
        """The `tf.train.ClusterSpec`, or None without `TF_CONFIG`."""
        jobs = self._cluster.jobs
        return tf.train.ClusterSpec(dict(jobs)) if jobs else None

    @property
    def target(self) -> str:
        """Address of this process's own TensorFlow server; "" without one."""
        addresses = self._cluster.jobs.get(self.task_type, ())
        return f"grpc://{addresses[self.task_id]}" if addresses else ""

    @property
    def num_gpus(self) -> int:
        """How many graphics cards TensorFlow sees."""
        return len(tf.config.list_physical_devices("GPU"))

    @property
    def has_gpu(self) -> bool:
        """Whether TensorFlow sees a graphics card."""
        return self.num_gpus > 0

    @property
    def default_device(self) -> str:
        """Name of this process, as part of a device's name."""
        return f"/job:{self.task_type}/replica:0/task:{self.task_id}"

    @property
    def local_devices(self) -> list[str]:
        """The device of this process: a process computes on one."""
        return [self.default_device + self._kind]

    @property
    def devices(self) -> list[str]:
        """The device of each process that trains, by rank.

        Without `TF_CONFIG` processes know no names of the others: all are
        called as this one is.
        """
        tasks = [
            f"/job:{job}/replica:0/task:{index}{self._kind}"
            for job in ("chief", "master", "worker")
            for index in range(len(self._cluster.jobs.get(job, ())))
        ]
        if len(tasks) == self.world_size:
            return tasks
        return self.local_devices * self.world_size

    def rank_at(self, device: str | int) -> int:
        """Returns the rank of a device.

        Args:
            device: Its name as in `devices`; or 0, the device of this process.

        Raises:
            ValueError: If there is no such device.
        """
        own = (0, self.local_devices[0])
        if device in own:
            return self.rank
        if device not in self.devices:
            msg = (
                f"There is no device {device!r}. Received: device={device!r}; "
                f"the devices are {self.devices}."
            )
            raise ValueError(msg)
        return self.devices.index(str(device))

    def current_index(self) -> int:
        """Returns the rank of this process, which computes on one device."""
        return self.rank

    @property
    def saving_listeners(self) -> list[Any]:
        """Listeners to saving that monitored sessions are given."""
        return list(self._listeners.values())

    def add_saving_listener(self, name: str, listener: Any) -> None:
        """Has monitored sessions tell a listener when they save.

        Args:
            name: Under which it is known. Another of a name that is taken is
                left out, so that code may run twice.
            listener: A `tf.compat.v1.train.CheckpointSaverListener`.

        Raises:
            TypeError: If it is something else.
        """
        if not isinstance(listener, tf.compat.v1.train.CheckpointSaverListener):
            msg = (
                "`listener` must be a tf.compat.v1.train."
                f"CheckpointSaverListener. Received: {listener!r}."
            )
            raise TypeError(msg)
        self._listeners.setdefault(name, listener)

    @staticmethod
    def get_tf_config() -> TfConfig | None:
        """Returns what `TF_CONFIG` tells, or None if it names no cluster.

        Raises:
            ValueError: If it tells no task of its cluster.
        """
        told = read_tf_config(_env.setting("TF_CONFIG") or "")
        return None if told is None else TfConfig(*told)

    @staticmethod
    def set_tf_config(
        task_type: str,
        task_id: int,
        worker_hosts: Sequence[str],
        ps_hosts: Sequence[str] | None = None,
        has_evaluator: bool = False,
    ) -> None:
        """Sets `TF_CONFIG` from lists of hosts.

        The first worker becomes the chief, and, if asked for, the second one
        the evaluator; the others are counted from 0 again.

        Args:
            task_type: Job of this process in the lists: "worker" or "ps".
            task_id: Its index in its list.
            worker_hosts: Addresses, "host:port", of the workers.
            ps_hosts: Addresses of the parameter servers.
            has_evaluator: Whether the second worker evaluates.

        Raises:
            ValueError: If the process is in no list.
        """
        task = {"type": task_type, "index": task_id}
        others = 1
        cluster = {"chief": list(worker_hosts[:1])}
        roles = [("chief", 0)]
        if has_evaluator and len(worker_hosts) > 1:
            others = 2
            cluster["evaluator"] = list(worker_hosts[1:2])
            roles.append(("evaluator", 0))
        if worker_hosts[others:]:
            cluster["worker"] = list(worker_hosts[others:])
        if ps_hosts:
            cluster["ps"] = list(ps_hosts)
        roles += [("worker", i) for i in range(len(worker_hosts) - others)]
        if task_type == "worker" and 0 <= task_id < len(roles):
            task = dict(zip(("type", "index"), roles[task_id], strict=True))
        text = json.dumps({"cluster": cluster, "task": task})
        read_tf_config(text)
        _env.set_variable("TF_CONFIG", text)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name == "update_params":
                msg += (
                    ": set options for a block by `embedra.scope`, or for the "
                    "process by EMBEDRA_*; see "
                    "docs/migrate-from-hybridbackend.md"
                )
            raise AttributeError(msg, name=name, obj=self)

    def __repr__(self) -> str:
        return (
            f"Context(task={self.task_type}:{self.task_id}, "
            f"rank={self.rank}, world_size={self.world_size})"
        )

    @property
    def _cluster(self) -> Cluster:
        return current_cluster()

    @property
    def _kind(self) -> str:
        return "/device:GPU:0" if self.has_gpu else "/device:CPU:0"


context = Context.get()
