"""What is served, where a function says it as programs of TensorFlow 1 do."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from embedra._checks import check_takes_nothing


v1: Any = tf.compat.v1
_eager_mode: Any = tf.__internal__.eager_context.eager_mode

_DEFAULT = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
_SignatureDef = type(v1.MetaGraphDef().signature_def[_DEFAULT])
# A constant is an example of what is fed.
_FED = ("Placeholder", "PlaceholderWithDefault", "Const")


class _Ends(NamedTuple):
    """The ends of a graph.

    Attributes:
        inputs: What is fed, by name.
        outputs: A structure of what is fetched.
    """

    inputs: Mapping[str, Any]
    outputs: Any


def served(model: Any, fn: Any) -> Any:
    """Finds out what is to be served.

    A function is called in a graph, where it can make placeholders.

    Args:
        model: The model.
        fn: What `export_saved_model` was given.

    Returns:
        The same for `embedra.saved_model.export`.

    Raises:
        ValueError: If the function's tensors are no placeholders, or have no
            rank.
    """
    if not callable(fn):
        return fn
    check_takes_nothing("fn", fn)
    _, (result, ends) = _in_graph(lambda: _with_ends(model, fn()))
    if ends:
        return {name: _replayed(model, fn, name, ends[name]) for name in ends}
    specs = tf.nest.map_structure(_spec_of_result, result)
    return lambda: specs


def _in_graph(fn: Callable[[], Any]) -> tuple[Any, Any]:
    """Calls a function in a graph of its own, with the values of variables.

    Returns:
        The graph, as a function that can be pruned, and the result.
    """
    results = []
    graph = v1.wrap_function(lambda: results.append(fn()), [])
    return graph, results[0]


def _with_ends(model: Any, result: Any) -> tuple[Any, dict[str, _Ends]]:
    """Finds the ends of a graph that a function has made.

    Args:
        model: The model.
        result: What the function returned.

    Returns:
        The result, and the ends for each signature; none if the result only
        says what is fed.
    """
    if isinstance(result, _SignatureDef):
        result = {_DEFAULT: result}
    if isinstance(result, Mapping) and any(
        isinstance(one, _SignatureDef) for one in result.values()
    ):
        return result, {name: _ends_of(one) for name, one in result.items()}
    if hasattr(result, "features") and hasattr(result, "receiver_tensors"):
        outputs = model(result.features, training=False)
        return result, {_DEFAULT: _Ends(result.receiver_tensors, outputs)}
    return result, {}


def _ends_of(signature: Any) -> _Ends:
    """Looks up in the graph what a `SignatureDef` names."""
    find = v1.saved_model.get_tensor_from_tensor_info
    return _Ends(
        {name: find(info) for name, info in signature.inputs.items()},
        {name: find(info) for name, info in signature.outputs.items()},
    )


def _replayed(model: Any, fn: Any, name: str, ends: _Ends) -> tuple[Any, Any]:
    """Makes a function of a graph that a function makes.

    Args:
        model: The model.
        fn: Makes the graph.
        name: Of the signature.
        ends: Of that graph, when it was made to look at it.

    Returns:
        A function of the inputs by name, and their specs. It makes the graph
        anew, as lookups depend on where they are traced.
    """

    def function(inputs: Mapping[str, Any]) -> Any:
        # Not in the graph that calls it, of which it is no part.
        with tf.Graph().as_default(), _eager_mode():
            graph, (_, made) = _in_graph(lambda: _with_ends(model, fn()))
            pruned = graph.prune(_flat(made[name].inputs), made[name].outputs)
        return pruned(*_flat(inputs))

    specs = {key: _spec(value, key) for key, value in ends.inputs.items()}
    return function, specs


def _flat(structure: Any) -> list[Any]:
    flat: list[Any] = tf.nest.flatten(structure, expand_composites=True)
    return flat


def _spec_of_result(value: Any) -> Any:
    if not tf.is_tensor(value):
        return value
    first = _flat(value)[0]
    if not tf.is_symbolic_tensor(first):
        return value
    if first.op.type not in _FED:
        msg = (
            f"Tensor {first.name!r}, which `fn` returned, is no placeholder. "
            "Return placeholders alone, for the model to be called on them; "
            "or also what you made of them, as "
            "`tf.saved_model.predict_signature_def(inputs, outputs)`."
        )
        raise ValueError(msg)
    return _spec(value, first.op.name.split("/")[0])


def _spec(value: Any, name: str) -> Any:
    spec = tf.type_spec_from_value(value)
    if spec.shape.rank is None:
        msg = (
            f"Placeholder {name!r} may have any shape. Say which, as in "
            "`tf.sparse_placeholder(tf.int64, shape=[None, None])`."
        )
        raise ValueError(msg)
    if isinstance(spec, tf.TensorSpec):
        return tf.TensorSpec(spec.shape, spec.dtype, name)
    return spec
