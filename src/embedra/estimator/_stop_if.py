"""Hooks that end training by what evaluations gave."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ._early_stopping import make_early_stopping_hook
from ._specs import checked_steps
from ._summaries import read_summaries


v1: Any = tf.compat.v1


def stop_if_higher_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Makes a hook that ends training when a metric is above a threshold.

    Args:
        estimator: The estimator that is trained.
        metric_name: Name of the metric, or "loss".
        threshold: The threshold.
        eval_dir: Folder of the events of evaluations. None for
            `estimator.eval_dir()`.
        min_steps: Evaluations before this step do not count.
        run_every_secs: Seconds from one look at the evaluations to the next.
        run_every_steps: Steps from one look to the next.

    Returns:
        The hook.
    """
    where = _Where(estimator, metric_name, eval_dir, min_steps)
    decide = functools.partial(_is_past, threshold, operator.gt)
    return where.hook(decide, run_every_secs, run_every_steps)


def stop_if_lower_hook(
    estimator: Any,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Makes a hook that ends training when a metric is below a threshold.

    Args:
        estimator: See `stop_if_higher_hook`, like all that follow.
        metric_name: Name of the metric, or "loss".
        threshold: The threshold.
        eval_dir: Folder of the events of evaluations.
        min_steps: Evaluations before this step do not count.
        run_every_secs: Seconds from one look at the evaluations to the next.
        run_every_steps: Steps from one look to the next.

    Returns:
        The hook.
    """
    where = _Where(estimator, metric_name, eval_dir, min_steps)
    decide = functools.partial(_is_past, threshold, operator.lt)
    return where.hook(decide, run_every_secs, run_every_steps)


def stop_if_no_increase_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Makes a hook that ends training when a metric no longer grows.

    Training ends once an evaluation is so many steps later than the best one,
    the first of equal ones.

    Args:
        estimator: See `stop_if_higher_hook`, like all that follow.
        metric_name: Name of the metric, or "loss".
        max_steps_without_increase: How many steps.
        eval_dir: Folder of the events of evaluations.
        min_steps: Evaluations before this step do not count.
        run_every_secs: Seconds from one look at the evaluations to the next.
        run_every_steps: Steps from one look to the next.

    Returns:
        The hook.
    """
    limit = max_steps_without_increase
    checked_steps(limit, "max_steps_without_increase")
    where = _Where(estimator, metric_name, eval_dir, min_steps)
    decide = functools.partial(_is_stuck, limit, operator.gt)
    return where.hook(decide, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
    estimator: Any,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Makes a hook that ends training when a metric no longer falls.

    Training ends once an evaluation is so many steps later than the best one,
    the first of equal ones.

    Args:
        estimator: See `stop_if_higher_hook`, like all that follow.
        metric_name: Name of the metric, or "loss".
        max_steps_without_decrease: How many steps.
        eval_dir: Folder of the events of evaluations.
        min_steps: Evaluations before this step do not count.
        run_every_secs: Seconds from one look at the evaluations to the next.
        run_every_steps: Steps from one look to the next.

    Returns:
        The hook.
    """
    limit = max_steps_without_decrease
    checked_steps(limit, "max_steps_without_decrease")
    where = _Where(estimator, metric_name, eval_dir, min_steps)
    decide = functools.partial(_is_stuck, limit, operator.lt)
    return where.hook(decide, run_every_secs, run_every_steps)


def read_eval_metrics(eval_dir: str) -> dict[int, dict[str, float]]:
    """Reads what evaluations gave from their events.

    Args:
        eval_dir: Folder of the events, as `Estimator.eval_dir` gives it.

    Returns:
        Values by name, by global step, in the order of steps.
    """
    return read_summaries(eval_dir)


Values = list[tuple[int, float]]


class _Where:
    """Reads the values of a metric from the events of evaluations.

    Args:
        estimator: The estimator that is trained.
        metric_name: Name of the metric.
        eval_dir: Folder of the events, or None for the estimator's own.
        min_steps: Evaluations before this step do not count.
    """

    def __init__(
        self,
        estimator: Any,
        metric_name: str,
        eval_dir: str | None,
        min_steps: int,
    ) -> None:
        self._estimator = estimator
        self._metric = metric_name
        self._folder = eval_dir or estimator.eval_dir()
        self._min_steps = min_steps

    def hook(
        self,
        decide: Callable[[Values], bool],
        run_every_secs: float | None,
        run_every_steps: int | None,
    ) -> Any:
        """Makes the hook that ends training.

        Args:
            decide: Given values by step, whether to end.
            run_every_secs: Seconds from one look to the next.
            run_every_steps: Steps from one look to the next; takes the place
                of seconds.
        """

        def should_stop() -> bool:
            values = self._values()
            if not decide(values):
                return False
            said = (self._metric, *values[-1])
            v1.logging.info("Training ends: %s at step %d was %s", *said)
            return True

        if run_every_steps is not None:
            run_every_secs = None
        return make_early_stopping_hook(
            self._estimator, should_stop, run_every_secs, run_every_steps
        )

    def _values(self) -> Values:
        evaluations = read_summaries(self._folder)
        names = {name for metrics in evaluations.values() for name in metrics}
        if names and self._metric not in names:
            v1.logging.warning(
                "Early stopping waits for metric %r, which evaluations in %s "
                "do not have. They have %s.",
                self._metric,
                self._folder,
                sorted(names),
            )
        return [
            (step, metrics[self._metric])
            for step, metrics in evaluations.items()
            if step >= self._min_steps and self._metric in metrics
        ]


def _is_past(
    threshold: float,
    past: Callable[[float, float], bool],
    values: Values,
) -> bool:
    return any(past(value, threshold) for _, value in values)


def _is_stuck(
    steps: int, better: Callable[[float, float], bool], values: Values
) -> bool:
    best: tuple[int, float] | None = None
    for step, value in values:
        if best is None or better(value, best[1]):
            best = step, value
        if step - best[0] >= steps:
            return True
    return False
