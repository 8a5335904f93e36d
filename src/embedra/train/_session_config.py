"""Settings of sessions, for training."""

from typing import Any

import tensorflow as tf

from embedra import scopes


_V1: Any = tf.compat.v1


def get_session_config(*args: Any, **kwargs: Any) -> Any:
    """Makes a `ConfigProto` for training.

    Ops that a device lacks are placed on another, memory of graphics cards is
    taken as it is needed, and XLA is off, since it does not know of tables. In
    a cluster with parameter servers, a worker sees these, the chief and itself.

    Args:
        *args: As for `tf.compat.v1.ConfigProto`.
        **kwargs: As for `tf.compat.v1.ConfigProto`. What is given stays.

    Example:
        >>> get_session_config(intra_op_parallelism_threads=2)
        ... # doctest: +NORMALIZE_WHITESPACE
        intra_op_parallelism_threads: 2
        gpu_options { allow_growth: true }
        allow_soft_placement: true
        graph_options { optimizer_options { global_jit_level: OFF } }
    """
    kwargs.setdefault("allow_soft_placement", True)
    return wraps_session_config(_V1.ConfigProto(*args, **kwargs))


def wraps_session_config(config: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Returns a copy of a `ConfigProto` as `get_session_config` sets it.

    Args:
        config: The `ConfigProto`; None for a new one.
        *args: As for `get_session_config`, if it is new.
        **kwargs: As for `get_session_config`, if it is new.
    """
    if config is None:
        return get_session_config(*args, **kwargs)
    made = _V1.ConfigProto()
    made.CopyFrom(config)
    made.graph_options.optimizer_options.global_jit_level = (
        _V1.OptimizerOptions.OFF
    )
    made.gpu_options.allow_growth = True
    if not made.device_filters:
        made.device_filters.extend(_filters())
    return made


def _filters() -> list[str]:
    context = scopes.context
    cluster = context.cluster_spec
    if cluster is None or "ps" not in cluster.jobs or context.task_type == "ps":
        return []
    own = f"/job:{context.task_type}/task:{context.task_id}"
    chiefs = [f"/job:{job}" for job in ("chief", "master")]
    present = [c for c in chiefs if c.removeprefix("/job:") in cluster.jobs]
    return ["/job:ps", *present, own]
