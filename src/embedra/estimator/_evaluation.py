"""Evaluation of a checkpoint."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator, gather_values, graph_communicator
from embedra.train import RESTORE_ERRORS, explained, write_summary

from ._graphs import Built, Plan, build, session_config
from ._modes import ModeKeys
from ._rank_metrics import MetricsOverRanks


v1: Any = tf.compat.v1

LOSS = "loss"
GLOBAL_STEP = "global_step"


def evaluate(
    plan: Plan,
    input_fn: Callable[..., Any],
    steps: int | None,
    hooks: Sequence[Any],
    checkpoint: str,
    folder: str,
) -> dict[str, Any]:
    """Evaluates a checkpoint.

    Args:
        plan: What is evaluated.
        input_fn: Gives the batches.
        steps: Number of batches at most, or None for all.
        hooks: Hooks of the session.
        checkpoint: What is restored.
        folder: Folder of the events.

    Returns:
        Values of the metrics by name, with "loss" and "global_step".

    Raises:
        ValueError: If the input has no batch, or the checkpoint is one of
            another model.
    """
    with tf.Graph().as_default():
        built = build(plan, input_fn, ModeKeys.EVAL)
        before = len(v1.local_variables())
        values, update = _metrics(built)
        built = _with_initialised(built, v1.local_variables()[before:])
        final = [v1.train.FinalOpsHook(values)]
        ranks = graph_communicator()
        if ranks is not None:
            final = [MetricsOverRanks(ranks), *final]
        hooks = [*built.hooks, *hooks, *built.spec.evaluation_hooks, *final]
        session = restored_session(plan, built, hooks, checkpoint)
        with session:
            _loop(session, update, steps, ranks)
    results = final[-1].final_ops_values
    results = dict(sorted(results.items()))
    shown = ", ".join(f"{name} = {value}" for name, value in results.items())
    v1.logging.info("Evaluation of %s: %s", checkpoint, shown)
    step = int(results[GLOBAL_STEP])
    if ranks is None or ranks.rank == 0:
        written = {k: v for k, v in results.items() if k != GLOBAL_STEP}
        write_summary(folder, written, step)
    return results


def _metrics(built: Built) -> tuple[dict[str, Any], tf.Operation]:
    metrics = dict(built.spec.eval_metric_ops)
    for name in (LOSS, GLOBAL_STEP):
        if name in metrics:
            msg = (
                f"`eval_metric_ops` must not have {name!r}: the estimator "
                "adds that itself."
            )
            raise ValueError(msg)
    metrics[LOSS] = v1.metrics.mean(built.spec.loss)
    values = {name: value for name, (value, _) in metrics.items()}
    updates = [update for _, update in metrics.values()]
    values[GLOBAL_STEP] = built.global_step
    return values, tf.group(*updates)


def _with_initialised(built: Built, variables: list[Any]) -> Built:
    """Has a scaffold with a `local_init_op` of its own initialise more.

    Args:
        built: The model.
        variables: Local variables that it does not know of.
    """
    scaffold = built.spec.scaffold
    if scaffold is None or scaffold.local_init_op is None:
        return built
    both = tf.group(scaffold.local_init_op, v1.variables_initializer(variables))
    scaffold = v1.train.Scaffold(
        local_init_op=both, copy_from_scaffold=scaffold
    )
    return built._replace(spec=built.spec._replace(scaffold=scaffold))


def _loop(
    session: Any,
    update: tf.Operation,
    steps: int | None,
    ranks: Communicator | None,
) -> None:
    done = 0
    while not session.should_stop() and (steps is None or done < steps):
        try:
            session.run(update)
        except tf.errors.OutOfRangeError:
            break
        done += 1
    # Metrics are those of all ranks; some may have had no batch.
    if not any(gather_values(ranks, done, label="batches evaluated")):
        msg = (
            "The input function gave no batch to evaluate: its data are at "
            "their end from the start."
        )
        raise ValueError(msg)


def restored_session(
    plan: Plan, built: Built, hooks: Sequence[Any], checkpoint: str | None
) -> Any:
    """Makes a session of a model as a checkpoint has it.

    Args:
        plan: What the model was built of.
        built: The model, in the graph that is current.
        hooks: Hooks of the session.
        checkpoint: What is restored, or None to initialise.

    Returns:
        A `MonitoredSession`.

    Raises:
        ValueError: If the checkpoint is one of another model.
    """
    creator = v1.train.ChiefSessionCreator(
        scaffold=built.spec.scaffold,
        checkpoint_filename_with_path=checkpoint,
        config=session_config(plan.config),
    )
    try:
        return v1.train.MonitoredSession(creator, hooks=list(hooks))
    except RESTORE_ERRORS as error:
        if checkpoint is None:
            raise
        raise explained(error, checkpoint) from error
