"""get_variable: variables by name."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ._shards import default_partition_fn
from ._sharing import current_graph
from ._variable import Variable


# No string: collections with such names would be written into meta graphs.
_COLLECTION = ("embedra", "dynamic_embedding_variables")

# Variables made outside of TF1 graphs live until they are deleted: a function
# may ask for one by name at each step, and hold none.
_EAGER: dict[str, Variable] = {}

_MAKING = threading.RLock()


def get_variable(
    name: str,
    key_dtype: Any = tf.int64,
    value_dtype: Any = tf.float32,
    dim: int = 1,
    devices: str | Sequence[str] | None = None,
    partitioner: Callable[..., Any] = default_partition_fn,
    shared_name: str | None = None,
    initializer: Any = None,
    trainable: bool = True,
    checkpoint: bool = True,
    init_size: int = 0,
    kv_creator: Any = None,
    restrict_policy: Any = None,
    bp_v2: bool = False,
    short_file_name: bool = False,
) -> Variable:
    """Returns the variable of a name, making it the first time.

    Names live in the TF1 graph and variable scope, if there are any, or else in
    the process.

    Args:
        name: Name of the variable.
        key_dtype: As of `de.Variable`, like all that follow.
        value_dtype: Dtype of the rows.
        dim: Width of a row.
        devices: Devices that hold a table each.
        partitioner: The device of each id.
        shared_name: Variables of the same shared name are the same tables.
        initializer: What absent ids start from.
        trainable: Whether lookups create absent ids and rows are trained.
        checkpoint: Whether checkpoints save the rows.
        init_size: Ids to make room for up front.
        kv_creator: Kind of table.
        restrict_policy: By which `restrict` chooses what to remove.
        bp_v2: Accepted.
        short_file_name: How files are named.

    Returns:
        The same variable for the same name.

    Raises:
        ValueError: If the variable was made with other arguments.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> first = de.get_variable("doc_user", dim=4)
        >>> de.get_variable("doc_user", dim=4) is first
        True
    """
    arguments = {
        "key_dtype": key_dtype,
        "value_dtype": value_dtype,
        "dim": dim,
        "devices": devices,
        "partitioner": partitioner,
        "shared_name": shared_name,
        "initializer": initializer,
        "trainable": trainable,
        "checkpoint": checkpoint,
        "init_size": init_size,
        "kv_creator": kv_creator,
        "restrict_policy": restrict_policy,
        "bp_v2": bp_v2,
        "short_file_name": short_file_name,
    }
    scope = tf.compat.v1.get_variable_scope().name
    full_name = f"{scope}/{name}" if scope else name
    variables = variables_by_name()
    # Of several threads one makes it.
    with _MAKING:
        found = variables.get(full_name)
        if found is None:
            found = Variable(**arguments, name=full_name)
            variables[full_name] = found
            return found
    _check_same(found, arguments)
    return found


def delete_variable(name: str) -> None:
    """Forgets a variable that `get_variable` made.

    Its memory is given back once nothing else holds it.

    Args:
        name: Name of the variable, with its scope.

    Raises:
        ValueError: If there is none.
    """
    if variables_by_name().pop(name, None) is None:
        msg = (
            f"There is no variable {name!r} to delete. There are: "
            f"{sorted(variables_by_name())}."
        )
        raise ValueError(msg)


def variables_by_name() -> dict[str, Variable]:
    """Returns the variables that `get_variable` made here, by full name."""
    graph = current_graph()
    if graph is None:
        return _EAGER
    collection = graph.get_collection_ref(_COLLECTION)
    if not collection:
        collection.append({})
    variables: dict[str, Variable] = collection[0]
    return variables


def _check_same(found: Variable, arguments: dict[str, Any]) -> None:
    asked = Variable.described(**arguments)
    differing = [
        f"{field}={asked[field]!r} here, {found.arguments[field]!r} there"
        for field in asked
        if asked[field] != found.arguments[field]
    ]
    if differing:
        msg = (
            f"Variable {found.name!r} was made with other arguments: "
            f"{'; '.join(differing)}. Use the same ones, or another name."
        )
        raise ValueError(msg)
