"""`tf.keras`, in which `Model` is that of Embedra.

It trains as Keras's own does, and has the arguments and methods that
`embedra.keras.Model` adds.
"""

import tensorflow.compat.v1 as _tf

from embedra.compat._names import names_of as _names_of
from embedra.keras import Model as Model


__getattr__, __dir__ = _names_of(__name__, {"models"}, _tf.keras)
