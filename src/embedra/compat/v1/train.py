"""`tensorflow.compat.v1.train`, whose optimizers know of tables.

>>> import embedra.compat.v1 as tf
>>> optimizer = tf.train.AdamOptimizer(0.1)
>>> import tensorflow
>>> isinstance(optimizer, tensorflow.compat.v1.train.AdamOptimizer)
True
"""

import tensorflow as _tf

from embedra.compat._names import names_of as _names_of
from embedra.train import (
    AdadeltaOptimizer as AdadeltaOptimizer,
    AdagradDAOptimizer as AdagradDAOptimizer,
    AdagradOptimizer as AdagradOptimizer,
    AdamOptimizer as AdamOptimizer,
    FtrlOptimizer as FtrlOptimizer,
    GradientDescentOptimizer as GradientDescentOptimizer,
    MomentumOptimizer as MomentumOptimizer,
    ProximalAdagradOptimizer as ProximalAdagradOptimizer,
    ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer,
    RMSPropOptimizer as RMSPropOptimizer,
)


__getattr__, __dir__ = _names_of(__name__, (), _tf.compat.v1.train)
