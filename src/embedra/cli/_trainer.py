"""Epochs over a file: fit, measure, keep the best, go on after a stop."""

from __future__ import annotations

from dataclasses import dataclass

import keras
import tensorflow as tf

from embedra.checkpoint import StopRequest, TrainingStopped
from embedra.data import ClickReader, DataError

from ._checkpoints import CheckpointCallback, TrainingCheckpoint
from ._console import console, unknown_length
from ._measures import Measures, evaluate
from ._recorder import Recorder


class MeasuringError(Exception):
    """Rows could not be measured on; what was trained is not affected."""


@dataclass
class Trainer:
    """Trains a compiled model on a file.

    Args:
        model: The model.
        reader: The file of training rows.
        validation: The file to choose the best epoch by; `None` to set apart
            `held_out` of the training rows.
        checkpoint: Where the state is kept.
        saving: Whether to save the state as well, not only the best epoch.
        batch_size: Rows of a batch.
        seed: Seed of the order of the rows.
        held_out: Share of the training rows set apart; 0 for none.
        save_every: Steps between two saves within an epoch; 0 for none.
        stop: Looked at after each batch.

    Attributes:
        ids: Ids trained on, as far as the time was taken.
        seconds: What that took.
    """

    model: keras.Model
    reader: ClickReader
    validation: ClickReader | None
    checkpoint: TrainingCheckpoint
    saving: bool
    batch_size: int
    seed: int
    held_out: float
    save_every: int
    stop: StopRequest
    ids: int = 0
    seconds: float = 0.0

    def run(self, epochs: int, patience: int) -> None:
        """Trains to the end of the last epoch, or until it stops helping.

        Ends with the weights of the best epoch in the model.

        Args:
            epochs: The number of epochs, those before a resume included.
            patience: Epochs without a better AUC before the training ends
                early; 0 for never.

        Raises:
            TrainingStopped: If asked to stop; the state is saved.
            MeasuringError: If an epoch cannot be measured; the state is saved.
                The model has the weights of the best epoch before, or else
                the latest ones.
            DataError: If the training rows cannot be read.
        """
        epoch, step = self.checkpoint.place
        try:
            self._choose(epoch, step)
            while epoch < epochs and not self._exhausted(epoch, patience):
                self._fit(epoch, epochs, step)
                epoch, step = epoch + 1, 0
                self._choose(epoch, step)
        except MeasuringError:
            self.checkpoint.load_best()
            raise
        self.checkpoint.load_best()

    def _choose(self, epoch: int, step: int) -> None:
        """Measures the epoch just done, keeps the best weights, and saves."""
        if step > 0 or epoch <= self.checkpoint.measured:
            return
        try:
            measured = self.validate()
        except (MeasuringError, TrainingStopped):
            # To be measured when the training goes on.
            self._save(epoch)
            raise
        auc = None if measured is None else measured.auc
        better = self.checkpoint.keep_best(epoch, auc)
        if measured is not None:
            mark = " (best so far)" if better else ""
            console.print(
                f"  epoch {epoch}: validation AUC {measured.auc:.4f}, "
                f"log loss {measured.log_loss:.4f}{mark}"
            )
        self._save(epoch)

    def _save(self, epoch: int) -> None:
        if self.saving:
            self.checkpoint.save(epoch, 0)

    def validate(self) -> Measures | None:
        """Measures the model on the rows it is chosen by, if any.

        Raises:
            MeasuringError: If they cannot be read.
            TrainingStopped: If asked to stop.
        """
        if self.validation is not None:
            return self.measure(self.validation)
        if not self.held_out:
            return None
        data = self.reader.dataset(
            self.batch_size, part="held_out", held_out=self.held_out
        )
        return self._evaluate(self.reader, data)

    def measure(self, reader: ClickReader) -> Measures:
        """Measures the model on a file.

        Raises:
            MeasuringError: If it cannot be read.
            TrainingStopped: If asked to stop.
        """
        return self._evaluate(reader, reader.dataset(self.batch_size))

    def _evaluate(self, reader: ClickReader, data: tf.data.Dataset) -> Measures:
        try:
            return evaluate(self.model, data, self.stop.check)
        except tf.errors.OpError as error:
            if reader.failure is not None:
                raise MeasuringError(str(reader.failure)) from error
            raise
        except DataError as error:
            raise MeasuringError(str(error)) from error

    def _exhausted(self, epoch: int, patience: int) -> bool:
        best_epoch, _ = self.checkpoint.best
        return bool(patience and best_epoch and epoch - best_epoch >= patience)

    def _fit(self, epoch: int, epochs: int, step: int) -> None:
        recorder = Recorder(
            f"epoch {epoch + 1}/{epochs}",
            self.batch_size * len(self.reader.columns.categorical),
            every=20,
        )
        data = self.reader.dataset(
            self.batch_size,
            seed=(self.seed, epoch),
            part="train" if self._sets_apart else "all",
            held_out=self.held_out,
            skip=step,
        )
        saver = CheckpointCallback(
            self.checkpoint if self.saving else None,
            self.stop,
            epoch,
            step,
            self.save_every,
        )
        try:
            with recorder.callback(step) as recording, unknown_length():
                self.model.fit(
                    data,
                    initial_epoch=epoch,
                    epochs=epoch + 1,
                    shuffle=False,
                    verbose=0,
                    callbacks=[recording, saver],
                )
        except tf.errors.OpError as error:
            if self.reader.failure is not None:
                raise self.reader.failure from error
            raise
        if not recorder.points and not step:
            msg = (
                f"{self.reader.path}: no row to train on: all "
                f"{self.reader.report.rows} usable rows are set apart to "
                "measure on. Add rows, or give --held-out 0."
            )
            raise DataError(msg)
        self.ids += recorder.ids
        self.seconds += recorder.seconds

    @property
    def _sets_apart(self) -> bool:
        return self.validation is None and self.held_out > 0
