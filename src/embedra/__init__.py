"""Dynamic embeddings for TensorFlow and Keras.

Importing this package loads the op library and changes nothing in TensorFlow
or Keras. `embedra.models`, `embedra.saved_model`, `embedra.dynamic_embedding`,
`embedra.data` and `embedra.cli` are imported when asked for.
"""

from importlib.metadata import version as _version

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
    from .keras import wraps as wraps
    from .optimizers import (
        DynamicEmbeddingOptimizer as DynamicEmbeddingOptimizer,
    )
    from .table import Table as Table


__version__ = _version("embedra")
