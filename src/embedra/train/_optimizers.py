"""Optimizers of `tf.compat.v1.train`, that know of tables."""

from typing import Any

import tensorflow as tf

from embedra import optimizers


_TRAIN: Any = tf.compat.v1.train

AdadeltaOptimizer = optimizers.for_tables(_TRAIN.AdadeltaOptimizer)
AdagradDAOptimizer = optimizers.for_tables(_TRAIN.AdagradDAOptimizer)
AdagradOptimizer = optimizers.for_tables(_TRAIN.AdagradOptimizer)
AdamOptimizer = optimizers.for_tables(_TRAIN.AdamOptimizer)
FtrlOptimizer = optimizers.for_tables(_TRAIN.FtrlOptimizer)
GradientDescentOptimizer = optimizers.for_tables(
    _TRAIN.GradientDescentOptimizer
)
MomentumOptimizer = optimizers.for_tables(_TRAIN.MomentumOptimizer)
ProximalAdagradOptimizer = optimizers.for_tables(
    _TRAIN.ProximalAdagradOptimizer
)
ProximalGradientDescentOptimizer = optimizers.for_tables(
    _TRAIN.ProximalGradientDescentOptimizer
)
RMSPropOptimizer = optimizers.for_tables(_TRAIN.RMSPropOptimizer)
