"""Training in a monitored session."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from embedra.train import (
    RESTORE_ERRORS,
    TableSlotsHook,
    explained,
    saved_states,
)

from ._graphs import Built, Plan, add_saver, build, session_config
from ._modes import ModeKeys
from ._tables import add_size_summaries


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
        _add_summaries(built)
        add_saver(plan.config, built.spec.scaffold)
        with _session(plan, built, hooks, listeners, chief_hooks) as session:
            _loop(session, built)


def _add_summaries(built: Built) -> None:
    summaries = v1.get_collection(v1.GraphKeys.SUMMARIES)
    if not any(one.op.name == "loss" for one in summaries):
        v1.summary.scalar("loss", built.spec.loss)
    add_size_summaries(built.spec.train_op)


def _loop(session: Any, built: Built) -> None:
    loss = None
    while not session.should_stop():
        try:
            _, loss = session.run([built.spec.train_op, built.spec.loss])
        except tf.errors.OutOfRangeError:
            if loss is None:
                msg = (
                    "The input function gave no batch to train on: its data "
                    "are at their end from the start."
                )
                raise ValueError(msg) from None
            v1.logging.info("Training ends: the input is at its end.")
            break
    if loss is not None:
        v1.logging.info("Loss of the last step: %s", loss)


@contextlib.contextmanager
def _session(
    plan: Plan,
    built: Built,
    hooks: Sequence[Any],
    listeners: Sequence[Any],
    chief_hooks: Sequence[Any],
) -> Iterator[Any]:
    config, spec = plan.config, built.spec
    folder = str(config.model_dir)
    saving = v1.train.CheckpointSaverHook(
        folder,
        save_secs=config.save_checkpoints_secs,
        save_steps=config.save_checkpoints_steps or _never(config),
        scaffold=spec.scaffold,
        listeners=[_TablesAreSaved(folder), *listeners],
        save_graph_def=config.checkpoint_save_graph_def,
    )
    try:
        session = v1.train.MonitoredTrainingSession(
            master=config.master,
            is_chief=config.is_chief,
            checkpoint_dir=folder,
            scaffold=spec.scaffold,
            hooks=[
                *built.hooks,
                *_reports(plan, built),
                *hooks,
                *spec.training_hooks,
            ],
            chief_only_hooks=[
                *chief_hooks,
                TableSlotsHook(folder),
                saving,
                *spec.training_chief_hooks,
            ],
            save_checkpoint_secs=None,
            save_checkpoint_steps=None,
            save_summaries_steps=config.save_summary_steps,
            save_summaries_secs=None,
            config=session_config(config),
            max_wait_secs=config.session_creation_timeout_secs,
            log_step_count_steps=config.log_step_count_steps,
            save_graph_def=config.checkpoint_save_graph_def,
        )
    except RESTORE_ERRORS as error:
        path = tf.train.latest_checkpoint(folder)
        if path is None:
            raise
        raise explained(error, path) from error
    with session:
        yield session


def _never(config: Any) -> int | None:
    """Steps between checkpoints if there are to be none: more than any run."""
    return None if config.save_checkpoints_secs else 2**62


def _reports(plan: Plan, built: Built) -> list[Any]:
    every = plan.config.log_step_count_steps
    reports = [v1.train.NanTensorHook(built.spec.loss)]
    if every is not None:
        shown = {"loss": built.spec.loss, "step": built.global_step}
        reports.append(v1.train.LoggingTensorHook(shown, every_n_iter=every))
    return reports


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
