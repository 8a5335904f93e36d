"""Layers of Keras 3 over a `de.Variable`."""

from ._embedding import (
    BasicEmbedding as BasicEmbedding,
    Embedding as Embedding,
    FieldWiseEmbedding as FieldWiseEmbedding,
    HvdAllToAllEmbedding as HvdAllToAllEmbedding,
    SquashedEmbedding as SquashedEmbedding,
)
from ._layer_normalization import LayerNormalization as LayerNormalization
