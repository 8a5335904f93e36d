"""Dynamic embeddings for TensorFlow and Keras.

Importing this package loads the op library and changes nothing in TensorFlow
or Keras. `embedra.models`, `embedra.saved_model`, `embedra.dynamic_embedding`,
`embedra.data`, `embedra.estimator`, `embedra.feature_column`, `embedra.metrics`
and `embedra.train` are imported when asked for, as `embedra.train`, too.
"""

import importlib as _importlib
from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from ._checks import (
    check_keras_backend as _check_keras_backend,
    missing_name as _missing_name,
)
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
        compat as compat,
        data as data,
        distribute as distribute,
        dynamic_embedding as dynamic_embedding,
        estimator as estimator,
        feature_column as feature_column,
        lookup as lookup,
        metrics as metrics,
        models as models,
        saved_model as saved_model,
        train as train,
    )
    from .dynamic_embedding.embedding_variable import (
        CBFFilter as CBFFilter,
        CounterFilter as CounterFilter,
        EmbeddingVariableOption as EmbeddingVariableOption,
        GlobalStepEvict as GlobalStepEvict,
        InitializerOption as InitializerOption,
        L2WeightEvict as L2WeightEvict,
        StorageOption as StorageOption,
        StorageType as StorageType,
        get_embedding_variable as get_embedding_variable,
    )
    from .feature_column import dense_features as dense_features
    from .train import (
        get_session_config as get_session_config,
        wraps_session_config as wraps_session_config,
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

# Names of such modules that are here too.
_NAMES = {
    "dense_features": "feature_column",
    **dict.fromkeys(
        (
            "CBFFilter",
            "CounterFilter",
            "EmbeddingVariableOption",
            "GlobalStepEvict",
            "InitializerOption",
            "L2WeightEvict",
            "StorageOption",
            "StorageType",
            "get_embedding_variable",
        ),
        "dynamic_embedding.embedding_variable",
    ),
    "get_session_config": "train",
    "wraps_session_config": "train",
}

# Names of HybridBackend's that are not here, and what to use instead.
_GONE = {
    "enable_optimization": "graphs need no pass of ours; TensorFlow's are on",
    "disable_optimization": "there is no pass of ours to be switched off",
    "embedding": "rows are in embedra.Table, in the memory of the host",
    "pipeline": "a step takes one batch; read ahead with "
    "`tf.data.Dataset.prefetch`",
}


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _NAMES:
        module = _importlib.import_module(f"{__name__}.{_NAMES[name]}")
        return getattr(module, name)
    page = "docs/migrate-from-hybridbackend.md"
    raise _missing_name(__name__, name, _GONE, page)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_NAMES})
