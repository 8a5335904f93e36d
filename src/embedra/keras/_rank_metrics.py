"""Metrics over all ranks."""

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator, times_share


_SUMMED = ("float64", "float32", "float16", "bfloat16", "int32", "int64")


@contextlib.contextmanager
def over_ranks(
    metrics: list[Any], communicator: Communicator
) -> Iterator[None]:
    """Has metrics hold, for a while, what those of all ranks do together.

    The states of a metric are added up over the ranks, unless it has a method
    `over_ranks`, a context like this one. All ranks must call this.

    Args:
        metrics: Of this rank; the same ones on all.
        communicator: Of the ranks.

    Yields:
        When they do. Afterwards they are as before.
    """
    with contextlib.ExitStack() as stack:
        variables = []
        for metric in metrics:
            if hasattr(metric, "over_ranks"):
                stack.enter_context(metric.over_ranks(communicator))
            else:
                variables += metric.variables
        variables = [v for v in variables if _dtype(v) in _SUMMED]
        own = [variable.numpy() for variable in variables]
        if variables:
            sums = communicator.all_reduce(
                [v.value for v in variables], label="metrics"
            )
            _assign(variables, sums)
            stack.callback(_assign, variables, own)
        yield


def same_logs(logs: dict[str, Any], communicator: Communicator) -> None:
    """Has logs be the same on all ranks. All of them must call this.

    Those of steps are. Others, as callbacks may give, are averaged.

    Args:
        logs: Numbers; changed.
        communicator: Of the ranks.
    """
    names = sorted(n for n, v in logs.items() if isinstance(v, int | float))
    own = [float(logs[name]) for name in names]
    if not own:
        return
    smallest, largest, mean = (
        communicator.all_reduce(own, how, label="logs").numpy()
        for how in ("min", "max", "mean")
    )
    for i, name in enumerate(names):
        if smallest[i] != largest[i]:
            logs[name] = float(mean[i])


def logs_of_all(
    logs: dict[str, Any],
    results: dict[str, Any],
    share: float,
    communicator: Communicator,
) -> None:
    """Has logs of a step be those of all ranks. All of them must call this.

    Those of metrics are replaced by their results. Other numbers are averaged
    by the rows of the ranks' batches; what is no number stays.

    Args:
        logs: Of a step; changed.
        results: Of metrics, over all ranks.
        share: The part that this rank's batch is of all examples.
        communicator: Of the ranks.
    """
    logs.update({name: results[name] for name in logs if name in results})
    names = sorted(n for n in logs if n not in results and _is_number(logs[n]))
    if not names:
        return
    values = tf.stack([tf.cast(logs[name], tf.float64) for name in names])
    means = communicator.all_reduce(
        times_share(values, tf.constant(share, tf.float64)),
        label="logs of the last batch",
    )
    logs.update(zip(names, means.numpy().tolist(), strict=True))


def _is_number(value: Any) -> bool:
    if isinstance(value, int | float):
        return True
    dtype = getattr(value, "dtype", None)
    return (
        dtype is not None
        and tuple(value.shape) == ()
        and (tf.as_dtype(dtype).is_floating or tf.as_dtype(dtype).is_integer)
    )


def _dtype(variable: Any) -> str:
    dtype = variable.dtype
    return str(getattr(dtype, "name", dtype))


def _assign(variables: list[Any], values: list[Any]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
