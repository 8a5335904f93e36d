"""TrainingState: all that a training needs to go on exactly where it was."""

import math
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from embedra.checkpoint import (
    VARIABLE_NAMES,
    CheckpointFolder,
    MismatchError,
    SavedObjects,
    VariableNames,
    load,
)
from embedra.distribute import job_communicator, together

from ._rank_values import RankValues


_OF_RANKS = "of_ranks"


class Place(NamedTuple):
    """How far a training is.

    Attributes:
        epoch: Whole epochs done.
        step: Steps done in the one that runs.
    """

    epoch: int
    step: int


def place_of(prefix: str) -> Place:
    """Reads how far the training was that wrote a checkpoint.

    Args:
        prefix: Prefix of the checkpoint.

    Returns:
        The place; the beginning if the checkpoint does not tell.
    """
    reader: Any = tf.train.load_checkpoint(prefix)
    keys = [f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in Place._fields]
    return Place(
        *(
            int(reader.get_tensor(key)) if reader.has_tensor(key) else 0
            for key in keys
        )
    )


class TrainingState:
    """A model, its optimizer, and how far its training is.

    It is written as `tf.train.Checkpoint(model=model, optimizer=optimizer)`
    would, with more beside it. In a job, all ranks write and restore it.

    Args:
        model: A model; built, and so is its optimizer.
        monitored: Name of the log that the best epoch is chosen by.
    """

    def __init__(self, model: keras.Model, monitored: str) -> None:
        self._model = model
        self._monitored = monitored
        self._epoch = tf.Variable(0, dtype=tf.int64)
        self._step = tf.Variable(0, dtype=tf.int64)
        self._best = tf.Variable(math.nan, dtype=tf.float64)
        self._best_name = tf.Variable(monitored, dtype=tf.string)
        self._communicator = job_communicator()
        self._of_ranks = RankValues(model, self._communicator)
        more: dict[str, Any] = {VARIABLE_NAMES: VariableNames(model)}
        if self._communicator:
            more[_OF_RANKS] = self._of_ranks.saved
        self._checkpoint = tf.train.Checkpoint(
            **more,
            model=model,
            optimizer=model.optimizer,
            # Keras keeps the random state of dropout out of checkpoints.
            states=[_inner(v) for v in model.non_trainable_variables],
            metrics=[_inner(v) for v in model.metrics_variables],
            epoch=self._epoch,
            step=self._step,
            best=self._best,
            best_name=self._best_name,
        )

    @property
    def best(self) -> float:
        """The best value so far; NaN for none."""
        return float(self._best)

    @best.setter
    def best(self, value: float) -> None:
        self._best.assign(value)

    def save(self, folder: CheckpointFolder, place: Place) -> str:
        """Writes the state.

        Args:
            folder: Where to.
            place: How far the training is.

        Returns:
            Prefix of the checkpoint.
        """
        self._epoch.assign(place.epoch)
        self._step.assign(place.step)
        self._best_name.assign(self._monitored)
        self._of_ranks.gather()
        return folder.save(self._checkpoint)

    def restore(self, prefix: str) -> None:
        """Goes to a state that was saved.

        Args:
            prefix: Prefix of the checkpoint.

        Raises:
            MismatchError: If it is not one of this model and optimizer.
            RankError: On all ranks of a job, if one of them failed.
        """
        with together(self._communicator, "restoring", prefix):
            self._restore(prefix)

    def _restore(self, prefix: str) -> None:
        saved = SavedObjects(prefix)
        children = saved.children(0)
        try:
            for name in ("model", "optimizer", "states"):
                if name in children:
                    live = getattr(self._checkpoint, name)
                    # The optimizer is also an attribute of the model.
                    without = ("optimizer",) if name == "model" else ()
                    load(
                        saved,
                        children[name],
                        live,
                        strict=True,
                        without=without,
                    )
        except MismatchError as error:
            msg = (
                f"The training in the folder cannot go on with this model: "
                f"{error}. Give the model and optimizer that it was begun "
                "with, or another checkpoint_dir to begin anew."
            )
            raise MismatchError(msg) from error
        # Other metrics than before start from nothing.
        for name in ("metrics", "best", "best_name"):
            if name in children:
                load(saved, children[name], getattr(self._checkpoint, name))
        saved_of_ranks = f"{_OF_RANKS}/.ATTRIBUTES/VARIABLE_VALUE"
        self._of_ranks.restore(
            list(saved.reader.get_tensor(saved_of_ranks))
            if _OF_RANKS in children
            else []
        )
        name = self._best_name.numpy().decode()
        if name != self._monitored:
            self._best.assign(math.nan)


def _inner(variable: Any) -> tf.Variable:
    return variable.value if hasattr(variable, "value") else variable
