"""train_and_evaluate: training, with evaluations and exports on the way."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from embedra.distribute import graph_communicator

from ._distributed import evaluate_until_trained, serve, starts_server
from ._evaluations import Evaluations
from ._run_config import RunConfig


v1: Any = tf.compat.v1


def train_and_evaluate(
    estimator: Any,
    train_spec: Any,
    eval_spec: Any,
    eval_every_n_iter: int | None = None,
    eval_history: Any = None,
    eval_at_start: bool = True,
) -> tuple[Any, Any]:
    """Trains an estimator, and evaluates it on the way and in the end.

    Each evaluation is one of a checkpoint, in a graph of its own, after which
    the exporters of the spec are called. Training waits meanwhile.

    With `TF_CONFIG`, this does the part of its task: parameter servers serve,
    an evaluator evaluates checkpoints as they appear, the others train. The
    chief evaluates if `eval_every_n_iter` is given.

    Args:
        estimator: An `Estimator`, or what has its methods.
        train_spec: A `TrainSpec`.
        eval_spec: An `EvalSpec`, or several of different names.
        eval_every_n_iter: Evaluate after the first step of this run and after
            each that is so many later, saving a checkpoint there. None to
            evaluate the checkpoints that the configuration asks for, each spec
            when its `throttle_secs` have passed.
        eval_history: To which the values of all evaluations are appended: a
            list, or anything else with `append`.
        eval_at_start: Whether `eval_every_n_iter` counts from the first step;
            if not, that is not evaluated.

    Returns:
        The values of the metrics after training, and what exporters gave for
        them. With several specs, both by the name of the spec.

    Raises:
        ValueError: If an argument is out of range.
    """
    _check_every(eval_every_n_iter)
    evaluations = Evaluations(
        estimator, eval_spec, train_spec.max_steps, eval_history
    )
    config = getattr(estimator, "config", None)
    if not isinstance(config, RunConfig):
        config = RunConfig()
    if starts_server(config) and serve(config):
        return None, None
    if config.task_type == "evaluator":
        evaluate_until_trained(estimator, evaluations)
        return evaluations.results()
    hooks: list[Any] = list(getattr(train_spec, "hooks", ()) or ())
    listeners = list(getattr(train_spec, "saving_listeners", ()) or ())
    takes_part = config.is_chief or graph_communicator() is not None
    if takes_part:
        if eval_every_n_iter is not None:
            hooks.append(
                _EveryHook(evaluations, eval_every_n_iter, eval_at_start)
            )
        elif evaluates_by_itself(config):
            listeners.append(_EvaluationListener(evaluations))
    estimator.train(
        input_fn=train_spec.input_fn,
        max_steps=train_spec.max_steps,
        hooks=hooks,
        saving_listeners=listeners,
    )
    if takes_part and (
        eval_every_n_iter is not None or evaluates_by_itself(config)
    ):
        evaluations.finish()
    return evaluations.results()


def evaluates_by_itself(config: Any) -> bool:
    """Whether a process that trains evaluates without being told when.

    Args:
        config: A `RunConfig`.
    """
    jobs: Sequence[str] = config.cluster_spec.jobs
    if graph_communicator() is not None:
        return True
    return not jobs or config.task_type == "master"


def _check_every(every: Any) -> None:
    if every is None:
        return
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        msg = (
            "`eval_every_n_iter` must be 1 or more, or None to evaluate the "
            "checkpoints that the configuration asks for. Received: "
            f"eval_every_n_iter={every!r}."
        )
        raise ValueError(msg)


class _EvaluationListener(v1.train.CheckpointSaverListener):
    """Evaluates checkpoints of a run but the first, made before any step.

    Args:
        evaluations: What it does.
    """

    def __init__(self, evaluations: Evaluations) -> None:
        self._evaluations = evaluations
        self._first_step: int | None = None

    def after_save(self, session: Any, global_step_value: int) -> None:
        del session
        if self._first_step is None:
            self._first_step = global_step_value
        if global_step_value > self._first_step:
            self._evaluations.run_due(global_step_value)


class _EveryHook(v1.train.SessionRunHook):
    """Saves and evaluates a checkpoint after every so many steps.

    Args:
        evaluations: What it does.
        every: From one evaluation to the next.
        at_start: Whether the first step is evaluated.
    """

    def __init__(
        self, evaluations: Evaluations, every: int, at_start: bool
    ) -> None:
        self._evaluations = evaluations
        self._every = every
        self._left = 1 if at_start else every
        self._global_step: Any = None

    def begin(self) -> None:
        self._global_step = v1.train.get_global_step()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        self._left -= 1
        if self._left:
            return
        self._left = self._every
        session = run_context.session
        step = int(session.run(self._global_step))
        if not self._evaluations.is_last(step):
            self._evaluations.save(session, step)
            self._evaluations.run_all()


class TrainAndEvaluate:
    """`train_and_evaluate` as a method of an estimator.

    Attributes:
        eval_history: Values of all evaluations of the last call: a list, or
            what it was given.
    """

    eval_history: Any = ()

    def train_and_evaluate(
        self,
        train_spec: Any,
        eval_spec: Any,
        eval_every_n_iter: int | None = None,
        eval_history: Any = None,
        eval_at_start: bool = True,
    ) -> tuple[Any, Any]:
        """Trains, and evaluates on the way and in the end.

        Args:
            train_spec: See `embedra.estimator.train_and_evaluate`, like all
                that follow.
            eval_spec: What is evaluated on.
            eval_every_n_iter: When to evaluate.
            eval_history: To which values are appended.
            eval_at_start: Whether the first step is evaluated.

        Returns:
            Values of the metrics, and what exporters gave.
        """
        self.eval_history = [] if eval_history is None else eval_history
        return train_and_evaluate(
            self,
            train_spec,
            eval_spec,
            eval_every_n_iter=eval_every_n_iter,
            eval_history=self.eval_history,
            eval_at_start=eval_at_start,
        )
