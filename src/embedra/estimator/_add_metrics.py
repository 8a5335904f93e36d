"""add_metrics: an estimator with more metrics."""

import inspect
from collections.abc import Callable
from typing import Any

from ._estimator import Estimator
from ._modes import ModeKeys
from ._spec import EstimatorSpec


_BY_NAME = ("features", "labels", "predictions", "config")


def add_metrics(estimator: Estimator, metric_fn: Callable[..., Any]) -> Any:
    """Makes an estimator that also evaluates other metrics.

    Args:
        estimator: The estimator. It is left as it is.
        metric_fn: Gives metrics by name, as `EstimatorSpec` takes them; takes
            any of `features`, `labels`, `predictions` and `config` by these
            names. A metric of a name that is there takes its place.

    Returns:
        An estimator in the same folder.

    Raises:
        ValueError: If the function takes something else.
    """
    names = list(inspect.signature(metric_fn).parameters)
    unknown = [name for name in names if name not in _BY_NAME]
    if unknown:
        msg = (
            f"`metric_fn` takes any of {', '.join(_BY_NAME)}. Received: a "
            f"function of {', '.join(unknown)}."
        )
        raise ValueError(msg)
    model_fn = estimator.model_fn

    def with_metrics(
        features: Any, labels: Any, mode: str, config: Any
    ) -> EstimatorSpec:
        spec = model_fn(features, labels, mode)
        if mode != ModeKeys.EVAL:
            return spec
        given = {
            "features": features,
            "labels": labels,
            "predictions": spec.predictions,
            "config": config,
        }
        metrics = metric_fn(**{name: given[name] for name in names})
        return EstimatorSpec(
            **spec._asdict()
            | {"eval_metric_ops": spec.eval_metric_ops | metrics}
        )

    return Estimator(
        with_metrics,
        config=estimator.config,
        warm_start_from=estimator.warm_start_settings,
    )
