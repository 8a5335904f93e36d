"""RunConfig: how an estimator runs."""

import dataclasses
from typing import Any

import tensorflow as tf

from embedra.scopes import context

from ._run_config_kinds import check_kinds


# Marks an argument that was not given: None turns a kind of saving off.
_UNSET: Any = type("_Unset", (), {"__repr__": lambda _: "default"})()

_SAVE_SECONDS = 600


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """How an estimator runs: folder, seed, checkpoints, logs, session, cluster.

    The cluster is that of the environment variable `TF_CONFIG`, as it is when
    the object is made.

    Args:
        model_dir: Folder of checkpoints and events.
        tf_random_seed: Seed of the graphs, and of initial rows of tables. None
            means that each run differs.
        save_summary_steps: Steps from one summary to the next. None for none.
        save_checkpoints_steps: Steps from one checkpoint to the next.
        save_checkpoints_secs: Seconds from one checkpoint to the next; 600 if
            neither is given. Both None for none but the first and the last.
        session_config: A `tf.compat.v1.ConfigProto`.
        keep_checkpoint_max: How many of the last checkpoints are kept. None
            or 0 for all.
        keep_checkpoint_every_n_hours: One more is kept for each of so many
            hours.
        log_step_count_steps: Steps from one line of loss and speed to the
            next. None for none.
        train_distribute: Must be None.
        device_fn: Gives the device of each op of a model.
        protocol: Of servers; None for gRPC.
        eval_distribute: Must be None.
        experimental_distribute: Must be None.
        experimental_max_worker_delay_secs: Accepted.
        session_creation_timeout_secs: How long a worker waits for the chief.
        checkpoint_save_graph_def: Whether graphs are saved with checkpoints.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range.

    Example:
        >>> config = RunConfig(save_checkpoints_steps=100)
        >>> config.replace(save_checkpoints_secs=60).save_checkpoints_steps
        >>> config.is_chief, config.num_worker_replicas
        (True, 1)
    """

    model_dir: Any = None
    tf_random_seed: int | None = 1
    save_summary_steps: int | None = 100
    save_checkpoints_steps: int | None = _UNSET
    save_checkpoints_secs: float | None = _UNSET
    session_config: Any = None
    keep_checkpoint_max: int | None = 5
    keep_checkpoint_every_n_hours: float = 10_000
    log_step_count_steps: int | None = 100
    train_distribute: Any = None
    device_fn: Any = None
    protocol: str | None = None
    eval_distribute: Any = None
    experimental_distribute: Any = None
    experimental_max_worker_delay_secs: float | None = None
    session_creation_timeout_secs: float = 7200
    checkpoint_save_graph_def: bool = True
    task_type: str = dataclasses.field(init=False)
    task_id: int = dataclasses.field(init=False)
    is_chief: bool = dataclasses.field(init=False)
    cluster_spec: Any = dataclasses.field(init=False)
    master: str = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self._settle_saving()
        self._check()
        cluster = context.cluster_spec
        read = {
            "model_dir": None
            if self.model_dir is None
            else str(self.model_dir),
            "task_type": _task_type(),
            "task_id": context.task_id,
            "is_chief": context.is_chief,
            "cluster_spec": cluster or tf.train.ClusterSpec({}),
            "master": context.target,
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)

    def _settle_saving(self) -> None:
        steps, seconds = self.save_checkpoints_steps, self.save_checkpoints_secs
        if steps is _UNSET and seconds is _UNSET:
            seconds = _SAVE_SECONDS
        steps = None if steps is _UNSET else steps
        seconds = None if seconds is _UNSET else seconds
        if steps is not None and seconds is not None:
            msg = (
                "Checkpoints are saved by steps or by seconds, not both. "
                f"Received: save_checkpoints_steps={steps}, "
                f"save_checkpoints_secs={seconds}."
            )
            raise ValueError(msg)
        object.__setattr__(self, "save_checkpoints_steps", steps)
        object.__setattr__(self, "save_checkpoints_secs", seconds)

    def _check(self) -> None:
        check_kinds(self)
        for name in (
            "save_summary_steps",
            "save_checkpoints_steps",
            "save_checkpoints_secs",
            "log_step_count_steps",
            "keep_checkpoint_every_n_hours",
        ):
            value = getattr(self, name)
            if value is not None and not value > 0:
                msg = f"`{name}` must be positive. Received: {name}={value!r}."
                raise ValueError(msg)
        if (self.keep_checkpoint_max or 0) < 0:
            msg = (
                "`keep_checkpoint_max` must be 0 (all) or more. Received: "
                f"keep_checkpoint_max={self.keep_checkpoint_max}."
            )
            raise ValueError(msg)
        for name in (
            "train_distribute",
            "eval_distribute",
            "experimental_distribute",
        ):
            if getattr(self, name) is not None:
                msg = (
                    f"`{name}` is not supported: estimators run in graphs of "
                    "one replica. Leave it out; workers and parameter servers "
                    "come from TF_CONFIG."
                )
                raise ValueError(msg)

    def replace(self, **changes: Any) -> "RunConfig":
        """Returns a copy with other values.

        Args:
            **changes: Values by the name of an argument. A way of saving
                checkpoints takes the place of the other one.
        """
        ways = {"save_checkpoints_steps", "save_checkpoints_secs"}
        if len(ways & set(changes)) == 1:
            changes = {way: None for way in ways} | changes
        return dataclasses.replace(self, **changes)

    @property
    def num_ps_replicas(self) -> int:
        """How many parameter servers there are."""
        return self._count("ps")

    @property
    def num_worker_replicas(self) -> int:
        """How many processes train."""
        jobs = ("chief", "master", "worker")
        return max(1, sum(map(self._count, jobs)))

    @property
    def global_id_in_cluster(self) -> int:
        """Number of this process among those that train."""
        return context.rank

    @property
    def evaluation_master(self) -> str:
        """Where evaluation runs: always in its own process."""
        return ""

    def _count(self, job: str) -> int:
        jobs = self.cluster_spec.as_dict()
        return len(jobs.get(job, ()))


def _task_type() -> str:
    # What tf.estimator calls a process that no cluster knows of.
    return "worker" if context.task_type == "localhost" else context.task_type


def checked_config(config: Any, model_dir: Any) -> RunConfig:
    """Returns the configuration of an estimator, with its folder.

    Args:
        config: A `RunConfig`, or None.
        model_dir: Folder as the estimator is given it, or None.

    Raises:
        TypeError: If it is no `RunConfig`.
        ValueError: If both name a folder, and not the same.
    """
    config = RunConfig() if config is None else config
    if not isinstance(config, RunConfig):
        msg = (
            "`config` must be an embedra.estimator.RunConfig. Received: "
            f"{config!r}."
        )
        raise TypeError(msg)
    if model_dir is None:
        return config
    if config.model_dir is not None and config.model_dir != str(model_dir):
        msg = (
            "`model_dir` and the one of `config` must be the same, if both are "
            f"given. Received: model_dir={str(model_dir)!r}, "
            f"config.model_dir={config.model_dir!r}."
        )
        raise ValueError(msg)
    return config.replace(model_dir=str(model_dir))
