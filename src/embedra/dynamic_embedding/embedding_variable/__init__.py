"""Embedding variables: tables under the names of DeepRec."""

from ._by_name import (
    get_embedding_variable as get_embedding_variable,
    variable_of_name as variable_of_name,
)
from ._lookup import (
    embedding_lookup as embedding_lookup,
    embedding_lookup_sparse as embedding_lookup_sparse,
    safe_embedding_lookup_sparse as safe_embedding_lookup_sparse,
)
from ._options import (
    CBFFilter as CBFFilter,
    CounterFilter as CounterFilter,
    EmbeddingVariableOption as EmbeddingVariableOption,
    GlobalStepEvict as GlobalStepEvict,
    InitializerOption as InitializerOption,
    L2WeightEvict as L2WeightEvict,
)
from ._storage import (
    StorageOption as StorageOption,
    StorageType as StorageType,
)
from ._variable import EmbeddingVariable as EmbeddingVariable
