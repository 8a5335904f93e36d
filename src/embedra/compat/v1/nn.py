"""`tensorflow.compat.v1.nn`, whose lookups know of tables that grow.

>>> import embedra.compat.v1 as tf
>>> from embedra.dynamic_embedding import embedding_variable
>>> user = embedding_variable.EmbeddingVariable("user", 2, initializer=0.5)
>>> tf.nn.embedding_lookup(user, [7, 8]).numpy().tolist()
[[0.5, 0.5], [0.5, 0.5]]
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as _tf

from embedra import dynamic_embedding as _de
from embedra.compat._names import names_of as _names_of
from embedra.dynamic_embedding import embedding_variable as _ev


def _knowing_of_tables(name: str) -> Callable[..., Any]:
    """Makes a lookup of TensorFlow's that takes tables too.

    Args:
        name: Name of the function.
    """
    theirs = getattr(_tf.compat.v1.nn, name)

    @functools.wraps(theirs)
    def look_up(params: Any, *args: Any, **kwargs: Any) -> Any:
        table = params
        if isinstance(params, list | tuple) and len(params) == 1:
            table = params[0]
        if isinstance(table, _ev.EmbeddingVariable):
            return getattr(_ev, name)(table, *args, **kwargs)
        if isinstance(table, _de.Variable | _de.TrainableWrapper):
            return getattr(_de, name)(table, *args, **kwargs)
        return theirs(params, *args, **kwargs)

    return look_up


embedding_lookup = _knowing_of_tables("embedding_lookup")
embedding_lookup_sparse = _knowing_of_tables("embedding_lookup_sparse")
safe_embedding_lookup_sparse = _knowing_of_tables(
    "safe_embedding_lookup_sparse"
)

__getattr__, __dir__ = _names_of(__name__, (), _tf.compat.v1.nn)
