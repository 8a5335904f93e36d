"""Estimator: trains, evaluates, predicts with and exports a model function."""

import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from embedra.distribute import gather_values, graph_communicator
from embedra.train import latest_whole, remove_leftovers

from . import _evaluation, _prediction, _training
from ._checkpoints import chosen_checkpoint, global_step_of
from ._distributed import check_cluster
from ._export_methods import ExportMethods
from ._folder_methods import FolderMethods
from ._graphs import Plan
from ._inputs import checked_input_fn
from ._model_fn import ModelFunction
from ._run_config import RunConfig, checked_config
from ._run_notes import check_seed
from ._spec import EstimatorSpec, checked_hooks, checked_listeners
from ._specs import checked_steps
from ._train_and_evaluate import TrainAndEvaluate
from ._warm_start import WarmStartSettings, checked_warm_start


v1: Any = tf.compat.v1


class Estimator(TrainAndEvaluate, ExportMethods, FolderMethods):
    """Trains, evaluates, predicts with and exports a model function.

    The model function is called for each graph: for training, for evaluation,
    for prediction and for export. All they have in common is the checkpoints
    in `model_dir`, which hold variables and tables (`de.Variable`) with rows,
    slots of optimizers and counters. Lookups create ids in training alone.

    Args:
        model_fn: Builds the model. It takes features first, and any of
            `labels`, `mode`, `params` and `config` by these names; it returns
            an `EstimatorSpec`.
        model_dir: Folder of checkpoints and events. None for that of the
            configuration, or else a temporary one.
        config: A `RunConfig`, or None for the defaults.
        params: Hyper-parameters, handed to the model function. None for an
            empty dict.
        warm_start_from: What training begins with if there is no checkpoint in
            `model_dir`: `WarmStartSettings`, or a checkpoint of which all
            trainable variables and rows are taken.
        train_drop_remainder: Accepted, like the two others: where the data of
            one rank end, those of the others are gone through all the same.
        eval_drop_remainder: Accepted.
        predict_drop_remainder: Accepted.

    Raises:
        TypeError: If an argument is of a wrong kind.
        ValueError: If one is out of range, or does not suit another.

    Example:
        >>> import tensorflow as tf
        >>> def model_fn(features, labels, mode):
        ...     weight = tf.compat.v1.get_variable("weight", ())
        ...     loss = (features * weight - labels) ** 2
        ...     step = tf.compat.v1.train.get_global_step()
        ...     optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.5)
        ...     train_op = optimizer.minimize(loss, step)
        ...     return EstimatorSpec(mode, loss=loss, train_op=train_op)
        >>> estimator = Estimator(model_fn)
        >>> def input_fn():
        ...     return tf.constant(1.0), tf.constant(3.0)
        >>> _ = estimator.train(input_fn, steps=1)
        >>> float(estimator.get_variable_value("weight"))
        3.0
        >>> int(estimator.evaluate(input_fn, steps=1)["global_step"])
        1
    """

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: Any = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
        train_drop_remainder: bool = True,
        eval_drop_remainder: bool = True,
        predict_drop_remainder: bool = True,
    ) -> None:
        del train_drop_remainder, eval_drop_remainder, predict_drop_remainder
        config = checked_config(config, model_dir)
        # As in tf.estimator: a model function may ask for one by name.
        self._params = {} if params is None else copy.deepcopy(params)
        self._warm_start = checked_warm_start(warm_start_from)
        model = ModelFunction(model_fn, self._params, config)
        if config.model_dir is None:
            config = config.replace(model_dir=_temporary_folder())
            model = ModelFunction(model_fn, self._params, config)
            v1.logging.warning(
                "Model folder is temporary: %s", config.model_dir
            )
        self._plan = Plan(model, config, self._params)

    @property
    def config(self) -> RunConfig:
        """How the estimator runs."""
        return self._plan.config

    @property
    def params(self) -> Any:
        """A copy of the hyper-parameters."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """The model function, with parameters and configuration bound.

        It takes features, labels and mode.
        """
        return self._plan.model

    @property
    def warm_start_settings(self) -> WarmStartSettings | None:
        """What training begins with, if there is no checkpoint."""
        return self._warm_start

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> "Estimator":
        """Trains, from the latest checkpoint on if there is one.

        Args:
            input_fn: Gives a `tf.data.Dataset`, a pair of features and labels,
                or features; takes any of `mode`, `params` and `config`.
            hooks: Hooks of the session.
            steps: Number of steps to make. None for the end of the input.
            max_steps: Step at which training ends, counted over all runs. If it
                has been reached already, this says so and returns.
            saving_listeners: `tf.compat.v1.train.CheckpointSaverListener`
                objects, which are told of each checkpoint.

        Returns:
            The estimator.

        Raises:
            TypeError: If an argument is of a wrong kind.
            ValueError: If one is out of range, the input has no batch, or the
                checkpoint is one of another model.
        """
        checked_input_fn(input_fn)
        session_hooks = list(checked_hooks(hooks))
        listeners = checked_listeners(saving_listeners)
        checked_steps(steps, "steps")
        checked_steps(max_steps, "max_steps")
        if steps is not None and max_steps is not None:
            msg = (
                "Training ends by `steps` or by `max_steps`, not both. "
                f"Received: steps={steps}, max_steps={max_steps}."
            )
            raise ValueError(msg)
        check_cluster(self.config)
        latest = latest_whole(self.model_dir)
        if max_steps is not None and latest is not None:
            done = global_step_of(latest)
            if done >= max_steps:
                v1.logging.warning(
                    "Nothing is trained: %s is at step %d, and max_steps is "
                    "%d. Pass a greater max_steps to train on.",
                    latest,
                    done,
                    max_steps,
                )
                return self
        if self.config.is_chief:
            remove_leftovers(self.model_dir)
            check_seed(self.model_dir, self.config.tf_random_seed)
        if steps is not None or max_steps is not None:
            session_hooks.append(v1.train.StopAtStepHook(steps, max_steps))
        first = []
        if self._warm_start is not None and latest is None:
            first.append(self._warm_start.hook())
        _training.train(self._plan, input_fn, session_hooks, listeners, first)
        return self

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: Any = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluates a checkpoint. Nothing is changed by it.

        Args:
            input_fn: Gives the batches; see `train`.
            steps: Number of batches at most. None for all.
            hooks: Hooks of the session.
            checkpoint_path: What is evaluated. None for the latest checkpoint.
            name: Tells several evaluations apart; part of their folder's name.

        Returns:
            Values of the metrics by name, with "loss", the mean over batches,
            and "global_step".

        Raises:
            ValueError: If there is no checkpoint, or it is one of another
                model, or the input has no batch.
        """
        checked_input_fn(input_fn)
        checked_steps(steps, "steps")
        checkpoint = chosen_checkpoint(
            self.model_dir, checkpoint_path, "evaluate"
        )
        return _evaluation.evaluate(
            self._plan,
            input_fn,
            steps,
            checked_hooks(hooks),
            checkpoint,
            self.eval_dir(name),
        )

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Sequence[str] | str | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: Any = None,
        yield_single_examples: bool = True,
        allow_untrained: bool = False,
    ) -> Iterator[Any]:
        """Predicts by a checkpoint. Nothing is changed by it.

        Args:
            input_fn: Gives the batches; see `train`. Labels are not looked at.
            predict_keys: Names of the predictions that are wanted. None for
                all.
            hooks: Hooks of the session.
            checkpoint_path: By what is predicted. None for the latest
                checkpoint.
            yield_single_examples: Whether to yield examples, or batches.
            allow_untrained: Whether to predict by a model as it starts if there
                is no checkpoint.

        Returns:
            Yields predictions: arrays by name, or an array.

        Raises:
            ValueError: If there is no checkpoint. While it yields: if it is one
                of another model, or there are no such predictions.
        """
        checked_input_fn(input_fn)
        checkpoint = None
        if (
            not allow_untrained
            or checkpoint_path is not None
            or self.latest_checkpoint() is not None
        ):
            checkpoint = chosen_checkpoint(
                self.model_dir, checkpoint_path, "predict by"
            )
        return _prediction.predict(
            self._plan,
            input_fn,
            predict_keys,
            checked_hooks(hooks),
            checkpoint,
            single=yield_single_examples,
        )


def _temporary_folder() -> str:
    """Makes a folder, the same for all ranks of a job."""
    ranks = graph_communicator()
    is_first = ranks is None or ranks.rank == 0
    made = tempfile.mkdtemp() if is_first else None
    return str(gather_values(ranks, made, label="temporary folder")[0])
