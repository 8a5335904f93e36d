"""WeightMethods: models that take their weights from checkpoints."""

import os
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from embedra._checks import check_flag, checked_path
from embedra.checkpoint import (
    LoadReport,
    find_together,
)

from ._untracked import untracked_layers
from ._weights import PendingWeights, is_keras_file, load_now


# At run time `WeightMethods` is a mixin, so that it comes first in the order.
_Model: Any = keras.Model if TYPE_CHECKING else object


# What checkpoints call the layers that are only in lists and dicts.
_LISTED = "listed_layers"


class WeightMethods(_Model):
    """The part of `ModelMethods` that loads weights."""

    def evaluate(
        self,
        *args: Any,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_path: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Measures, as `keras.Model.evaluate`.

        Args:
            *args: See `keras.Model.evaluate`.
            checkpoint_dir: Load the newest weights and tables of this folder
                into the model first. They stay there.
            checkpoint_path: The same, by a checkpoint's prefix.
            **kwargs: See `keras.Model.evaluate`.

        Returns:
            What Keras returns.
        """
        self._load_from(checkpoint_dir, checkpoint_path)
        return super().evaluate(*args, **kwargs)

    def predict(
        self,
        *args: Any,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_path: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Predicts, as `keras.Model.predict`.

        Args:
            *args: See `keras.Model.predict`.
            checkpoint_dir: Load the newest weights and tables of this folder
                into the model first. They stay there.
            checkpoint_path: The same, by a checkpoint's prefix.
            **kwargs: See `keras.Model.predict`.

        Returns:
            What Keras returns.
        """
        self._load_from(checkpoint_dir, checkpoint_path)
        return super().predict(*args, **kwargs)

    def load_weights(
        self,
        filepath: str | os.PathLike[str],
        scope: str | None = None,
        skip_mismatched: bool = True,
        **kwargs: Any,
    ) -> LoadReport | None:
        """Loads weights and tables.

        A file `.weights.h5`, `.keras` and the like goes to Keras. Anything
        else is a checkpoint of `tf.train.Checkpoint`, or one that
        `tf.compat.v1.train.Saver` wrote in a TF1 graph. In the latter,
        variables and tables are found by their names, which may lack that of
        the model, and parts `/part_0`, `/part_1` and so on are put together.
        The optimizer and the global step are left alone, and so are the slots
        of tables, which start anew. A model that is not built yet loads when
        it is. In a job all ranks load, and each keeps the ids that it owns.

        Args:
            filepath: A folder of checkpoints, of which the newest is taken, a
                checkpoint's prefix, or a file of Keras.
            scope: Load only what has a name that begins with this.
            skip_mismatched: Whether what is not in the checkpoint, or in
                another shape, is passed over, or an error.
            **kwargs: Those of `keras.Model.load_weights`, for its files.

        Returns:
            What was found, and what was skipped and why; None for files of
            Keras.

        Raises:
            FileNotFoundError: If there is no checkpoint.
            MismatchError: If something was to be skipped, and must not be.
            TypeError: If an argument is not one for this kind of file.
        """
        check_flag("skip_mismatched", skip_mismatched)
        _check_arguments(filepath, scope, kwargs)
        if is_keras_file(filepath):
            if self.built and getattr(self, "optimizer", None) is not None:
                # Keras would refuse the optimizer's part of the file.
                self.optimizer.build(self.trainable_variables)
            super().load_weights(filepath, **kwargs)
            return None
        pending = PendingWeights(
            LoadReport(find_together(filepath), pending=True),
            scope,
            not skip_mismatched,
        )
        if self.built:
            load_now(self, pending)
        else:
            self.__dict__["_pending_weights"] = pending
        return pending.report

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model; loads weights that waited for it to be built."""
        outputs = super().__call__(*args, **kwargs)
        pending = self.__dict__.get("_pending_weights")
        if pending is None or not _has_variables(self):
            return outputs
        self.__dict__["_pending_weights"] = None
        load_now(self, pending)
        # In a function they are read when it runs, but this was computed.
        if tf.executing_eagerly():
            return super().__call__(*args, **kwargs)
        return outputs

    def _trackable_children(
        self, save_type: str = "checkpoint", **kwargs: Any
    ) -> dict[str, Any]:
        """Adds layers that TensorFlow does not find, in lists and dicts.

        Without this, Keras 3 models lack them in checkpoints, silently.
        """
        children: dict[str, Any] = super()._trackable_children(
            save_type, **kwargs
        )
        if save_type != "checkpoint" or "_finding_layers" in self.__dict__:
            return children
        self.__dict__["_finding_layers"] = True
        try:
            holder = untracked_layers(
                self, children, self.__dict__.get("_untracked_layers")
            )
        finally:
            del self.__dict__["_finding_layers"]
        self.__dict__["_untracked_layers"] = holder
        return children if holder is None else children | {_LISTED: holder}

    def _load_from(self, directory: Any, path: Any) -> None:
        if directory is not None and path is not None:
            msg = "Give `checkpoint_dir` or `checkpoint_path`, not both."
            raise ValueError(msg)
        found = path if directory is None else directory
        if found is not None:
            name = "checkpoint_path" if directory is None else "checkpoint_dir"
            checked_path(name, found)
            self.load_weights(found, skip_mismatched=False)


def _check_arguments(path: Any, scope: Any, others: dict[str, Any]) -> None:
    """Raises if arguments of `load_weights` would have no effect."""
    if scope is not None and not isinstance(scope, str):
        msg = f"`scope` must be the beginning of names. Received: {scope!r}."
        raise TypeError(msg)
    if not is_keras_file(path):
        without_effect = sorted(others)
        what = "a checkpoint: use `scope` and `skip_mismatched`"
    else:
        without_effect = ["scope"] if scope else []
        what = "a file of Keras: use a checkpoint"
    if without_effect:
        msg = (
            f"`{'`, `'.join(without_effect)}` of `load_weights` "
            f"cannot be given for {os.fspath(path)!r}, which is {what}."
        )
        raise TypeError(msg)


def _has_variables(model: Any) -> bool:
    """Whether all variables are there, not only their shapes."""
    return all(isinstance(v.value, tf.Variable) for v in model.variables)
