"""`tf.data`, in which iterators give symbolic tensors outside of graphs."""

import tensorflow.compat.v1 as _tf

from embedra.compat._names import names_of as _names_of
from embedra.data import (
    make_initializable_iterator as make_initializable_iterator,
    make_one_shot_iterator as make_one_shot_iterator,
)


__getattr__, __dir__ = _names_of(__name__, (), _tf.data)
