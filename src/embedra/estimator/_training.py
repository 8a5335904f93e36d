"""Training in a monitored session."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator, graph_communicator
from embedra.train import (
    RESTORE_ERRORS,
    FirstWeightsHook,
    RankSaverHook,
    TableSlotsHook,
    explained,
    saved_states,
)

from ._graphs import Built, Plan, add_saver, build, session_config
from ._modes import ModeKeys
from ._rank_averages import with_averages_of_all
from ._rank_loss import with_loss_of_all
from ._run_config import RunConfig
from ._tables import add_size_summaries
from ._turns import Turns


v1: Any = tf.compat.v1


def train(
    plan: Plan,
    input_fn: Callable[..., Any],
    hooks: Sequence[Any],
    listeners: Sequence[Any],
    chief_hooks: Sequence[Any] = (),
) -> None:
    """Trains until a hook or the input ends it.

    Args:
        plan: What is trained.
        input_fn: Gives the batches.
        hooks: Hooks of the session.
        listeners: Are told of each checkpoint.
        chief_hooks: Hooks of the session on the chief, which come first.

    Raises:
        ValueError: If the input has no batch, or the checkpoint to go on from
            is one of another model.
    """
    with tf.Graph().as_default():
        built = build(plan, input_fn, ModeKeys.TRAIN)
        ranks = graph_communicator()
        if ranks is not None:
            built = with_averages_of_all(built, ranks)
            built = with_loss_of_all(built, ranks)
        _add_summaries(built)
        add_saver(plan.config, built.spec.scaffold)
        turns = None if ranks is None else Turns(ranks, built.ahead)
        chief_hooks = [
            *chief_hooks,
            *_saving_hooks(plan.config, built.spec.scaffold, listeners, ranks),
        ]
        if turns is not None:
            hooks = [turns, *hooks]
        with _session(plan, built, hooks, chief_hooks, ranks) as session:
            _loop(session, built, turns)


def _add_summaries(built: Built) -> None:
    summaries = v1.get_collection(v1.GraphKeys.SUMMARIES)
    if not any(one.op.name == "loss" for one in summaries):
        v1.summary.scalar("loss", built.spec.loss)
    add_size_summaries(built.spec.train_op)


def _loop(session: Any, built: Built, turns: Turns | None) -> None:
    loss = None
    is_at_end = False
    while (feeds := _next(session, turns)) is not None:
        try:
            _, loss = session.run([built.spec.train_op, built.spec.loss], feeds)
        except tf.errors.OutOfRangeError:
            is_at_end = True
            break
    whose = ""
    if turns is not None and turns.has_ended:
        whose, is_at_end = " of all ranks", True
    if is_at_end and loss is None:
        msg = (
            f"The input function{whose} gave no batch to train on: its data "
            "are at their end from the start."
        )
        raise ValueError(msg)
    if is_at_end:
        v1.logging.info("Training ends: the input%s is at its end.", whose)
    if loss is not None:
        v1.logging.info("Loss of the last step: %s", loss)


def _next(session: Any, turns: Turns | None) -> dict[Any, Any] | None:
    """Returns what to feed in the next step; None if there is none."""
    if turns is not None:
        return turns.next(session.should_stop)
    return None if session.should_stop() else {}


@contextlib.contextmanager
def _session(
    plan: Plan,
    built: Built,
    hooks: Sequence[Any],
    chief_hooks: Sequence[Any],
    ranks: Communicator | None,
) -> Iterator[Any]:
    config, spec = plan.config, built.spec
    folder = str(config.model_dir)
    # In a job each rank has a session of its own, which is its own chief.
    is_chief = config.is_chief or ranks is not None
    reports = ranks is None or ranks.rank == 0
    try:
        session = v1.train.MonitoredTrainingSession(
            master=config.master if ranks is None else "",
            is_chief=is_chief,
            checkpoint_dir=folder,
            scaffold=spec.scaffold,
            hooks=[
                *built.hooks,
                v1.train.NanTensorHook(spec.loss),
                *(_reports(config, built) if reports else ()),
                *hooks,
                *spec.training_hooks,
            ],
            chief_only_hooks=[
                *chief_hooks,
                *(spec.training_chief_hooks if reports else ()),
            ],
            save_checkpoint_secs=None,
            save_checkpoint_steps=None,
            save_summaries_steps=config.save_summary_steps if reports else None,
            save_summaries_secs=None,
            config=session_config(config),
            max_wait_secs=config.session_creation_timeout_secs,
            log_step_count_steps=(
                config.log_step_count_steps if reports else None
            ),
            save_graph_def=config.checkpoint_save_graph_def,
        )
    except RESTORE_ERRORS as error:
        path = tf.train.latest_checkpoint(folder)
        if path is None:
            raise
        raise explained(error, path) from error
    with session:
        yield session


def _saving_hooks(
    config: RunConfig,
    scaffold: Any,
    listeners: Sequence[Any],
    ranks: Communicator | None,
) -> list[Any]:
    """Returns hooks that save checkpoints, and what must come before."""
    folder = str(config.model_dir)
    when: dict[str, Any] = {
        "save_secs": config.save_checkpoints_secs,
        "save_steps": config.save_checkpoints_steps or _never(config),
    }
    before = TableSlotsHook(folder)
    if ranks is not None:
        saving = RankSaverHook(
            ranks,
            folder,
            listeners=listeners,
            save_graph=config.checkpoint_save_graph_def,
            **when,
        )
        return [FirstWeightsHook(ranks), before, saving]
    saving = v1.train.CheckpointSaverHook(
        folder,
        scaffold=scaffold,
        listeners=[_TablesAreSaved(folder), *listeners],
        save_graph_def=config.checkpoint_save_graph_def,
        **when,
    )
    return [before, saving]


def _never(config: Any) -> int | None:
    """Steps between checkpoints if there are to be none: more than any run."""
    return None if config.save_checkpoints_secs else 2**62


def _reports(config: RunConfig, built: Built) -> list[Any]:
    every = config.log_step_count_steps
    if every is None:
        return []
    shown = {"loss": built.spec.loss, "step": built.global_step}
    return [v1.train.LoggingTensorHook(shown, every_n_iter=every)]


class _TablesAreSaved(v1.train.CheckpointSaverListener):
    """Raises if the first checkpoint of a run lacks tables of the graph.

    Args:
        folder: Folder of the checkpoints.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._keys: list[str] = []

    def begin(self) -> None:
        self._keys = [state.key for state in saved_states()]

    def after_save(self, session: Any, global_step_value: int) -> None:
        del session, global_step_value
        keys, self._keys = self._keys, []
        path = tf.train.latest_checkpoint(self._folder) if keys else None
        if path is None:
            return
        saved = tf.train.load_checkpoint(path).get_variable_to_shape_map()
        missing = [key for key in keys if f"{key}/keys" not in saved]
        if missing:
            msg = (
                f"The saver of the model's scaffold leaves out tables: "
                f"{missing}. Make it without a list of variables, "
                "tf.compat.v1.train.Saver(), or leave `scaffold` out."
            )
            raise ValueError(msg)
