"""ModelMethods: what `embedra.keras.Model` adds to `keras.Model`."""

import os
import sys
from types import GeneratorType
from typing import Any

import keras
import tensorflow as tf

from embedra.checkpoint import TrainingStopped
from embedra.saved_model import Exported, export
from embedra.scopes import context

from ._compiling import check_compile, clipped, keras_optimizer
from ._continued_data import continued
from ._data_methods import DataMethods
from ._fit_callback import FitCallback
from ._fit_settings import (
    FitSettings,
    check_epochs,
    fit_arguments,
    fit_settings,
    with_last,
)
from ._rank_methods import RankMethods
from ._rank_stop import RankStopRequest
from ._saving_methods import SavingMethods
from ._serving_graph import served
from ._summary import table_lines
from ._weight_methods import WeightMethods


class ModelMethods(WeightMethods, DataMethods, SavingMethods, RankMethods):
    """Mixed in before a Keras model class; see `embedra.keras.Model`."""

    def compile(
        self,
        optimizer: Any = "rmsprop",
        *args: Any,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        target_tensors: Any = None,
        **kwargs: Any,
    ) -> None:
        """Configures training.

        Args:
            optimizer: A Keras optimizer, its name or config, or an optimizer
                of `tf.compat.v1.train`, which is translated to a Keras one of
                the same rule; see `embedra.optimizers.from_v1`. It is wrapped
                by `embedra.DynamicEmbeddingOptimizer`.
            *args: Those of `keras.Model.compile`.
            clipnorm: Largest norm of the gradient of a variable, or of a table
                after repeated rows are summed.
            clipvalue: Largest absolute value of an element of a gradient. With
                `clipnorm` it comes after.
            target_tensors: Symbolic targets of a model that is made of the
                tensors of `embedra.data.make_one_shot_iterator`: tensors of
                the same `get_next()`, or what Keras operations make of them.
                `fit` then needs no data.
            **kwargs: Those of `keras.Model.compile`.

        Raises:
            TypeError: If an argument is of another kind.
            ValueError: If a limit is negative, the optimizer clips as well, or
                `target_tensors` are not of the dataset of the inputs.
        """
        check_compile(optimizer, clipnorm, clipvalue, kwargs)
        if optimizer is not None:
            optimizer = clipped(
                keras_optimizer(optimizer, self, kwargs), clipnorm, clipvalue
            )
        super().compile(
            optimizer, *args, target_tensors=target_tensors, **kwargs
        )

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as `get_compile_config` describes.

        Args:
            config: What it gave.
        """
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.optimizer is not None and self.built:
            self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        *args: Any,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        keep_checkpoint_max: int | None = None,
        keep_checkpoint_every_n_hours: float | None = None,
        save_checkpoints_steps: int | None = None,
        monitor: str = "val_loss",
        save_best_only: bool = False,
        mode: str = "auto",
        restore_best_weights: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Trains, as `keras.Model.fit`, with checkpoints.

        With `checkpoint_dir` the state is saved there after each epoch: the
        model with its tables, the optimizer, metrics, random state, and how
        far the training is. Where the folder holds a state, training goes on
        at that epoch and step; batches done are passed over, so data that come
        in the same order again give what an unbroken training gives. `epochs`
        counts those done before. Ctrl-C and SIGTERM end the process after the
        step at hand, with a message, once the state is saved.

        Args:
            x: See `keras.Model.fit`. By default the data of the symbolic
                tensors that the model is made of; see `compile`.
            y: See there.
            batch_size: See there.
            epochs: See there.
            verbose: See there.
            callbacks: See there.
            *args: See there.
            checkpoint_dir: Folder of checkpoints, of `tf.train.Checkpoint`.
            keep_checkpoint_max: How many of the newest to keep, by default 5.
            keep_checkpoint_every_n_hours: One more to keep for each so many
                hours of training.
            save_checkpoints_steps: Save also within epochs, every so many
                steps.
            monitor: The log that the best epoch is chosen by. Callbacks of
                your own may add it.
            save_best_only: Whether the folder holds only epochs that were the
                best when they ended, as many as `keep_checkpoint_max`. The
                latest state, to go on from, is then in its folder `latest`.
            mode: Whether the best is the "min" or the "max"; "auto" takes it
                from the name of the monitor.
            restore_best_weights: Whether the model is, when `fit` returns,
                that of the best epoch that `save_best_only` kept. What is
                exported then is the best. The next `fit` goes on from the
                latest state nevertheless.
            **kwargs: Those of `keras.Model.fit`.

        Returns:
            The `keras.callbacks.History`.

        Raises:
            ValueError: If arguments do not fit together, the monitor is not
                known, or the folder's state is not one of this model.
            SystemExit: After Ctrl-C or SIGTERM.
        """
        given = fit_arguments(args, kwargs)
        x = self._data("fit", x, y)
        given["validation_data"] = self._chosen(given.get("validation_data"))
        if isinstance(x, tf.data.Dataset | GeneratorType):
            # Else Keras warns that it does not shuffle these.
            given.setdefault("shuffle", False)
        if checkpoint_dir is None:
            self._check_no_checkpoints(
                keep_checkpoint_max=keep_checkpoint_max,
                keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
                save_checkpoints_steps=save_checkpoints_steps,
                save_best_only=save_best_only or None,
                restore_best_weights=restore_best_weights or None,
            )
            return super().fit(
                x, y, batch_size, epochs, verbose, callbacks, **given
            )
        settings = fit_settings(
            checkpoint_dir,
            keep_checkpoint_max,
            keep_checkpoint_every_n_hours,
            save_checkpoints_steps,
            monitor,
            mode,
            callbacks,
            best_only=save_best_only,
            restore_best=restore_best_weights,
            validates=given.get("validation_data") is not None
            or bool(given.get("validation_split")),
        )
        check_epochs(epochs, given.get("initial_epoch"))
        given |= {"x": x, "y": y, "batch_size": batch_size, "epochs": epochs}
        given |= {"verbose": verbose, "callbacks": callbacks}
        return self._fit_with_checkpoints(settings, given)

    def _fit_with_checkpoints(
        self, settings: FitSettings, given: dict[str, Any]
    ) -> Any:
        given = self._of_ranks(given)
        stop = self._stop_request()
        callback = FitCallback(settings, stop, given.get("initial_epoch") or 0)
        given["initial_epoch"] = callback.place.epoch
        data = continued(
            given["x"], given.get("steps_per_epoch"), given["initial_epoch"]
        )
        given["x"] = data.data
        given["callbacks"] = with_last(given["callbacks"], callback)
        last = callback.last_prefix
        if last and given["initial_epoch"] >= given["epochs"]:
            # There is nothing to train, but the state is that of the end.
            if self.built:
                self.optimizer.build(self.trainable_variables)
                callback.set_model(self)
                callback.prepare()
            else:
                self.load_weights(last, skip_mismatched=False)
        # Past the tracking of attributes.
        self.__dict__["_first_steps"] = (callback, data)
        try:
            with stop.listening():
                history = super().fit(**given)
            # One that came after the last step was saved.
            if isinstance(stop, RankStopRequest):
                stop.agree_now()
            stop.check()
            callback.restore_best()
            return history
        except TrainingStopped as stopped:
            if context.rank == 0:
                print(callback.message, file=sys.stderr)
            raise SystemExit(128 + stopped.signal_number) from None
        finally:
            self.__dict__.pop("_first_steps", None)
            if callback.plain_step is not None:
                self.train_function = callback.plain_step

    def make_train_function(self, force: bool = False) -> None:
        """Makes what runs a step; see `keras.Model.make_train_function`."""
        super().make_train_function(force)
        first = self.__dict__.pop("_first_steps", None)
        if first is not None:
            callback, data = first
            self.train_function = callback.steps(
                self.train_function, data.pass_over, data.length
            )

    def export_saved_model(
        self,
        export_dir: str | os.PathLike[str],
        fn: Any = None,
        checkpoint_path: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Exported:
        """Writes a SavedModel for serving, in a new folder named by the time.

        Args:
            export_dir: Where that folder is made; it may hold checkpoints.
            fn: Returns what is served, or that itself. By default, the model
                with the inputs that it was built with.

                * As `signature` of `embedra.saved_model.export`: specs of the
                  inputs, a `tf.function`, or several by name.
                * Placeholders of `tf.compat.v1`: the model is called on them.
                * What `tf.compat.v1.saved_model.predict_signature_def` makes
                  of placeholders and of what the function computes of them,
                  or a dict of several.
                * A `ServingInputReceiver`: the model is called on its
                  features.
            checkpoint_path: Load the weights and tables of this checkpoint, or
                of the newest in this folder, into the model first.
            **options: Those of `embedra.saved_model.export`, as `native_ops`.

        Returns:
            Where it was written, in `path`, and with which tables.
        """
        self._load_from(None, checkpoint_path)
        options = {"versioned": True} | options
        signature = served(self, fn)
        return export(self, export_dir, signature=signature, **options)

    def summary(self, *args: Any, **kwargs: Any) -> None:
        """Prints the model, as `keras.Model.summary`, and its tables.

        In a job it may be called on any of the ranks. Of tables that are split
        it has the rows on this rank, and says so.

        Args:
            *args: See `keras.Model.summary`.
            **kwargs: See there.
        """
        super().summary(*args, **kwargs)
        positional = dict(enumerate(args))
        show = kwargs.get("print_fn") or positional.get(2) or print
        for line in table_lines(self):
            show(line)

    def _check_no_checkpoints(self, **arguments: Any) -> None:
        given = [name for name, value in arguments.items() if value is not None]
        if given:
            msg = f"`{'`, `'.join(given)}` of `fit` need `checkpoint_dir`."
            raise ValueError(msg)
