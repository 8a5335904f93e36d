"""EstimatorSpec: what a model function returns."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from ._modes import ModeKeys
from ._outputs import ExportOutput


class _Fields(NamedTuple):
    mode: str
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: dict[str, Any]
    export_outputs: dict[str, ExportOutput] | None
    training_chief_hooks: tuple[Any, ...]
    training_hooks: tuple[Any, ...]
    scaffold: Any
    evaluation_hooks: tuple[Any, ...]
    prediction_hooks: tuple[Any, ...]


class EstimatorSpec(_Fields):
    """Ops and tensors of a model, for one mode.

    Args:
        mode: One of `ModeKeys`.
        predictions: Tensors of predictions, by name or one alone. Required in
            PREDICT.
        loss: The loss, a scalar. Required in TRAIN and EVAL.
        train_op: The op of a training step. Required in TRAIN.
        eval_metric_ops: By name, pairs of a metric's value and the op that
            updates it, or `tf_keras` metrics.
        export_outputs: By the name of a signature, what is served; see
            `embedra.estimator.export`.
        training_chief_hooks: Hooks of training on the chief.
        training_hooks: Hooks of training on each worker.
        scaffold: A `tf.compat.v1.train.Scaffold` with initialisation, summaries
            and a saver, where they are to differ.
        evaluation_hooks: Hooks of evaluation.
        prediction_hooks: Hooks of prediction.

    Raises:
        TypeError: If something is of a wrong kind.
        ValueError: If what the mode requires is missing.

    Example:
        >>> import tensorflow as tf
        >>> with tf.Graph().as_default():
        ...     spec = EstimatorSpec("infer", predictions=tf.constant([0.5]))
        >>> spec.mode, spec.loss
        ('infer', None)
    """

    __slots__ = ()

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Mapping[str, Any] | None = None,
        export_outputs: Mapping[str, ExportOutput] | None = None,
        training_chief_hooks: Sequence[Any] | None = None,
        training_hooks: Sequence[Any] | None = None,
        scaffold: Any = None,
        evaluation_hooks: Sequence[Any] | None = None,
        prediction_hooks: Sequence[Any] | None = None,
    ) -> "EstimatorSpec":
        _check_mode(mode)
        hooks = {
            "training_chief_hooks": training_chief_hooks,
            "training_hooks": training_hooks,
            "evaluation_hooks": evaluation_hooks,
            "prediction_hooks": prediction_hooks,
        }
        checked = {name: checked_hooks(h, name) for name, h in hooks.items()}
        spec = super().__new__(
            cls,
            mode=mode,
            predictions=_checked_predictions(predictions, mode),
            loss=_checked_loss(loss, mode),
            train_op=_checked_train_op(train_op, mode),
            eval_metric_ops=_checked_metrics(eval_metric_ops),
            export_outputs=_checked_outputs(export_outputs),
            scaffold=_checked_scaffold(scaffold),
            **checked,
        )
        _check_one_graph(spec)
        return spec


def _check_mode(mode: str) -> None:
    modes = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
    if mode not in modes:
        msg = f"`mode` must be one of {modes}. Received: mode={mode!r}."
        raise ValueError(msg)


def _check_required(what: str, mode: str, modes: Sequence[str]) -> None:
    if mode in modes:
        msg = (
            f"In mode {mode!r} the model function must return an EstimatorSpec "
            f"with `{what}`. Received: {what}=None."
        )
        raise ValueError(msg)


def _checked_predictions(predictions: Any, mode: str) -> Any:
    if predictions is None:
        _check_required("predictions", mode, [ModeKeys.PREDICT])
        return {}
    named = predictions
    if not isinstance(predictions, Mapping):
        named = {"": predictions}
    for name, value in named.items():
        if not tf.is_tensor(value):
            msg = (
                "`predictions` must be a tensor, or tensors by name. Received: "
                f"{name or 'predictions'}={value!r}."
            )
            raise TypeError(msg)
    return predictions


def _checked_loss(loss: Any, mode: str) -> Any:
    if loss is None:
        _check_required("loss", mode, [ModeKeys.TRAIN, ModeKeys.EVAL])
        return None
    loss = tf.convert_to_tensor(loss)
    if loss.shape.rank is not None and loss.shape.num_elements() != 1:
        msg = (
            "`loss` must be a scalar, such as tf.reduce_mean of the losses of "
            f"the examples. Received: a tensor of shape {loss.shape}."
        )
        raise ValueError(msg)
    return loss if loss.shape.rank == 0 else tf.reshape(loss, ())


def _checked_train_op(train_op: Any, mode: str) -> Any:
    if train_op is None:
        _check_required("train_op", mode, [ModeKeys.TRAIN])
        return None
    if isinstance(train_op, tf.Variable):
        # As assign_add gives it, with the op that assigns.
        train_op = train_op.op
    if not isinstance(train_op, tf.Operation | tf.Tensor):
        msg = (
            "`train_op` must be an operation or a tensor, as "
            "optimizer.minimize(loss, global_step) returns. Received: "
            f"{train_op!r}."
        )
        raise TypeError(msg)
    return train_op


def _checked_metrics(metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    checked = {}
    for name, metric in dict(metrics or {}).items():
        if hasattr(metric, "result") and hasattr(metric, "updates"):
            # A metric of tf_keras, which has been updated in the graph.
            _initialize_with_session(metric.variables)
            metric = (metric.result(), tf.group(*metric.updates))
        if not isinstance(metric, tuple) or len(metric) != 2:
            msg = (
                "`eval_metric_ops` must have pairs of a value and an update "
                "op, as functions of tf.compat.v1.metrics return, or metrics "
                f"of tf_keras that were called. Received: {name}={metric!r}."
            )
            raise TypeError(msg)
        checked[name] = metric
    return checked


def _initialize_with_session(variables: Sequence[Any]) -> None:
    """Has sessions initialise variables that no collection has.

    Args:
        variables: The variables.
    """
    local = tf.compat.v1.local_variables()
    keys = tf.compat.v1.GraphKeys
    for variable in variables:
        if not any(variable is known for known in local):
            for key in (keys.LOCAL_VARIABLES, keys.METRIC_VARIABLES):
                tf.compat.v1.add_to_collection(key, variable)


def _checked_outputs(
    outputs: Mapping[str, Any] | None,
) -> dict[str, ExportOutput] | None:
    if outputs is None:
        return None
    for name, output in outputs.items():
        if not isinstance(output, ExportOutput):
            msg = (
                "`export_outputs` must have PredictOutput, ClassificationOutput"
                " or RegressionOutput by the name of a signature. Received: "
                f"{name}={output!r}."
            )
            raise TypeError(msg)
    return dict(outputs)


def _checked_scaffold(scaffold: Any) -> Any:
    if scaffold is None:
        return tf.compat.v1.train.Scaffold()
    if not isinstance(scaffold, tf.compat.v1.train.Scaffold):
        msg = (
            "`scaffold` must be a tf.compat.v1.train.Scaffold. Received: "
            f"{scaffold!r}."
        )
        raise TypeError(msg)
    return scaffold


def checked_hooks(
    hooks: Sequence[Any] | None, argument: str = "hooks"
) -> tuple[Any, ...]:
    """Returns hooks of sessions, or raises TypeError.

    Args:
        hooks: The hooks, or None.
        argument: What the caller knows them by.
    """
    return checked_objects(hooks, argument, tf.compat.v1.train.SessionRunHook)


def checked_listeners(listeners: Any) -> tuple[Any, ...]:
    """Returns listeners of a saver, or raises TypeError.

    Args:
        listeners: The listeners, or None.
    """
    kind = tf.compat.v1.train.CheckpointSaverListener
    return checked_objects(listeners, "saving_listeners", kind)


def checked_objects(
    objects: Iterable[Any] | None, argument: str, kind: type
) -> tuple[Any, ...]:
    """Returns objects of a class, or raises TypeError.

    Args:
        objects: Several, or None.
        argument: What the caller knows them by.
        kind: The class, one of `tf.compat.v1.train`.
    """
    several = [] if objects is None else objects
    others = [several]
    if isinstance(several, Iterable):
        several = tuple(several)
        others = [one for one in several if not isinstance(one, kind)]
    if others:
        msg = (
            f"`{argument}` must be a list of tf.compat.v1.train."
            f"{kind.__name__} objects. Received: {others[0]!r}."
        )
        raise TypeError(msg)
    return tuple(several)


def _check_one_graph(spec: EstimatorSpec) -> None:
    graph = tf.compat.v1.get_default_graph()
    metrics = spec.eval_metric_ops.values()
    named = {
        "predictions": spec.predictions,
        "loss": spec.loss,
        "train_op": spec.train_op,
        "eval_metric_ops": [part for metric in metrics for part in metric],
    }
    for argument, values in named.items():
        for value in tf.nest.flatten(values):
            if getattr(value, "graph", graph) is not graph:
                msg = (
                    f"`{argument}` has {value!r} of another graph. Build all "
                    "of a model inside of the model function."
                )
                raise ValueError(msg)
