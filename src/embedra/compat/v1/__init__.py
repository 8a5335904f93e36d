"""`tensorflow.compat.v1`, with what TensorFlow lacks of it today.

In a program that was written for TensorFlow 1, one line changes:

    >>> import embedra.compat.v1 as tf
    >>> tf.train.GradientDescentOptimizer(0.5).get_name()
    'GradientDescent'

All names are those of `tensorflow.compat.v1`, except that `data`, `estimator`,
`feature_column`, `keras`, `nn` and `train` are modules of this package, which
come first and in turn have all of TensorFlow's names beside their own.
Embedding variables and their options are here under the names of DeepRec.
TensorFlow itself is left as it is: its behaviour is that of TensorFlow 2 until
the program changes it, with `tf.disable_eager_execution()` for one.
"""

import pkgutil as _pkgutil

import tensorflow.compat.v1 as _theirs

from embedra.compat._names import names_of as _names_of
from embedra.dynamic_embedding.embedding_variable import (
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


__getattr__, __dir__ = _names_of(
    __name__,
    {one.name for one in _pkgutil.iter_modules(__path__)},
    _theirs,
)
