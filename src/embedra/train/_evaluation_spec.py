"""EvaluationSpec: what an evaluation within training runs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf


class EvaluationSpec(NamedTuple):
    """What an evaluation within training runs.

    Attributes:
        name: Its name, in messages.
        hooks: Hooks of its steps, `tf.compat.v1.train.SessionRunHook`.
        update_op: What is run for each batch.
        eval_dict: What is read in the end: tensors by name.
    """

    name: str
    hooks: Sequence[Any] | None
    update_op: Any
    eval_dict: Mapping[str, Any]


def as_evaluation_spec(returned: Any) -> EvaluationSpec:
    """Returns what an evaluation function has returned, as a spec.

    Args:
        returned: A spec; or metrics by name, each a pair of its value and its
            update operation.

    Raises:
        TypeError: If it is something else.
    """
    if isinstance(returned, EvaluationSpec):
        return returned
    if not isinstance(returned, Mapping) or not returned:
        msg = (
            "The evaluation function must return an EvaluationSpec, or a dict "
            "of metrics by name, each a pair of its value and its update "
            "operation, as the functions of embedra.metrics and "
            f"tf.compat.v1.metrics return them. Received: {returned!r}."
        )
        raise TypeError(msg)
    for name, metric in returned.items():
        is_pair = isinstance(metric, tuple | list) and len(metric) == 2
        if not isinstance(name, str) or not is_pair:
            msg = (
                f"Metric {name!r} of the evaluation function must have a "
                "string for a name, and be a pair of its value and its update "
                f"operation. Received: {metric!r}."
            )
            raise TypeError(msg)
    return EvaluationSpec(
        "evaluation",
        None,
        tf.group(*(update for _, update in returned.values())),
        {name: value for name, (value, _) in returned.items()},
    )
