"""monitored_session: a session that trains, saves and evaluates."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from embedra import scopes

from ._checkpoint_source import RESTORE_ERRORS, explained
from ._evaluation_hook import EvaluationHook
from ._policy import Policy
from ._run_folder import latest_whole, remove_leftovers
from ._saver import Saver
from ._server import target
from ._session_config import wraps_session_config
from ._slots_hook import TableSlotsHook


_V1: Any = tf.compat.v1
_SAVE_SECS = "save_checkpoint_secs"
_SAVE_STEPS = "save_checkpoint_steps"
_DEFAULT_SECS = 600


def monitored_session(
    hooks: Sequence[Any] | None = None,
    eval_every_n_iter: int | None = None,
    eval_fn: Callable[[], Any] | None = None,
    eval_steps: int | None = 100,
    checkpoint_dir: str | None = None,
    *,
    summary_dir: str | None = None,
    eval_dir: str | None = None,
    eval_history: Any = None,
    eval_at_start: bool = True,
    master: str | None = None,
    scaffold: Any = None,
    chief_only_hooks: Sequence[Any] | None = None,
    keep_checkpoint_max: int | None = None,
    keep_checkpoint_every_n_hours: float | None = None,
    config: Any = None,
    **kwargs: Any,
) -> Any:
    """Makes a session that trains: it restores, saves, evaluates and logs.

    It is a `tf.compat.v1.train.MonitoredTrainingSession` of this process's
    place in the cluster, whose checkpoints hold tables, too.

    Args:
        hooks: Hooks and policies (`embedra.train.Policy`) of the session.
        eval_every_n_iter: Evaluate after the first step, and after each that is
            so many later; see `embedra.train.EvaluationHook`. None for no
            evaluation.
        eval_fn: The evaluation function; see there.
        eval_steps: How many batches an evaluation takes; None for all.
        checkpoint_dir: Folder of the checkpoints, from which the session goes
            on; by default `model_dir` of `embedra.scope`. None for none.
        summary_dir: Folder of events; by default that of the checkpoints.
        eval_dir: Folder of events of evaluations; by default "eval" in
            `summary_dir`.
        eval_history: To which the values of evaluations are appended.
        eval_at_start: Whether the first step is evaluated.
        master: The server to run on; by default `embedra.train.target()`.
        scaffold: A `tf.compat.v1.train.Scaffold`.
        chief_only_hooks: Hooks and policies of the chief alone.
        keep_checkpoint_max: How many checkpoints to keep, if the graph and the
            scaffold have no saver; by default as `embedra.scope` says.
        keep_checkpoint_every_n_hours: Of which age to keep them for good.
        config: A `ConfigProto`; see `embedra.train.get_session_config`.
        **kwargs: As for `tf.compat.v1.train.MonitoredTrainingSession`. Of
            `save_checkpoint_steps` and `save_checkpoint_secs` one may be given;
            by default a checkpoint is saved every 600 seconds.

    Returns:
        The session, for a `with` block.

    Raises:
        NotImplementedError: If there are several processes, and no parameter
            servers.
        RuntimeError: When executing eagerly.
        ValueError: If an argument is out of range, or the checkpoint to go on
            from is one of another model.
    """
    _check_place()
    options = scopes.current_options()
    folder = checkpoint_dir or options.model_dir
    summary_dir = summary_dir or folder
    scaffold = scaffold or _V1.train.Scaffold()
    hooks, chief_only = list(hooks or ()), list(chief_only_hooks or ())
    if eval_every_n_iter is not None:
        if eval_dir is None and summary_dir is not None:
            eval_dir = os.path.join(summary_dir, "eval")
        if eval_fn is None:
            msg = "`eval_every_n_iter` needs `eval_fn`, which is not given."
            raise ValueError(msg)
        chief_only.append(
            EvaluationHook(
                eval_fn,
                eval_steps,
                eval_every_n_iter,
                eval_dir,
                eval_history,
                eval_at_start,
            )
        )
    for some in (hooks, chief_only):
        some += _triggers(some, scaffold, summary_dir)
    if folder is not None:
        latest_whole(folder)
        if scopes.context.is_chief:
            remove_leftovers(folder)
        chief_only.append(TableSlotsHook(folder))
        chief_only += _saving_hooks(folder, scaffold, kwargs)
        _add_saver(scaffold, keep_checkpoint_max, keep_checkpoint_every_n_hours)
    # It is saved by the hook above, which tells listeners.
    kwargs |= {_SAVE_SECS: None, _SAVE_STEPS: None}
    try:
        return _V1.train.MonitoredTrainingSession(
            master=target() if master is None else master,
            is_chief=kwargs.pop("is_chief", scopes.context.is_chief),
            checkpoint_dir=folder,
            summary_dir=summary_dir,
            scaffold=scaffold,
            hooks=hooks,
            chief_only_hooks=chief_only,
            config=wraps_session_config(config),
            **kwargs,
        )
    except RESTORE_ERRORS as error:
        path = folder and tf.train.latest_checkpoint(folder)
        if path is None:
            raise
        raise explained(error, path) from error


def _check_place() -> None:
    if tf.executing_eagerly():
        msg = (
            "A monitored session runs a TF1 graph. Build it and make the "
            "session within `with tf.Graph().as_default():`, or train a Keras "
            "model with `fit`."
        )
        raise RuntimeError(msg)
    context = scopes.context
    cluster = context.cluster_spec
    has_servers = cluster is not None and "ps" in cluster.jobs
    if context.world_size > 1 and not has_servers:
        msg = (
            f"A monitored session was asked for in one of "
            f"{context.world_size} processes without parameter servers, where "
            "it would train a model of its own. Train an embedra.estimator."
            "Estimator or an embedra.keras.Model, for which ranks train "
            'together; or name parameter servers, "ps", in TF_CONFIG; or start '
            "one process."
        )
        raise NotImplementedError(msg)


def _triggers(hooks: list[Any], scaffold: Any, folder: str | None) -> list[Any]:
    policies = [hook for hook in hooks if isinstance(hook, Policy)]
    return [Policy.Trigger(policies, scaffold, folder)] if policies else []


def _saving_hooks(
    folder: str, scaffold: Any, kwargs: dict[str, Any]
) -> list[Any]:
    asked = {n: kwargs[n] for n in (_SAVE_SECS, _SAVE_STEPS) if n in kwargs}
    seconds, steps = asked.get(_SAVE_SECS), asked.get(_SAVE_STEPS)
    if not asked:
        seconds = _DEFAULT_SECS
    if seconds is None and steps is None:
        return []
    return [
        _V1.train.CheckpointSaverHook(
            folder,
            save_secs=seconds,
            save_steps=steps,
            scaffold=scaffold,
            listeners=scopes.context.saving_listeners,
            save_graph_def=kwargs.get("save_graph_def", True),
        )
    ]


def _add_saver(scaffold: Any, most: int | None, hours: float | None) -> None:
    """Adds the saver that keeps checkpoints as asked, if there is no other."""
    savers = _V1.GraphKeys.SAVERS
    if scaffold.saver is not None or _V1.get_collection(savers):
        return
    limits = {"max_to_keep": most, "keep_checkpoint_every_n_hours": hours}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    saver = Saver(sharded=True, defer_build=True, **given)
    _V1.add_to_collection(savers, saver)
