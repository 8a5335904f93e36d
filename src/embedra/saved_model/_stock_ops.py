"""What a model that is exported with stock ops consists of, and may not."""

from typing import Any

import tensorflow as tf


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
