"""What a model that is exported with stock ops consists of, and may not."""

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from embedra.table import Table


_PYTHON_OPS = ("PyFunc", "PyFuncStateless", "EagerPyFunc")


class StockOpsError(ValueError):
    """A model cannot be exported with TensorFlow's own ops alone."""


def is_nested() -> bool:
    """Whether a `tf.function` is traced that another one calls."""
    graph = tf.compat.v1.get_default_graph()
    functions = 0
    while graph is not None:
        # Branches and loops have graphs of other classes.
        functions += type(graph).__name__ == "FuncGraph"
        graph = getattr(graph, "outer_graph", None)
    return functions > 1


def nested_error(what: str) -> StockOpsError:
    """Says why a `tf.function` inside of a model is not exported.

    TensorFlow would keep its trace, and call it when the model is used later.

    Args:
        what: What it does.

    Returns:
        The error to raise.
    """
    return StockOpsError(
        f"{what} in a tf.function inside of the model, of which TensorFlow "
        "keeps the traces. Leave out that tf.function: what is exported "
        "becomes a graph without it. Or export with native_ops=True."
    )


def check_ops(graph: Any, name: str) -> None:
    """Raises if a graph has ops that are not TensorFlow's.

    Args:
        graph: A `GraphDef`.
        name: Name of the signature, or signatures, that it is of.

    Raises:
        StockOpsError: If it has.
    """
    nodes = [graph.node, *(f.node_def for f in graph.library.function)]
    for node in (node for part in nodes for node in part):
        if node.op.startswith("Embedra"):
            _check_op(node, name)
        if node.op in _PYTHON_OPS:
            msg = (
                f"Signature {name!r} calls Python ({node.op}, {node.name}), "
                "which is not there when the model is served."
            )
            raise StockOpsError(msg)


def _check_op(node: Any, name: str) -> None:
    if "Lookup" in node.op:
        where = f"Signature {name!r} looks up ({node.name})"
        raise nested_error(where)
    msg = (
        f"Signature {name!r} has op {node.op} ({node.name}), which only "
        "Embedra knows. Exported models only look up rows; or export with "
        "native_ops=True."
    )
    raise StockOpsError(msg)


def variables_of(
    signatures: Iterable[Any], stock: Iterable[tf.Module]
) -> list[Any]:
    """Returns the variables that functions read, each once.

    Args:
        signatures: Concrete functions.
        stock: Modules whose variables are left out.
    """
    others = {id(variable) for one in stock for variable in one.variables}
    found = {
        id(variable): variable
        for signature in signatures
        for variable in signature.graph.variables
        if id(variable) not in others
    }
    return list(found.values())


def resources_of(model: Any) -> list[Any]:
    """Returns the hash tables of TensorFlow, and the like, that a model has.

    Args:
        model: A Keras model, a trackable, or any callable.
    """
    if not isinstance(model, tf.Module | keras.Model | keras.layers.Layer):
        return []
    resource = tf.saved_model.experimental.TrackableResource
    return [
        one
        for one in tf.train.TrackableView(model).descendants()
        if isinstance(one, resource) and not isinstance(one, Table)
    ]
