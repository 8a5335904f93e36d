"""Builds the graph of a model, for one mode."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from embedra.train import Saver

from ._batches_ahead import BatchesAhead
from ._inputs import inputs_of
from ._model_fn import ModelFunction
from ._modes import building
from ._run_config import RunConfig
from ._spec import EstimatorSpec


v1: Any = tf.compat.v1


class Plan(NamedTuple):
    """What graphs of an estimator are built of.

    Attributes:
        model: The model function.
        config: How it runs.
        params: Hyper-parameters, for input functions.
    """

    model: ModelFunction
    config: RunConfig
    params: Any


class Built(NamedTuple):
    """A model in a graph.

    Attributes:
        spec: What the model function returned.
        features: What the model sees.
        hooks: Hooks that its input needs.
        ahead: Batches that are read before their steps, where a job trains on
            a dataset; else None.
        global_step: Counts the steps.
    """

    spec: EstimatorSpec
    features: Any
    hooks: tuple[Any, ...]
    ahead: BatchesAhead | None
    global_step: Any


def build(plan: Plan, input_fn: Callable[..., Any], mode: str) -> Built:
    """Builds a model, with its input, in the graph that is current.

    Args:
        plan: What it is built of.
        input_fn: Gives the input.
        mode: One of `ModeKeys`.

    Returns:
        The model.
    """
    with graph_scope(plan.config, mode):
        global_step = v1.train.get_or_create_global_step()
        inputs = inputs_of(input_fn, mode, plan.params, plan.config)
        labels = None if mode == "infer" else inputs.labels
        spec = plan.model(inputs.features, labels, mode)
    return Built(spec, inputs.features, inputs.hooks, inputs.ahead, global_step)


@contextlib.contextmanager
def graph_scope(config: RunConfig, mode: str) -> Iterator[None]:
    """Sets devices, seeds and what lookups do, for a graph to be built.

    Args:
        config: How the estimator runs.
        mode: One of `ModeKeys`.

    Yields:
        Nothing.
    """
    with (
        v1.device(_device_function(config, mode)),
        building(mode, config.tf_random_seed),
    ):
        yield


def _device_function(config: RunConfig, mode: str) -> Any:
    if config.device_fn is not None:
        return config.device_fn
    if mode != "train" or not config.num_ps_replicas:
        return None
    return v1.train.replica_device_setter(
        ps_tasks=config.num_ps_replicas,
        worker_device=f"/job:{config.task_type}/task:{config.task_id}",
        cluster=config.cluster_spec,
    )


def add_saver(config: RunConfig, scaffold: Any) -> None:
    """Adds the saver that keeps checkpoints as asked, if there is no other.

    Args:
        config: How many to keep.
        scaffold: The one of the model, which may have a saver.
    """
    savers = v1.GraphKeys.SAVERS
    if v1.get_collection(savers):
        return
    if scaffold.saver is not None:
        v1.add_to_collection(savers, scaffold.saver)
        return
    # It has the tables of Keras layers too.
    saver = Saver(
        sharded=True,
        max_to_keep=config.keep_checkpoint_max,
        keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
        defer_build=True,
        # A folder of checkpoints may be moved.
        save_relative_paths=True,
    )
    v1.add_to_collection(savers, saver)


def session_config(config: RunConfig) -> Any:
    """Returns the `ConfigProto` of sessions.

    Args:
        config: May have one.
    """
    if config.session_config is not None:
        return config.session_config
    filters = []
    if config.num_ps_replicas and config.task_type != "ps":
        # A worker needs no other, and can go on when another has ended.
        own = f"/job:{config.task_type}/task:{config.task_id}"
        filters = ["/job:ps", own]
    return v1.ConfigProto(allow_soft_placement=True, device_filters=filters)
