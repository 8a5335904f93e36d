"""Names of the tables of columns, by variable scope and column."""

import contextlib
import contextvars
import re
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from embedra.dynamic_embedding.embedding_variable import (
    EmbeddingVariable,
    variable_of_name,
)


# Collection of the names that columns of a TF1 graph have got.
_TAKEN = ("embedra", "feature_column_tables")


# Tables by column, for who asks which ones a function used.
_USED: contextvars.ContextVar[dict[str, EmbeddingVariable]] = (
    contextvars.ContextVar("tables of columns")
)


@contextlib.contextmanager
def used_tables() -> Iterator[dict[str, EmbeddingVariable]]:
    """Gives the tables that are used in the block, by name of their column."""
    used: dict[str, EmbeddingVariable] = {}
    token = _USED.set(used)
    try:
        yield used
    finally:
        _USED.reset(token)


def scope_part(column: str) -> str:
    """Returns the name of a column's variable scope.

    Args:
        column: Name of the column, of which scopes do not take all letters.
    """
    return re.sub(r"[^A-Za-z0-9_.\\/-]", "_", column)


def table_in_scope(
    column: str, weights: str, **arguments: Any
) -> EmbeddingVariable:
    """Returns the table of a column in the variable scope that is open.

    Its name is `<scope>/<function>/<column>/<weights>`, as TensorFlow calls
    dense weights, where the function is `input_layer` or `linear_model`; but
    however many calls of the function there are, it has the same name in each.
    As for TensorFlow's variables, another call for the same column gives the
    same table if the scope is reused, and else another one.

    Args:
        column: Name of the column.
        weights: What the table holds.
        **arguments: Those of `variable_of_name`.

    Raises:
        ValueError: If the scope is reused, and arguments are others.
    """
    scope = tf.compat.v1.get_variable_scope()
    inner = re.escape(scope_part(column))
    outer = re.sub(rf"/{inner}(_\d+)?$", "", scope.name)
    base = re.sub(r"_\d+$", "", outer)
    name = _name_in_graph(
        base, f"{column}/{weights}", is_reused=bool(scope.reuse)
    )
    return _noted(column, variable_of_name(name, **arguments))


def table_of_all_scopes(
    column: str, name: str, **arguments: Any
) -> EmbeddingVariable:
    """Returns a table that columns of all variable scopes have in common.

    Args:
        column: Name of the column.
        name: Name of the table.
        **arguments: Those of `variable_of_name`.

    Raises:
        ValueError: If the table was made with other arguments.
    """
    return _noted(column, variable_of_name(name, **arguments))


def _noted(column: str, table: EmbeddingVariable) -> EmbeddingVariable:
    _USED.get({})[column] = table
    return table


def _name_in_graph(base: str, name: str, *, is_reused: bool) -> str:
    with tf.init_scope():
        if tf.executing_eagerly():
            return f"{base}/{name}"
        taken = tf.compat.v1.get_default_graph().get_collection_ref(_TAKEN)
    full, count = f"{base}/{name}", 0
    while full in taken and not is_reused:
        count += 1
        full = f"{base}_{count}/{name}"
    if full not in taken:
        taken.append(full)
    return full
