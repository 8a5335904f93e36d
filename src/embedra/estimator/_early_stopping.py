"""A hook that ends training when a function says so."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


v1: Any = tf.compat.v1


def make_early_stopping_hook(
    estimator: Any,
    should_stop_fn: Any,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> Any:
    """Makes a hook that ends training when a function says so.

    Args:
        estimator: The estimator that is trained.
        should_stop_fn: A function without arguments that gives whether to end.
        run_every_secs: Seconds from one call to the next.
        run_every_steps: Steps from one call to the next.

    Returns:
        A hook for `Estimator.train` or `TrainSpec`.

    Raises:
        TypeError: If `should_stop_fn` is no function.
        ValueError: If not just one of the two intervals is given.
    """
    del estimator
    if not callable(should_stop_fn):
        msg = (
            "`should_stop_fn` must be a function without arguments. Received: "
            f"{should_stop_fn!r}."
        )
        raise TypeError(msg)
    if (run_every_secs is None) == (run_every_steps is None):
        msg = (
            "Give either `run_every_secs` or `run_every_steps`; the other must "
            f"be None. Received: run_every_secs={run_every_secs}, "
            f"run_every_steps={run_every_steps}."
        )
        raise ValueError(msg)
    return _StopHook(should_stop_fn, run_every_secs, run_every_steps)


class _StopHook(v1.train.SessionRunHook):
    """Ends training when a function says so.

    Args:
        should_stop: The function.
        every_secs: Seconds from one call to the next, or None.
        every_steps: Steps from one call to the next, or None.
    """

    def __init__(
        self,
        should_stop: Callable[[], bool],
        every_secs: float | None,
        every_steps: int | None,
    ) -> None:
        self._should_stop = should_stop
        self._timer = v1.train.SecondOrStepTimer(every_secs, every_steps)
        self._global_step: Any = None

    def begin(self) -> None:
        self._global_step = v1.train.get_global_step()
        self._timer.reset()

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return v1.train.SessionRunArgs(self._global_step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = run_values.results
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._should_stop():
                run_context.request_stop()
