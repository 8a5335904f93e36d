"""EvaluationHook: evaluates within the session of a training."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ._evaluation_graph import EvaluationGraph, build
from ._summaries import write_summary


_V1: Any = tf.compat.v1
_STEP = "global_step"


class EvaluationHook(_V1.train.SessionRunHook):
    """Evaluates the model as it is, within the session of its training.

    It does so after the first step of the session, and after each that is
    `every_n_iter` later; every run of the session is a step. The evaluation
    function adds to the training graph: variables that it makes with
    `tf.compat.v1.get_variable` are those of the same name in training. Nothing
    is trained meanwhile: lookups create no rows, and the global step stays.
    Metrics begin anew each time. So do data, if the iterator is one of
    `embedra.data.make_initializable_iterator`; others go on where they were.

    Args:
        fn: The evaluation function, of no arguments. It returns metrics by
            name, each a pair of its value and its update operation; or an
            `EvaluationSpec`.
        steps: How many batches an evaluation takes at most; None for all.
        every_n_iter: Steps of training from one evaluation to the next.
        summary_dir: Folder of events for TensorBoard; None for no events.
        history: To which the values of each evaluation are appended, as a dict
            with "global_step": a list, or anything else with `append`.
        eval_at_start: Whether the first step is evaluated; else the first
            evaluation is after `every_n_iter` steps.

    Attributes:
        latest: The values of the latest evaluation; None before the first.

    Raises:
        ValueError: If a number is out of range.

    Example:
        >>> import embedra.compat.v1 as tf
        >>> history = []
        >>> with tf.Graph().as_default():
        ...     step = tf.train.get_or_create_global_step()
        ...     train = tf.assign_add(step, 1)
        ...     hook = EvaluationHook(
        ...         lambda: {"two": tf.metrics.mean([1.0, 3.0])},
        ...         steps=1,
        ...         every_n_iter=3,
        ...         history=history,
        ...     )
        ...     with tf.train.MonitoredSession(hooks=[hook]) as session:
        ...         for _ in range(5):
        ...             _ = session.run(train)
        >>> [(int(v["global_step"]), float(v["two"])) for v in history]
        [(1, 2.0), (4, 2.0)]
    """

    def __init__(
        self,
        fn: Callable[[], Any],
        steps: int | None = 100,
        every_n_iter: int = 1000,
        summary_dir: str | None = None,
        history: Any = None,
        eval_at_start: bool = True,
    ) -> None:
        _check_count("every_n_iter", every_n_iter)
        if steps is not None:
            _check_count("steps", steps)
        self.latest: dict[str, Any] | None = None
        self._fn = fn
        self._steps = steps
        self._every = every_n_iter
        self._left = 1 if eval_at_start else every_n_iter
        self._summary_dir = summary_dir
        self._history = history
        self._graph: EvaluationGraph
        self._hooks: list[Any] = []

    def begin(self) -> None:
        """Adds the evaluation to the graph."""
        self._graph = build(self._fn)
        self._hooks = list(self._graph.spec.hooks or ())
        for hook in self._hooks:
            hook.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Tells the evaluation's own hooks of the session.

        Args:
            session: The session.
            coord: Its coordinator.
        """
        for hook in self._hooks:
            hook.after_create_session(session, coord)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Evaluates, if it is time.

        Args:
            run_context: Has the session.
            run_values: Unused.
        """
        del run_values
        self._left -= 1
        if not self._left:
            self._left = self._every
            self._evaluate(run_context.session)

    def end(self, session: Any) -> None:
        """Tells the evaluation's own hooks of the end.

        Args:
            session: The session.
        """
        for hook in self._hooks:
            hook.end(session)

    def _evaluate(self, session: Any) -> None:
        session.run(self._graph.reset)
        spec = self._graph.spec
        done = 0
        while self._steps is None or done < self._steps:
            try:
                self._run(session, spec.update_op)
            except tf.errors.OutOfRangeError:
                break
            done += 1
        if not done:
            msg = (
                f"The {spec.name} has no batch: its data are at their end. An "
                "iterator that is made once goes through them once: use "
                "embedra.data.make_initializable_iterator, or repeat the data "
                "and set `steps`."
            )
            raise ValueError(msg)
        fetches = {_STEP: self._graph.global_step, **spec.eval_dict}
        values = session.run(fetches)
        self.latest = values
        if self._history is not None:
            self._history.append(values)
        self._report(values)

    def _run(self, session: Any, update: Any) -> None:
        """Runs a step of the evaluation, with its hooks around it."""
        context = _V1.train.SessionRunContext(
            _V1.train.SessionRunArgs(update), session
        )
        fetches: dict[Any, Any] = {"update": update}
        feeds: dict[Any, Any] = {}
        for hook in self._hooks:
            asked = hook.before_run(context)
            if asked is not None:
                if asked.fetches is not None:
                    fetches[hook] = asked.fetches
                feeds |= asked.feed_dict or {}
        values = session.run(fetches, feeds)
        for hook in self._hooks:
            results = _V1.train.SessionRunValues(
                results=values.get(hook), options=None, run_metadata=None
            )
            hook.after_run(context, results)

    def _report(self, values: dict[str, Any]) -> None:
        step = int(values[_STEP])
        shown = {k: v for k, v in sorted(values.items()) if k != _STEP}
        text = ", ".join(f"{name} = {value}" for name, value in shown.items())
        _V1.logging.info("Evaluation at step %d: %s", step, text)
        if self._summary_dir is not None:
            write_summary(self._summary_dir, shown, step)


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        msg = (
            f"`{name}` must be an integer of at least 1. Received: "
            f"{name}={value!r}."
        )
        raise ValueError(msg)
