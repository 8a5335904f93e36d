"""Callbacks by TFRA's names, for models of Keras 3."""

from typing import Any

import keras

from ._one_process import Broadcast, OneProcess


class DEHvdBroadcastGlobalVariablesCallback(
    Broadcast, keras.callbacks.Callback
):
    """Gives all ranks of a job the same variables, after the first batch.

    In one process it does nothing.

    Args:
        root_rank: Rank whose variables the others take.
        device: Unused.
        local_variables: Variables that each process keeps.
    """


class DEHvdModelCheckpoint(OneProcess, keras.callbacks.ModelCheckpoint):
    """Saves a model with its tables, in the course of training.

    Keras's own callback does so too: `.keras` and `.weights.h5` files hold
    tables with their slots.

    Args:
        *args: Those of `keras.callbacks.ModelCheckpoint`.
        **kwargs: Those of `keras.callbacks.ModelCheckpoint`.

    Raises:
        NotImplementedError: If there are several processes.
    """


# TFRA's other name of it.
ModelCheckpoint: Any = DEHvdModelCheckpoint
