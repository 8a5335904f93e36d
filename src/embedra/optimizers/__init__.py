"""Optimizers: how tables are trained."""

from ._apply import apply_gradients as apply_gradients
from ._clip import set_clip_limits as set_clip_limits
from ._from_v1 import from_v1 as from_v1
from ._outside import outside_functions as outside_functions
from ._ranks import weigh_batches as weigh_batches
from ._rowwise_adagrad import RowwiseAdagrad as RowwiseAdagrad
from ._slot_initial import constant_initial as constant_initial
from ._support import UnsupportedOptimizerError as UnsupportedOptimizerError
from ._tf_keras_saving import register_in_tf_keras as register_in_tf_keras
from ._trained_tables import (
    TableGradient as TableGradient,
    split_tables as split_tables,
    table_variable_of as table_variable_of,
)
from ._v1 import for_tables as for_tables
from ._variable import TableVariable as TableVariable
from ._wrapper import (
    DynamicEmbeddingOptimizer as DynamicEmbeddingOptimizer,
    TableOptimizer as TableOptimizer,
)
