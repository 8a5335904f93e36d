"""Evaluations: what is evaluated and exported during training."""

import os
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from embedra.distribute import gather_values, graph_communicator, together
from embedra.train import save_by_all

from ._checkpoints import global_step_of


class _Result(NamedTuple):
    checkpoint: str
    metrics: dict[str, Any]
    # What each exporter gave, in their order.
    exports: list[Any]


class Evaluations:
    """Evaluates checkpoints by some specs, and calls their exporters.

    Args:
        estimator: An `Estimator`, or what has its methods.
        specs: An `EvalSpec`, or several.
        max_steps: Step at which training ends, or None.
        history: To which values are appended, or None.

    Raises:
        ValueError: If specs have not distinct names.
    """

    def __init__(
        self, estimator: Any, specs: Any, max_steps: int | None, history: Any
    ) -> None:
        self._estimator = estimator
        # A spec is a tuple itself.
        self._is_one = hasattr(specs, "input_fn")
        self.specs: Sequence[Any] = [specs] if self._is_one else list(specs)
        names = [spec.name for spec in self.specs]
        if not names or len(set(names)) != len(names):
            msg = (
                "`eval_spec` must be an EvalSpec, or several with distinct "
                f"names. Received names: {names}."
            )
            raise ValueError(msg)
        self._max_steps = max_steps
        self._history = history
        self._results: dict[Any, _Result] = {}
        now = time.monotonic()
        self._last = {name: now for name in names}

    def is_last(self, step: int) -> bool:
        """Whether training ends at a step: it is then evaluated after that.

        Args:
            step: The step.
        """
        return self._max_steps is not None and step >= self._max_steps

    def save(self, session: Any, step: int) -> None:
        """Saves a checkpoint, unless there is one of the step.

        Args:
            session: The session of the training.
            step: Its step.
        """
        folder = self._estimator.model_dir
        latest = tf.train.latest_checkpoint(folder)
        if latest is None or global_step_of(latest) != step:
            save_by_all(graph_communicator(), session, folder, step)

    def run_due(self, step: int) -> None:
        """Evaluates the latest checkpoint by those specs whose turn it is.

        Args:
            step: Its step.
        """
        if self.is_last(step):
            return
        checkpoint = self._latest()
        for spec in self.specs:
            waited = time.monotonic() - self._last[spec.name]
            due = waited >= getattr(spec, "throttle_secs", 0)
            # By the clock of rank 0.
            if gather_values(
                graph_communicator(), due, label="time to evaluate"
            )[0]:
                self._run(spec, checkpoint, final=False)

    def run_all(self, *, final: bool = False) -> None:
        """Evaluates the latest checkpoint by all specs.

        Args:
            final: Whether training has ended.
        """
        checkpoint = self._latest()
        for spec in self.specs:
            self._run(spec, checkpoint, final=final)

    def finish(self) -> None:
        """Evaluates and exports what training has ended with."""
        checkpoint = self._latest()
        for spec in self.specs:
            result = self._results.get(spec.name)
            if result is None or result.checkpoint != checkpoint:
                self._run(spec, checkpoint, final=True)
            else:
                self._export(spec, result, final=True)

    def results(self) -> tuple[Any, Any]:
        """Returns the latest values, and what exporters gave for them.

        Returns:
            Both by the name of the spec if there are several; None where there
            was no evaluation.
        """
        metrics = {name: one.metrics for name, one in self._results.items()}
        exports = {name: one.exports for name, one in self._results.items()}
        if not self._is_one:
            return metrics, exports
        name = self.specs[0].name
        return metrics.get(name), exports.get(name)

    def _latest(self) -> str:
        checkpoint = tf.train.latest_checkpoint(self._estimator.model_dir)
        if checkpoint is None:
            msg = (
                f"Training has left no checkpoint in "
                f"{self._estimator.model_dir!r} to evaluate."
            )
            raise ValueError(msg)
        return str(checkpoint)

    def _run(self, spec: Any, checkpoint: str, *, final: bool) -> None:
        metrics = self._estimator.evaluate(
            input_fn=spec.input_fn,
            steps=spec.steps,
            hooks=list(getattr(spec, "hooks", ()) or ()),
            checkpoint_path=checkpoint,
            name=spec.name,
        )
        if self._history is not None:
            named = {} if self._is_one else {"name": spec.name}
            self._history.append({**metrics, **named})
        exporters = getattr(spec, "exporters", ()) or ()
        result = _Result(checkpoint, metrics, [None] * len(exporters))
        self._results[spec.name] = result
        self._export(spec, result, final=final)
        self._last[spec.name] = time.monotonic()

    def _export(self, spec: Any, result: _Result, *, final: bool) -> None:
        """Calls the exporters that have not exported the checkpoint yet.

        Of several ranks, rank 0 does.
        """
        ranks = graph_communicator()
        with together(ranks, "exporting", result.checkpoint):
            if ranks is None or ranks.rank == 0:
                self._call_exporters(spec, result, final=final)

    def _call_exporters(
        self, spec: Any, result: _Result, *, final: bool
    ) -> None:
        for i, exporter in enumerate(getattr(spec, "exporters", ()) or ()):
            if result.exports[i] is None:
                folder = os.path.join(
                    self._estimator.model_dir, "export", exporter.name
                )
                result.exports[i] = exporter.export(
                    estimator=self._estimator,
                    export_path=folder,
                    checkpoint_path=result.checkpoint,
                    eval_result=result.metrics,
                    is_the_final_export=final,
                )
