"""Callbacks by TFRA's names."""

from typing import Any

import keras

from ._processes import check_one_process


class DEHvdBroadcastGlobalVariablesCallback(keras.callbacks.Callback):
    """Starts all processes from the same variables.

    In one process there is nothing to do.

    Args:
        root_rank: Process whose variables the others take.
        device: Unused.
        local_variables: Variables that each process keeps.

    Raises:
        NotImplementedError: If there are several processes.
    """

    def __init__(
        self,
        root_rank: int = 0,
        device: str = "",
        local_variables: Any = None,
    ) -> None:
        check_one_process(type(self).__name__)
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.local_variables = local_variables


class DEHvdModelCheckpoint(keras.callbacks.ModelCheckpoint):
    """Saves a model with its tables, in the course of training.

    Keras's own callback does so too: `.keras` and `.weights.h5` files hold
    tables with their slots.

    Args:
        *args: Those of `keras.callbacks.ModelCheckpoint`.
        **kwargs: Those of `keras.callbacks.ModelCheckpoint`.

    Raises:
        NotImplementedError: If there are several processes.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        check_one_process(type(self).__name__)
        super().__init__(*args, **kwargs)


# TFRA's other name of it.
ModelCheckpoint = DEHvdModelCheckpoint
