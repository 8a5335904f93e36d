"""`tensorflow.compat.v1.nn`, whose lookups know of tables that grow.

>>> import embedra.compat.v1 as tf
>>> from embedra.dynamic_embedding import embedding_variable
>>> user = embedding_variable.EmbeddingVariable("user", 2, initializer=0.5)
>>> tf.nn.embedding_lookup(user, [7, 8]).numpy().tolist()
[[0.5, 0.5], [0.5, 0.5]]
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as _tf

from embedra import dynamic_embedding as _de
from embedra.compat._names import names_of as _names_of
from embedra.dynamic_embedding import embedding_variable as _ev


_TABLES = (_ev.EmbeddingVariable, _de.Variable, _de.TrainableWrapper)


def _knowing_of_tables(name: str) -> Callable[..., Any]:
    """Makes a lookup of TensorFlow's that takes tables too.

    Args:
        name: Name of the function.
    """
    theirs = getattr(_tf.compat.v1.nn, name)
    # What TensorFlow calls the first argument: one of them is another's.
    first = next(iter(inspect.signature(theirs).parameters))

    @functools.wraps(theirs)
    def look_up(*args: Any, **kwargs: Any) -> Any:
        params = args[0] if args else kwargs.get(first)
        others = [params] if not isinstance(params, list | tuple) else params
        tables = [one for one in others if isinstance(one, _TABLES)]
        if not tables:
            return theirs(*args, **kwargs)
        if len(others) > 1:
            msg = (
                f"{name} takes one table: tables are not made of parts. "
                f"Received: {params!r}."
            )
            raise TypeError(msg)
        kwargs.pop(first, None)
        table = tables[0]
        lib = _ev if isinstance(table, _ev.EmbeddingVariable) else _de
        return getattr(lib, name)(table, *args[1:], **kwargs)

    return look_up


embedding_lookup = _knowing_of_tables("embedding_lookup")
embedding_lookup_sparse = _knowing_of_tables("embedding_lookup_sparse")
safe_embedding_lookup_sparse = _knowing_of_tables(
    "safe_embedding_lookup_sparse"
)

__getattr__, __dir__ = _names_of(__name__, (), _tf.compat.v1.nn)
