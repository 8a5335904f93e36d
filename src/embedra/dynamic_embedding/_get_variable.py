"""get_variable: variables by name."""

from typing import Any

import tensorflow as tf

from ._sharing import current_graph
from ._variable import Variable


_COLLECTION = "embedra_dynamic_embedding_variables"

# Variables made outside of TF1 graphs live until they are deleted: a function
# may ask for one by name at each step, and hold none.
_EAGER: dict[str, Variable] = {}


def get_variable(name: str, *args: Any, **kwargs: Any) -> Variable:
    """Returns the variable of a name, making it the first time.

    Names live in the TF1 graph and variable scope, if there are any, or else in
    the process.

    Args:
        name: Name of the variable.
        *args: Those of `de.Variable`.
        **kwargs: Those of `de.Variable`.

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
    scope = tf.compat.v1.get_variable_scope().name
    full_name = f"{scope}/{name}" if scope else name
    variables = _variables()
    found = variables.get(full_name)
    if found is None:
        found = Variable(*args, **{**kwargs, "name": full_name})
        variables[full_name] = found
        return found
    _check_same(found, args, kwargs)
    return found


def delete_variable(name: str) -> None:
    """Forgets a variable that `get_variable` made.

    Its memory is given back once nothing else holds it.

    Args:
        name: Name of the variable, with its scope.

    Raises:
        ValueError: If there is none.
    """
    if _variables().pop(name, None) is None:
        msg = (
            f"There is no variable {name!r} to delete. There are: "
            f"{sorted(_variables())}."
        )
        raise ValueError(msg)


def _variables() -> dict[str, Variable]:
    graph = current_graph()
    if graph is None:
        return _EAGER
    collection = graph.get_collection_ref(_COLLECTION)
    if not collection:
        collection.append({})
    variables: dict[str, Variable] = collection[0]
    return variables


def _check_same(found: Variable, args: Any, kwargs: Any) -> None:
    asked = Variable.described(*args, **kwargs)
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
