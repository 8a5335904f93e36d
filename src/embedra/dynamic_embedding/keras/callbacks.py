"""Callbacks by TFRA's names, for models of Keras 3."""

from typing import Any

import keras

from ._job_callbacks import Broadcast, SavedByAll


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


class DEHvdModelCheckpoint(SavedByAll, keras.callbacks.ModelCheckpoint):
    """Saves a model with its tables, in the course of training.

    Keras's own callback does so too: `.keras` and `.weights.h5` files hold
    tables with their slots. In a job all ranks must have this callback. Rank 0
    decides by its logs when to save, and writes; the records of tables that are
    split stream to it. Any number of ranks, also one process, reads the files.
    The model may be an `embedra.keras.Model` or a plain one.

    Args:
        *args: Those of `keras.callbacks.ModelCheckpoint`.
        **kwargs: Those of `keras.callbacks.ModelCheckpoint`.

    Raises:
        NotImplementedError: If Horovod has started several processes, of which
            Embedra does not know.
        RankError: On all ranks, in training, if one of them failed to save.
    """


# TFRA's other name of it.
ModelCheckpoint: Any = DEHvdModelCheckpoint
