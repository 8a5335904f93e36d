"""Embedding variables: tables under the names of DeepRec."""

from ._by_name import (
    get_embedding_variable as get_embedding_variable,
    variable_of_name as variable_of_name,
)
from ._options import (
    CBFFilter as CBFFilter,
    CounterFilter as CounterFilter,
    EmbeddingVariableOption as EmbeddingVariableOption,
    GlobalStepEvict as GlobalStepEvict,
    InitializerOption as InitializerOption,
    L2WeightEvict as L2WeightEvict,
    StorageOption as StorageOption,
    StorageType as StorageType,
)
from ._variable import EmbeddingVariable as EmbeddingVariable
