"""The callback by which `fit` saves, goes on, and stops."""

import logging
import os
from collections.abc import Callable
from typing import Any

import keras

from embedra.checkpoint import (
    CheckpointFolder,
    StopRequest,
    TrainingStopped,
    save_after_step,
)

from ._first_step import build, has_own_test_step
from ._fit_settings import FitSettings
from ._rank_data import batch_spec
from ._training_state import Place, TrainingState, place_of


_LATEST = "latest"
_log = logging.getLogger(__name__)


class FitCallback(keras.callbacks.Callback):
    """Saves, goes on where a training was, and stops between two steps.

    With `best_only`, the folder holds the best epochs, and a folder in it the
    latest state, to go on from.

    Args:
        settings: What to do.
        stop: The request to stop, looked at after each step.
        initial_epoch: The epoch to begin at, if more are not done already.
    """

    def __init__(
        self, settings: FitSettings, stop: StopRequest, initial_epoch: int = 0
    ) -> None:
        super().__init__()
        self._settings = settings
        self._stop = stop
        self._folder = CheckpointFolder(
            settings.directory,
            keep_max=settings.keep_max,
            keep_every_n_hours=settings.keep_every_n_hours,
        )
        self._latest = self._folder
        if settings.best_only:
            self._latest = CheckpointFolder(
                os.path.join(settings.directory, _LATEST), keep_max=1
            )
        found = [f.latest for f in (self._folder, self._latest)]
        prefixes = [prefix for prefix in found if prefix is not None]
        #: Prefix of the checkpoint to go on from, or None.
        self.prefix = max(prefixes, key=place_of) if prefixes else None
        saved = place_of(self.prefix) if self.prefix else Place(0, 0)
        #: Where to begin.
        self.place = max(saved, Place(initial_epoch, 0))
        self._state: TrainingState | None = None
        self._now = self.place
        self._passing_over = 0
        self._left = False
        self._metrics: list[Any] = []
        #: The training function that `steps` was given.
        self.plain_step: Callable[[Any], Any] | None = None

    # What happens before the first step.

    def steps(
        self, step: Callable[[Any], Any], pass_over: int, length: int | None
    ) -> Callable[[Any], Any]:
        """Wraps a training function, to begin where the training was.

        Args:
            step: Makes steps on the batches of an iterator.
            pass_over: Batches of earlier epochs to leave out.
            length: Batches after those until the data end, or None.

        Returns:
            A function that leaves out all that was done before.
        """
        self.plain_step = step

        def run(data: Any) -> Any:
            nonlocal pass_over, length
            if self._state is None:
                self._check_monitor(build(self.model, batch_spec(data)))
                self._latest.check_writable()
                self.prepare()
            for _ in range(pass_over):
                next(data)
            pass_over = 0
            if length is not None:
                if length <= 0:
                    length = None
                    raise StopIteration
                length -= self.model.steps_per_execution
            if not self._passing_over:
                return step(data)
            count = min(self.model.steps_per_execution, self._passing_over)
            for _ in range(count):
                next(data)
            self._passing_over -= count
            return self.model.get_metrics_result()

        return run

    def prepare(self) -> None:
        """Goes to the saved state if there is one."""
        settings = self._settings
        self._state = TrainingState(self.model, settings.monitor.label)
        if self.prefix is None:
            return
        self._state.restore(self.prefix)
        self._passing_over = self.place.step
        if not self._passing_over:
            self.model.reset_metrics()
        _log.info(
            "Training goes on from %s: epoch %d, step %d.",
            self.prefix,
            self.place.epoch + 1,
            self.place.step,
        )

    def _check_monitor(self, names: set[str] | None) -> None:
        """Raises if no log of the training will be the monitored one.

        Args:
            names: Names of the logs of a training step; None if not known.
        """
        settings = self._settings
        if names is None or not settings.best_only:
            return
        if settings.added_logs is None:
            # A callback may add it; the first epoch tells.
            return
        known = names | settings.added_logs
        if settings.validates:
            known |= {f"val_{name}" for name in names}
            if has_own_test_step(self.model) and settings.monitor.validates:
                # Its logs may be any; the first validation tells.
                return
        settings.monitor.check(known)

    # What happens after steps and epochs.

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Notes the epoch."""
        del logs
        self._now = Place(epoch, 0)
        self._left = False
        self._metrics = []

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Saves where due.

        Raises:
            TrainingStopped: After saving, if a stop was requested.
        """
        del logs
        before, self._now = self._now, Place(self._now.epoch, batch + 1)
        # Where another callback ends the training, perhaps within the epoch,
        # what is left of it is not done.
        self._left = bool(self.model.stop_training)
        if self._passing_over or self._now <= self.place:
            if self._left:
                self._now = self.place
            return
        save_after_step(
            before.step,
            self._now.step,
            self._settings.every_n_steps,
            self._stop,
            self._save_latest,
        )

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Keeps the metrics of the epoch, which validation takes over."""
        del logs
        self._metrics = [v.numpy() for v in self.model.metrics_variables]

    def on_test_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Leaves validation if a stop was requested.

        Raises:
            TrainingStopped: After saving; it goes on with the validation.
        """
        del batch, logs
        requested = self._stop.signal_number
        if requested is None:
            return
        self._put_back_metrics()
        self._save_latest()
        raise TrainingStopped(requested)

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Saves the epoch.

        Raises:
            TrainingStopped: After saving, if a stop was requested.
        """
        if self._left:
            self._put_back_metrics()
        else:
            self._now = Place(epoch + 1, 0)
        settings, state = self._settings, self._state
        if state is None:
            return
        logs = logs or {}
        if settings.best_only:
            validated = any(name.startswith("val_") for name in logs)
            if validated or not settings.validates:
                settings.monitor.check(logs)
            better = settings.monitor.better(logs, state.best)
            if better is not None:
                state.best = better
                state.save(self._folder, self._now)
        self._save_latest()
        self._stop.check()

    @property
    def last_prefix(self) -> str | None:
        """Prefix of what the model is to be when `fit` returns."""
        best = self._folder.latest if self._settings.restore_best else None
        return best or self.prefix

    def restore_best(self) -> None:
        """Goes to the best epoch, if that is asked for and there is one."""
        best = self._folder.latest
        if self._settings.restore_best and self._state and best:
            self._state.restore(best)

    def _put_back_metrics(self) -> None:
        """Gives the metrics what they had before a validation."""
        for variable, value in zip(
            self.model.metrics_variables, self._metrics, strict=False
        ):
            variable.assign(value)

    def _save_latest(self) -> None:
        if self._state is not None:
            self._state.save(self._latest, self._now)

    @property
    def message(self) -> str:
        """Says where a training was stopped."""
        epoch, step = self._now
        return (
            f"The training stopped after {epoch} epochs and {step} steps of "
            f"the next; its state is in {self._settings.directory}. The same "
            "call goes on from there."
        )
