"""Dynamic embeddings for TensorFlow and Keras.

Importing this package loads the op library and changes nothing in TensorFlow
or Keras. `embedra.models`, `embedra.saved_model`, `embedra.dynamic_embedding`,
`embedra.data`, `embedra.estimator`, `embedra.feature_column`, `embedra.metrics`
and `embedra.train` are imported when asked for, as `embedra.train`, too.
"""

import importlib as _importlib
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from ._checks import check_keras_backend as _check_keras_backend
from ._env import quiet_start_up as _quiet_start_up


with _quiet_start_up():
    import keras as _keras

    _check_keras_backend(_keras.config.backend())
    from . import (
        keras as keras,
        layers as layers,
        optimizers as optimizers,
        table as table,
    )
    from .optimizers import (
        DynamicEmbeddingOptimizer as DynamicEmbeddingOptimizer,
    )
    from .scopes import (
        Context as Context,
        context as context,
        embedding_scope as embedding_scope,
        function as function,
        scope as scope,
    )
    from .table import Table as Table
    from .wrapping import wraps as wraps

if _TYPE_CHECKING:
    from . import (
        data as data,
        dynamic_embedding as dynamic_embedding,
        models as models,
        saved_model as saved_model,
    )


__version__ = _version("embedra")

# Imported when they are asked for: they take time, or bring in much.
_MODULES = {
    "compat",
    "data",
    "distribute",
    "dynamic_embedding",
    "estimator",
    "feature_column",
    "lookup",
    "metrics",
    "models",
    "saved_model",
    "train",
}


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg, name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
