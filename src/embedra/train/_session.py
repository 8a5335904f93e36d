"""monitored_session: a session that trains, saves and evaluates."""

import os
from collections.abc import Callable, Sequence
from typing import Any, cast

import tensorflow as tf

from embedra import scopes
from embedra.distribute import (
    Communicator,
    graph_communicator,
    is_cluster_alone,
)

from ._checkpoint_source import RESTORE_ERRORS, explained
from ._evaluation_hook import EvaluationHook
from ._policy import Policy
from ._rank_hooks import FirstWeightsHook, RankSaverHook
from ._run_folder import latest_whole, remove_leftovers
from ._same_stop import SameStop
from ._saver import Saver
from ._server import target
from ._session_config import wraps_session_config
from ._slots_hook import TableSlotsHook


_V1: Any = tf.compat.v1
_SAVE_SECS = "save_checkpoint_secs"
_SAVE_STEPS = "save_checkpoint_steps"
_DEFAULT_SECS = 600
_NO_EVENTS = {
    "save_summaries_steps": None,
    "save_summaries_secs": None,
    "log_step_count_steps": None,
}


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
    place in the cluster, whose checkpoints hold tables, too. In a job of
    several ranks, each has one, and all must make the same runs: rank 0 writes
    checkpoints and events, of which all bring their part.

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
        chief_only_hooks: Hooks and policies of the chief alone; of several
            ranks, of rank 0.
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
        NotImplementedError: If `TF_CONFIG` alone names several processes, and
            no parameter servers; or if ranks are to evaluate.
        RuntimeError: When executing eagerly.
        ValueError: If an argument is out of range, or the checkpoint to go on
            from is one of another model.
    """
    _check_place()
    ranks = graph_communicator()
    folder = checkpoint_dir or scopes.current_options().model_dir
    summary_dir = summary_dir or folder
    scaffold = scaffold or _V1.train.Scaffold()
    hooks, chief_only = list(hooks or ()), list(chief_only_hooks or ())
    if eval_every_n_iter is not None:
        _check_evaluation(eval_fn, ranks)
        if eval_dir is None and summary_dir is not None:
            eval_dir = os.path.join(summary_dir, "eval")
        chief_only.append(
            EvaluationHook(
                cast("Callable[[], Any]", eval_fn),
                eval_steps,
                eval_every_n_iter,
                eval_dir,
                eval_history,
                eval_at_start,
            )
        )
    if folder is not None:
        latest_whole(folder)
        if scopes.context.is_chief:
            remove_leftovers(folder)
        _add_saver(scaffold, keep_checkpoint_max, keep_checkpoint_every_n_hours)
    writes = ranks is None or ranks.rank == 0
    for some in (hooks, chief_only):
        some += _triggers(some, scaffold, summary_dir if writes else None)
    saving = _saving_hooks(folder, scaffold, kwargs, ranks)
    chief_only = [*(chief_only if writes else ()), *saving]
    if ranks is not None:
        hooks.append(SameStop(ranks))
        # Each is the chief of its own session.
        kwargs |= {"is_chief": True} | ({} if writes else _NO_EVENTS)
        master = ""
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
    if context.world_size > 1 and not has_servers and is_cluster_alone():
        msg = (
            f"A monitored session was asked for in one of "
            f"{context.world_size} processes of TF_CONFIG without parameter "
            "servers, where it would train a model of its own. Start ranks, "
            "with `embedra run -n 2 train.py`; or name parameter servers, "
            '"ps", in TF_CONFIG; or start one process.'
        )
        raise NotImplementedError(msg)


def _check_evaluation(eval_fn: Any, ranks: Communicator | None) -> None:
    if eval_fn is None:
        msg = "`eval_every_n_iter` needs `eval_fn`, which is not given."
        raise ValueError(msg)
    if ranks is not None:
        msg = (
            "`eval_every_n_iter` evaluates within the session of one process, "
            f"and this is one of {ranks.size} ranks. Use `train_and_evaluate` "
            "of an embedra.estimator.Estimator, whose ranks evaluate together; "
            "or evaluate checkpoints in one process."
        )
        raise NotImplementedError(msg)


def _triggers(hooks: list[Any], scaffold: Any, folder: str | None) -> list[Any]:
    policies = [hook for hook in hooks if isinstance(hook, Policy)]
    return [Policy.Trigger(policies, scaffold, folder)] if policies else []


def _saving_hooks(
    folder: str | None,
    scaffold: Any,
    kwargs: dict[str, Any],
    ranks: Communicator | None,
) -> list[Any]:
    """Returns hooks that save checkpoints, and what must come before."""
    before = [] if ranks is None else [FirstWeightsHook(ranks)]
    if folder is None:
        return before
    before.append(TableSlotsHook(folder))
    asked = {n: kwargs[n] for n in (_SAVE_SECS, _SAVE_STEPS) if n in kwargs}
    seconds, steps = asked.get(_SAVE_SECS), asked.get(_SAVE_STEPS)
    if not asked:
        seconds = _DEFAULT_SECS
    if seconds is None and steps is None:
        return before
    arguments: dict[str, Any] = {
        "save_secs": seconds,
        "save_steps": steps,
        "listeners": scopes.context.saving_listeners,
    }
    graph = kwargs.get("save_graph_def", True)
    if ranks is not None:
        return [
            *before,
            RankSaverHook(ranks, folder, save_graph=graph, **arguments),
        ]
    saving = _V1.train.CheckpointSaverHook(
        folder, scaffold=scaffold, save_graph_def=graph, **arguments
    )
    return [*before, saving]


def _add_saver(scaffold: Any, most: int | None, hours: float | None) -> None:
    """Adds the saver that keeps checkpoints as asked, if there is no other."""
    savers = _V1.GraphKeys.SAVERS
    if _V1.get_collection(savers):
        return
    if scaffold.saver is not None:
        _V1.add_to_collection(savers, scaffold.saver)
        return
    limits = {"max_to_keep": most, "keep_checkpoint_every_n_hours": hours}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    saver = Saver(sharded=True, defer_build=True, **given)
    _V1.add_to_collection(savers, saver)
