"""A training that can stop at any step and go on exactly there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from embedra.checkpoint import (
    CheckpointFolder,
    StopRequest,
    improves,
    save_after_step,
)

from ._console import UsageError


_SETTINGS_FILE = "settings.json"
_ADVICE = (
    "The folder is damaged or of another model: restore it from a copy, or "
    "give another --checkpoint-dir to begin anew."
)
# TensorFlow's reader of checkpoints has Python's errors for damaged files.
_RESTORE_ERRORS = (
    AssertionError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    tf.errors.OpError,
)


class TrainingCheckpoint:
    """The state of a training in a folder: model, optimizer, and place.

    Args:
        directory: The folder; made where it is missing.
        model: A compiled model.
        settings: What the training was asked to do. A folder written with
            other settings is refused, as its steps would not match.

    Raises:
        UsageError: If the folder belongs to a training with other settings.
    """

    def __init__(
        self,
        directory: Path,
        model: keras.Model,
        settings: Mapping[str, Any],
    ) -> None:
        self.directory = directory
        self._check_settings(settings)
        self._epoch = tf.Variable(0, dtype=tf.int64)
        self._step = tf.Variable(0, dtype=tf.int64)
        self._measured = tf.Variable(0, dtype=tf.int64)
        self._best_auc = tf.Variable(-1.0, dtype=tf.float64)
        self._best_epoch = tf.Variable(0, dtype=tf.int64)
        # The slots exist before the restore, so that nothing is left over.
        model.optimizer.build(model.trainable_variables)
        self._model = model
        checkpoint = tf.train.Checkpoint(
            model=model,
            optimizer=model.optimizer,
            # Keras keeps the random state of dropout out of checkpoints.
            states=[state.value for state in model.non_trainable_variables],
            epoch=self._epoch,
            step=self._step,
            measured=self._measured,
            best_auc=self._best_auc,
            best_epoch=self._best_epoch,
        )
        self._checkpoint = checkpoint
        self._folder = CheckpointFolder(directory, keep_max=2)

    @property
    def place(self) -> tuple[int, int]:
        """Whole epochs done, and steps done in the one that runs."""
        return int(self._epoch), int(self._step)

    @property
    def measured(self) -> int:
        """The latest epoch that was measured, from 1; 0 for none yet."""
        return int(self._measured)

    @property
    def best(self) -> tuple[int, float]:
        """The best epoch (from 1; 0 for none yet) and its AUC."""
        return int(self._best_epoch), float(self._best_auc)

    def restore(self) -> bool:
        """Goes to the latest state in the folder; False where there is none.

        Raises:
            UsageError: If the state is not one of this model.
        """
        latest = self._folder.latest
        if latest is None:
            return False
        try:
            self._checkpoint.restore(latest).assert_consumed()
        except _RESTORE_ERRORS as error:
            msg = f"{latest}: cannot be restored: {error}. {_ADVICE}"
            raise UsageError(msg) from error
        if self._best_epoch > 0 and not self._best_path.is_file():
            msg = f"{self._best_path} is missing. {_ADVICE}"
            raise UsageError(msg)
        return True

    def save(self, epoch: int, step: int) -> None:
        """Writes the state at a place.

        Raises:
            UsageError: If it cannot be written.
        """
        self._epoch.assign(epoch)
        self._step.assign(step)
        try:
            self._folder.save(self._checkpoint)
        except (OSError, tf.errors.OpError) as error:
            reason = getattr(error, "message", None) or error
            msg = f"{self.directory}: the state cannot be saved: {reason}"
            raise UsageError(msg) from error

    def keep_best(self, epoch: int, auc: float | None) -> bool:
        """Keeps the model's weights if no epoch before had this AUC.

        Args:
            epoch: The epoch just done, from 1.
            auc: Its AUC on rows kept apart; `None` if there are no such rows.

        Returns:
            Whether it is the best so far.
        """
        self._measured.assign(epoch)
        if auc is None:
            return False
        # The first is kept even where its AUC is not defined.
        best_epoch, best = self.best
        if best_epoch and not improves(auc, best, "max"):
            return False
        # Written aside first: a crash must not cost the best so far.
        written = self.directory / "next.weights.h5"
        self._model.save_weights(written)
        written.replace(self._best_path)
        self._best_epoch.assign(epoch)
        self._best_auc.assign(auc)
        return True

    def load_best(self) -> None:
        """Puts the weights of the best epoch into the model.

        Raises:
            UsageError: If they cannot be read.
        """
        if self._best_epoch == 0:
            return
        try:
            self._model.load_weights(self._best_path)
        except (OSError, ValueError, KeyError) as error:
            msg = f"{self._best_path}: cannot be read: {error}. {_ADVICE}"
            raise UsageError(msg) from error

    @property
    def _best_path(self) -> Path:
        return self.directory / "best.weights.h5"

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / _SETTINGS_FILE
        wanted = json.loads(json.dumps(settings))
        if not path.exists():
            # Written aside first: a crash must not leave half a file.
            written = path.with_suffix(".tmp")
            written.write_text(json.dumps(wanted, indent=2) + "\n")
            written.replace(path)
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            msg = f"{path}: holds no settings ({error}). {_ADVICE}"
            raise UsageError(msg) from error
        if not isinstance(found, dict):
            msg = f"{path}: holds no settings. {_ADVICE}"
            raise UsageError(msg)
        differing = sorted(
            key
            for key in found.keys() | wanted.keys()
            if found.get(key) != wanted.get(key)
        )
        if differing:
            listed = ", ".join(
                f"{key} was {found.get(key)!r}, is {wanted.get(key)!r}"
                for key in differing
            )
            msg = (
                f"{self.directory} holds a training with other settings: "
                f"{listed}. Give the same settings to go on with it, or "
                "another --checkpoint-dir to begin anew."
            )
            raise UsageError(msg)


class CheckpointCallback(keras.callbacks.Callback):
    """Saves every so many steps, and at once when asked to stop.

    Args:
        checkpoint: Where to save; `None` for nowhere.
        stop: The request to stop, looked at after each step.
        epoch: Whole epochs done.
        first_step: Steps of this epoch done before.
        every: Steps between two saves; 0 for none in between.
    """

    def __init__(
        self,
        checkpoint: TrainingCheckpoint | None,
        stop: StopRequest,
        epoch: int,
        first_step: int,
        every: int,
    ) -> None:
        super().__init__()
        self._checkpoint = checkpoint
        self._stop = stop
        self._epoch = epoch
        self._first_step = self._step = first_step
        self._every = every

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Saves where due.

        Raises:
            TrainingStopped: After saving, if a stop was requested.
        """
        del logs
        before, self._step = self._step, self._first_step + batch + 1
        save_after_step(before, self._step, self._every, self._stop, self._save)

    def _save(self) -> None:
        if self._checkpoint is not None:
            self._checkpoint.save(self._epoch, self._step)
