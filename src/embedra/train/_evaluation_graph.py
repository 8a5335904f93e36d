"""Adds the graph of an evaluation to the graph of a training."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from embedra import scopes

from ._evaluation_spec import EvaluationSpec, as_evaluation_spec


_V1: Any = tf.compat.v1
_KEYS: Any = _V1.GraphKeys

# What the model consists of: an evaluation must not bring its own.
_MODEL = (_KEYS.GLOBAL_VARIABLES, _KEYS.SAVEABLE_OBJECTS)
# What training would run of its own accord.
_OF_TRAINING = (
    _KEYS.TRAIN_OP,
    _KEYS.SUMMARIES,
    _KEYS.UPDATE_OPS,
    _KEYS.LOSSES,
    _KEYS.REGULARIZATION_LOSSES,
)


class EvaluationGraph(NamedTuple):
    """The part of a graph that evaluates.

    Attributes:
        spec: What the evaluation function returned.
        reset: Empties metrics, and takes data from their start, if their
            iterators can be initialized.
        global_step: The step that training is at.
    """

    spec: EvaluationSpec
    reset: tf.Operation
    global_step: Any


def build(function: Callable[[], Any]) -> EvaluationGraph:
    """Adds what an evaluation function builds to the graph that is current.

    Variables that `tf.compat.v1.get_variable` makes within are those of the
    same name in training, and lookups create no rows.

    Args:
        function: The evaluation function.

    Returns:
        What it has built.

    Raises:
        TypeError: If it returns neither a spec nor metrics.
        ValueError: If it makes variables that training does not have.
    """
    graph = _V1.get_default_graph()
    watched = (
        *_MODEL,
        *_OF_TRAINING,
        _KEYS.LOCAL_VARIABLES,
        _KEYS.TABLE_INITIALIZERS,
    )
    before = {name: graph.get_collection(name) for name in watched}
    operations = {operation.name for operation in graph.get_operations()}
    with (
        _V1.variable_scope(_V1.get_variable_scope(), reuse=_V1.AUTO_REUSE),
        scopes.scope(mode="eval"),
        tf.name_scope("eval"),
    ):
        spec = as_evaluation_spec(function())
    added = {
        name: _without(graph.get_collection(name), known)
        for name, known in before.items()
    }
    _check_no_model(added)
    for name in _OF_TRAINING:
        graph.get_collection_ref(name)[:] = before[name]
    global_step = _V1.train.get_or_create_global_step()
    iterators = [
        operation
        for operation in graph.get_operations()
        if operation.type == "MakeIterator" and operation.name not in operations
    ]
    reset = tf.group(
        *iterators,
        *added[_KEYS.TABLE_INITIALIZERS],
        _V1.variables_initializer(added[_KEYS.LOCAL_VARIABLES]),
    )
    return EvaluationGraph(spec, reset, global_step)


def _without(found: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    ids = {id(one) for one in known}
    return [one for one in found if id(one) not in ids]


def _check_no_model(added: dict[str, list[Any]]) -> None:
    added_to_model = [one for key in _MODEL for one in added[key]]
    # Tables have a key, as checkpoints call them.
    names = [getattr(one, "key", one.name) for one in added_to_model]
    if names:
        msg = (
            "The evaluation function made variables or tables that training "
            f"does not have, and that nothing would train: {sorted(names)}. "
            "Use the layers and tables of training, or the names of its "
            "variables in tf.compat.v1.get_variable."
        )
        raise ValueError(msg)
