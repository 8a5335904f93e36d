"""Policy: something to do now and then in a training."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf


_V1: Any = tf.compat.v1
_STEP = "global_step"


class Policy(_V1.train.SessionRunHook):
    """Something to do now and then in a training.

    Subclass it, and override `__call__`. Policies are given to
    `embedra.train.monitored_session` among its hooks; it calls them, in the
    order given, by a `Policy.Trigger`.

    Args:
        metrics: Tensors by name; their values of the step are handed over.
        every_n_steps: After how many global steps it is called.
        every_n_secs: After how many seconds it is called.
        at_end: Whether it is called at the end of the session, too.

    Raises:
        TypeError: If `metrics` is no dict.
        ValueError: If it is never called, or both numbers are given.

    Example:
        >>> import embedra.compat.v1 as tf
        >>> from embedra.train import monitored_session
        >>> class Note(Policy):
        ...     def __call__(self, global_step, metrics, session, **_):
        ...         print(global_step, metrics["double"])
        >>> with tf.Graph().as_default():
        ...     step = tf.train.get_or_create_global_step()
        ...     train = tf.assign_add(step, 1)
        ...     with tf.control_dependencies([train]):
        ...         double = 2 * step.read_value()
        ...     note = Note({"double": double}, every_n_steps=2)
        ...     with monitored_session(hooks=[note]) as session:
        ...         for _ in range(4):
        ...             _ = session.run(train)
        2 4
        4 8
    """

    def __init__(
        self,
        metrics: Any = None,
        every_n_steps: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
    ) -> None:
        given = [n for n in (every_n_steps, every_n_secs) if n is not None]
        if len(given) > 1 or not (given or at_end):
            msg = (
                "A policy needs one of `every_n_steps` and `every_n_secs`, or "
                f"`at_end`. Received: every_n_steps={every_n_steps}, "
                f"every_n_secs={every_n_secs}, at_end={at_end}."
            )
            raise ValueError(msg)
        if any(not number > 0 for number in given):
            msg = f"A policy cannot be called every {given[0]}."
            raise ValueError(msg)
        if metrics is not None and not isinstance(metrics, Mapping):
            msg = (
                "`metrics` must be a dict of tensors by name. Received: "
                f"{metrics!r}."
            )
            raise TypeError(msg)
        self.metrics = dict(metrics or {})
        self.every_n_steps = every_n_steps
        self.every_n_secs = every_n_secs
        self.at_end = at_end

    def __call__(
        self,
        global_step: int,
        metrics: Mapping[str, Any],
        session: Any,
        context: Any = None,
        scaffold: Any = None,
        writer: Any = None,
    ) -> None:
        """Does what is to be done.

        Args:
            global_step: The step that training is at.
            metrics: Values of `metrics`, and "iter", the number of steps of
                this session before this one.
            session: The session, to run more.
            context: The `SessionRunContext`, to stop training; None at the end.
            scaffold: The scaffold of the session.
            writer: Writes events for TensorBoard; None without a folder.

        Raises:
            NotImplementedError: If a subclass does not override it.
        """
        del global_step, metrics, session, context, scaffold, writer
        msg = f"{type(self).__name__} must override `__call__`."
        raise NotImplementedError(msg)

    class Trigger(_V1.train.SessionRunHook):
        """Calls policies when it is their time.

        Args:
            policies: The policies.
            scaffold: The scaffold of the session, handed to policies.
            output_dir: Folder of events for TensorBoard; None for no events.
        """

        def __init__(
            self,
            policies: Sequence["Policy"],
            scaffold: Any = None,
            output_dir: str | None = None,
        ) -> None:
            self._policies = list(policies)
            self._scaffold = scaffold
            self._output_dir = output_dir
            self._writer: Any = None
            self._fetches: dict[str, Any] = {}
            self._global_step: Any = None
            self._iteration = 0
            self._last: list[tuple[int, float]] = []

        def begin(self) -> None:
            """Finds the tensors that are to be run."""
            self._global_step = _V1.train.get_or_create_global_step()
            self._fetches = {
                str(i): policy.metrics
                for i, policy in enumerate(self._policies)
            }
            self._fetches[_STEP] = self._global_step
            if self._output_dir is not None:
                self._writer = _V1.summary.FileWriterCache.get(self._output_dir)

        def after_create_session(self, session: Any, coord: Any) -> None:
            """Starts to count.

            Args:
                session: The session.
                coord: Unused.
            """
            del coord
            now = (self._step_of(session), time.monotonic())
            self._last = [now] * len(self._policies)
            self._iteration = 0

        def before_run(self, run_context: Any) -> Any:
            """Asks for the metrics.

            Args:
                run_context: Unused.
            """
            del run_context
            return _V1.train.SessionRunArgs(self._fetches)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            """Calls the policies whose time it is.

            Args:
                run_context: Handed to policies.
                run_values: Have the metrics.
            """
            session = run_context.session
            # It may have been read before the step was counted.
            step = int(run_values.results[_STEP])
            if any(self._is_due(i, step + 1) for i in range(len(self._last))):
                step = self._step_of(session)
            for i, policy in enumerate(self._policies):
                if self._is_due(i, step):
                    values = run_values.results[str(i)]
                    self._call(i, policy, step, values, session, run_context)
            self._iteration += 1

        def end(self, session: Any) -> None:
            """Calls the policies that are called at the end.

            Args:
                session: The session.
            """
            step = self._step_of(session)
            for i, policy in enumerate(self._policies):
                # One that was called at this very step is not called again.
                if policy.at_end and self._last[i][0] != step:
                    values = session.run(policy.metrics)
                    self._call(i, policy, step, values, session, None)

        def _is_due(self, i: int, step: int) -> bool:
            policy, (last_step, last_time) = self._policies[i], self._last[i]
            if policy.every_n_steps is not None:
                return step - last_step >= policy.every_n_steps
            if policy.every_n_secs is not None:
                return time.monotonic() - last_time >= policy.every_n_secs
            return False

        def _call(
            self,
            i: int,
            policy: "Policy",
            step: int,
            values: Mapping[str, Any],
            session: Any,
            context: Any,
        ) -> None:
            self._last[i] = (step, time.monotonic())
            policy(
                step,
                {"iter": self._iteration, **values},
                session,
                context=context,
                scaffold=self._scaffold,
                writer=self._writer,
            )

        def _step_of(self, session: Any) -> int:
            return int(session.run(self._global_step))
