"""StepStatHook: how fast steps are."""

import time
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf


_V1: Any = tf.compat.v1


class StepStatistics(NamedTuple):
    """How fast some steps were.

    Attributes:
        steps: How many there were.
        seconds: Of a step, the median.
        steadiness: The 10th over the 90th percentile of the seconds, at most 1.
        rate: What was counted per second; None if nothing was.
    """

    steps: int
    seconds: float
    steadiness: float
    rate: float | None


class StepStatHook(_V1.train.SessionRunHook):
    """Logs how long steps take, and how much they get through.

    Args:
        every_n_iter: After how many steps; None for the end only.
        count: What a step gets through: a number, such as the batch size, or a
            tensor that is run with the step. None to count nothing.
        unit: Name of what is counted, in the singular.

    Attributes:
        latest: What was logged last; None before.

    Raises:
        ValueError: If `every_n_iter` is less than 1.

    Example:
        >>> import embedra.compat.v1 as tf
        >>> hook = StepStatHook(count=64)
        >>> with tf.Graph().as_default():
        ...     train = tf.constant(0)
        ...     with tf.train.MonitoredSession(hooks=[hook]) as session:
        ...         for _ in range(5):
        ...             _ = session.run(train)
        >>> hook.latest.steps
        5
    """

    def __init__(
        self,
        every_n_iter: int | None = None,
        count: Any = None,
        unit: str = "sample",
    ) -> None:
        if every_n_iter is not None and every_n_iter < 1:
            msg = (
                "`every_n_iter` must be at least 1, or None. Received: "
                f"every_n_iter={every_n_iter}."
            )
            raise ValueError(msg)
        self.latest: StepStatistics | None = None
        self._every = every_n_iter
        self._count = count
        self._unit = unit
        self._start = 0.0
        self._seconds: list[float] = []
        self._counts: list[float] = []

    def before_run(self, run_context: Any) -> Any:
        """Starts the clock.

        Args:
            run_context: Unused.
        """
        del run_context
        self._start = time.perf_counter()
        if tf.is_tensor(self._count):
            return _V1.train.SessionRunArgs(self._count)
        return None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stops the clock, and logs if it is time.

        Args:
            run_context: Unused.
            run_values: Have what was counted, if it is a tensor.
        """
        del run_context
        self._seconds.append(time.perf_counter() - self._start)
        if self._count is not None:
            results = run_values.results
            counted = self._count if results is None else results
            self._counts.append(float(np.sum(counted)))
        if self._every is not None and len(self._seconds) == self._every:
            self._log()

    def end(self, session: Any) -> None:
        """Logs the steps since the last time.

        Args:
            session: Unused.
        """
        del session
        if self._seconds:
            self._log()

    def _log(self) -> None:
        low, median, high = np.percentile(self._seconds, (10, 50, 90))
        total = sum(self._seconds)
        self.latest = StepStatistics(
            len(self._seconds),
            float(median),
            float(low / high),
            sum(self._counts) / total if self._counts else None,
        )
        self._seconds, self._counts = [], []
        text = "%d steps: %.5f s/step (steady to %.0f%%)"
        values = [*self.latest[:2], 100.0 * self.latest.steadiness]
        if self.latest.rate is not None:
            text += f", %.1f {self._unit}s/s"
            values.append(self.latest.rate)
        _V1.logging.info(text, *values)
