"""Callbacks by TFRA's names, for models of tf_keras."""

from typing import Any

from embedra.dynamic_embedding.keras._job_callbacks import Broadcast, SavedByAll

from ._tf_keras import tf_keras


class DEHvdBroadcastGlobalVariablesCallback(
    Broadcast, tf_keras.callbacks.Callback
):
    """`de.keras.callbacks` has the same, for models of Keras 3."""


class DEHvdModelCheckpoint(SavedByAll, tf_keras.callbacks.ModelCheckpoint):
    """`de.keras.callbacks` has the same, for models of Keras 3.

    To hold tables that can be trained on, `filepath` must end in `.keras`, or
    `save_weights_only` be set and `filepath` not end in `.h5`.
    """


ModelCheckpoint: Any = DEHvdModelCheckpoint
