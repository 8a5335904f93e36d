"""The layers for models of tf_keras: same names, same arguments."""

from typing import Any

from embedra.dynamic_embedding.keras._all_to_all import AllToAll
from embedra.dynamic_embedding.keras._outputs import (
    PooledExamples,
    PooledFields,
)
from embedra.dynamic_embedding.keras._variable_layer import VariableLayer

from ._tf_keras import tf_keras


_PACKAGE = "embedra.dynamic_embedding.legacy"


@tf_keras.saving.register_keras_serializable(package=_PACKAGE)
class Embedding(VariableLayer, tf_keras.layers.Layer):
    """`de.keras.layers.Embedding` for models of tf_keras.

    Its weight is a `tf.Variable` without elements, which stands for the rows;
    `de.DynamicEmbeddingOptimizer(optimizer)` trains it. `.keras` and
    `.weights.h5` files, `save_weights` in TensorFlow's format and
    `tf.train.Checkpoint` hold the tables. A SavedModel holds them to be served;
    to train on, save it by `de.keras.models.de_save_model`. Files of the older
    `.h5` format hold nothing but plain weights.

    See `de.keras.layers.Embedding` for the arguments.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> layer = de.keras.legacy.layers.Embedding(4)
        >>> layer([[15, 2], [4, 92]]).shape
        TensorShape([2, 2, 4])
        >>> [weight.shape[0] for weight in layer.trainable_weights]
        [0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # What tf_keras sees of the shadow, which is a variable of Keras 3. The
        # layer itself knows whether it is trained.
        self.shadow.trainable = True
        self.embeddings = self.shadow.value


BasicEmbedding = Embedding


@tf_keras.saving.register_keras_serializable(package=_PACKAGE)
class SquashedEmbedding(PooledExamples, Embedding):
    """`de.keras.layers.SquashedEmbedding` for models of tf_keras."""


@tf_keras.saving.register_keras_serializable(package=_PACKAGE)
class FieldWiseEmbedding(PooledFields, Embedding):
    """`de.keras.layers.FieldWiseEmbedding` for models of tf_keras."""


@tf_keras.saving.register_keras_serializable(package=_PACKAGE)
class HvdAllToAllEmbedding(AllToAll, Embedding):
    """`de.keras.layers.HvdAllToAllEmbedding` for models of tf_keras."""


# Of tf_keras the stock layer takes ragged inputs, and any size of the
# dimensions that it does not normalize.
LayerNormalization = tf_keras.layers.LayerNormalization
