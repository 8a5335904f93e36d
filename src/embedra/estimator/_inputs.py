"""Calls input functions, and turns what they return into tensors."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from embedra.distribute import graph_communicator, lasting_batches

from ._batches_ahead import BatchesAhead, read_ahead
from ._modes import ModeKeys


_BY_NAME = ("mode", "params", "config")


class Inputs(NamedTuple):
    """What an input function gives, in a graph.

    Attributes:
        features: What the model sees.
        labels: What it is to learn, or None.
        hooks: Hooks that the session needs.
        ahead: Batches that are read before their steps, where a job trains on
            a dataset; else None.
    """

    features: Any
    labels: Any
    hooks: tuple[Any, ...]
    ahead: BatchesAhead | None


def checked_input_fn(input_fn: Any, argument: str = "input_fn") -> Any:
    """Returns an input function, or raises TypeError.

    Args:
        input_fn: What is called for input.
        argument: What the caller knows it by.
    """
    if not callable(input_fn):
        msg = (
            f"`{argument}` must be a function that returns a tf.data.Dataset, "
            f"(features, labels) or features. Received: {input_fn!r}."
        )
        raise TypeError(msg)
    return input_fn


def inputs_of(
    input_fn: Callable[..., Any], mode: str, params: Any, config: Any
) -> Inputs:
    """Calls an input function in the graph that is current.

    Args:
        input_fn: Takes any of `mode`, `params` and `config` by these names.
        mode: One of `ModeKeys`.
        params: Hyper-parameters.
        config: A `RunConfig`.

    Returns:
        Tensors, and what makes them flow.

    Raises:
        ValueError: If it returns something that is no input.
    """
    given = {"mode": mode, "params": params, "config": config}
    names = inspect.signature(input_fn).parameters
    taken = {name: given[name] for name in _BY_NAME if name in names}
    result = input_fn(**taken)
    hooks: tuple[Any, ...] = ()
    ahead = None
    if isinstance(result, tf.data.Dataset):
        ranks = graph_communicator() if mode == ModeKeys.TRAIN else None
        _check_graph(result)
        if ranks is not None:
            result = lasting_batches(result)
        iterator = tf.compat.v1.data.make_initializable_iterator(result)
        hooks = (_InitializerHook(iterator.initializer),)
        result = iterator.get_next()
        if ranks is not None:
            result, ahead = read_ahead(result, ranks.size)
    if isinstance(result, list | tuple):
        if len(result) != 2:
            msg = (
                "An input function must give features, or a pair of features "
                f"and labels. Received: {len(result)} values. Put features "
                "into a dict."
            )
            raise ValueError(msg)
        features, labels = result
        return Inputs(features, labels, hooks, ahead)
    if result is None or isinstance(result, str | Iterator):
        msg = (
            "An input function must return a tf.data.Dataset, or tensors: "
            "features, or features and labels; of an iterator, what "
            f"`get_next()` gives. Received: {result!r}."
        )
        raise ValueError(msg)
    return Inputs(result, None, hooks, ahead)


def _check_graph(dataset: Any) -> None:
    if hasattr(tf.data.experimental.to_variant(dataset), "numpy"):
        msg = (
            "The dataset was made before the input function was called, and "
            "is not part of the estimator's graph. Make it in the input "
            "function: `lambda: tf.data.Dataset....`."
        )
        raise ValueError(msg)


class _InitializerHook(tf.compat.v1.train.SessionRunHook):
    """Starts a dataset after all tables that it may look up are filled.

    Args:
        initializer: The op that does.
    """

    def __init__(self, initializer: Any) -> None:
        self._initializer = initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        session.run(self._initializer)
