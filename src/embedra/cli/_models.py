"""From options to a compiled model, and a look into its tables."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import keras

from embedra.data import Columns
from embedra.layers import Embedding
from embedra.models import dcn_v2, dlrm
from embedra.optimizers import RowwiseAdagrad


class ModelName(StrEnum):
    """Models that the command can train."""

    DLRM = "dlrm"
    DCN_V2 = "dcn_v2"


class OptimizerName(StrEnum):
    """Optimizers that update tables with a fused native kernel."""

    SGD = "sgd"
    MOMENTUM = "momentum"
    ADAGRAD = "adagrad"
    ROWWISE_ADAGRAD = "rowwise_adagrad"
    ADAM = "adam"
    AMSGRAD = "amsgrad"
    ADAMW = "adamw"
    FTRL = "ftrl"
    RMSPROP = "rmsprop"


_Maker = Callable[[float], keras.optimizers.Optimizer]

# The learning rate where none is given, and the optimizer.
_OPTIMIZERS: dict[OptimizerName, tuple[float, _Maker]] = {
    OptimizerName.SGD: (0.1, keras.optimizers.SGD),
    OptimizerName.MOMENTUM: (
        0.02,
        lambda rate: keras.optimizers.SGD(rate, momentum=0.9),
    ),
    OptimizerName.ADAGRAD: (0.02, keras.optimizers.Adagrad),
    OptimizerName.ROWWISE_ADAGRAD: (0.02, RowwiseAdagrad),
    OptimizerName.ADAM: (0.001, keras.optimizers.Adam),
    OptimizerName.AMSGRAD: (
        0.001,
        lambda rate: keras.optimizers.Adam(rate, amsgrad=True),
    ),
    OptimizerName.ADAMW: (0.001, keras.optimizers.AdamW),
    OptimizerName.FTRL: (0.05, keras.optimizers.Ftrl),
    OptimizerName.RMSPROP: (0.001, keras.optimizers.RMSprop),
}


def make_optimizer(
    name: OptimizerName, learning_rate: float | None
) -> keras.optimizers.Optimizer:
    """An optimizer, with its own learning rate where none is given."""
    default, maker = _OPTIMIZERS[name]
    return maker(default if learning_rate is None else learning_rate)


def make_model(
    name: ModelName,
    columns: Columns,
    optimizer: keras.optimizers.Optimizer,
    *,
    dim: int,
    dropout: float,
) -> keras.Model:
    """Builds and compiles a model for some columns."""
    build: Callable[..., keras.Model] = (
        dlrm if name is ModelName.DLRM else dcn_v2
    )
    model = build(
        columns.numeric, columns.categorical, dim=dim, dropout=dropout
    )
    model.compile(
        optimizer,
        "binary_crossentropy",
        metrics=[keras.metrics.AUC(name="auc")],
    )
    return model


def table_sizes(model: keras.Model) -> dict[str, int]:
    """Number of keys in each table of a model, by feature."""
    features = {tensor.name: name for name, tensor in model.input.items()}
    return {
        features[layer.input.name]: int(layer.table.size())
        for layer in _embeddings(model)
    }


def table_bytes(model: keras.Model) -> int:
    """Bytes of all tables of a model."""
    statistics: list[Any] = [
        layer.table.statistics() for layer in _embeddings(model)
    ]
    return sum(int(one.bytes) for one in statistics)


def _embeddings(model: keras.Model) -> list[Embedding]:
    return [layer for layer in model.layers if isinstance(layer, Embedding)]
