"""Dynamic embeddings under the names of TensorFlow Recommenders-Addons.

    import embedra.dynamic_embedding as de

A program that was written for `tensorflow_recommenders_addons` needs this
import and no other change; docs/migrate-from-tfra.md lists all names.
"""

from . import (
    _gone,
    data_flow as data_flow,
    keras as keras,
    math as math,
    ragged_embedding_ops as ragged_embedding_ops,
    shadow_ops as shadow_ops,
    train as train,
)
from ._creators import (
    CuckooHashTableConfig as CuckooHashTableConfig,
    CuckooHashTableCreator as CuckooHashTableCreator,
    HkvEvictStrategy as HkvEvictStrategy,
    HkvHashTableConfig as HkvHashTableConfig,
    HkvHashTableCreator as HkvHashTableCreator,
    KVCreator as KVCreator,
    RedisTableConfig as RedisTableConfig,
    RedisTableCreator as RedisTableCreator,
)
from ._file_system_saver import FileSystemSaver as FileSystemSaver
from ._get_variable import (
    delete_variable as delete_variable,
    get_variable as get_variable,
)
from ._lookup import (
    embedding_lookup as embedding_lookup,
    embedding_lookup_unique as embedding_lookup_unique,
)
from ._mode import (
    ModelMode as ModelMode,
    enable_inference_mode as enable_inference_mode,
    enable_train_mode as enable_train_mode,
    get_model_mode as get_model_mode,
)
from ._optimizer import (
    DynamicEmbeddingOptimizer as DynamicEmbeddingOptimizer,
    SlotOfVariable as SlotOfVariable,
    create_slots as create_slots,
)
from ._restrict import (
    FrequencyRestrictPolicy as FrequencyRestrictPolicy,
    RestrictPolicy as RestrictPolicy,
    TimestampRestrictPolicy as TimestampRestrictPolicy,
)
from ._shards import default_partition_fn as default_partition_fn
from ._sparse_lookup import (
    embedding_lookup_sparse as embedding_lookup_sparse,
    safe_embedding_lookup_sparse as safe_embedding_lookup_sparse,
)
from ._trainable import (
    TrainableWrapper as TrainableWrapper,
    trainable_wrapper_filter as trainable_wrapper_filter,
)
from ._variable import Variable as Variable
from ._warm_start import (
    WarmStartHook as WarmStartHook,
    warm_start as warm_start,
)


# For names of TFRA's that are not here.
__getattr__ = _gone.missing
