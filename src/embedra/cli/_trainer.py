"""Epochs over a file: fit, measure, keep the best, go on after a stop."""

from __future__ import annotations

from dataclasses import dataclass

import keras
import tensorflow as tf

from embedra.data import ClickReader

from ._checkpoints import CheckpointCallback, StopRequest, TrainingCheckpoint
from ._console import console, unknown_length
from ._measures import Measures, evaluate
from ._recorder import Recorder


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
            DataError: If the data cannot be read.
        """
        epoch, step = self.checkpoint.place
        while epoch < epochs and not self._exhausted(epoch, patience):
            self._fit(epoch, epochs, step)
            epoch, step = epoch + 1, 0
            measured = self.validate()
            if measured is not None:
                better = self.checkpoint.keep_best(epoch, measured.auc)
                mark = " (best so far)" if better else ""
                console.print(
                    f"  epoch {epoch}: validation AUC {measured.auc:.4f}, "
                    f"log loss {measured.log_loss:.4f}{mark}"
                )
            if self.saving:
                self.checkpoint.save(epoch, 0)
        self.checkpoint.load_best()

    def validate(self) -> Measures | None:
        """Measures the model on the rows it is chosen by, if any."""
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
            DataError: If the data cannot be read.
        """
        return self._evaluate(reader, reader.dataset(self.batch_size))

    def _evaluate(self, reader: ClickReader, data: tf.data.Dataset) -> Measures:
        try:
            return evaluate(self.model, data)
        except tf.errors.OpError as error:
            if reader.failure is not None:
                raise reader.failure from error
            raise

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
        self.ids += recorder.ids
        self.seconds += recorder.seconds

    @property
    def _sets_apart(self) -> bool:
        return self.validation is None and self.held_out > 0
