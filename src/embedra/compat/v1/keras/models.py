"""`tf.keras.models`, in which `Model` is that of Embedra."""

import tensorflow.compat.v1 as _tf

from embedra.compat._names import names_of as _names_of
from embedra.keras import Model as Model


__getattr__, __dir__ = _names_of(__name__, (), _tf.keras.models)
