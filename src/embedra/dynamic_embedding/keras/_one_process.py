"""What callbacks of both libraries do in one process."""

from typing import TYPE_CHECKING, Any

import keras

from ._processes import check_one_process


# At run time these are mixins, for the callbacks of two libraries.
_Callback: Any = keras.callbacks.Callback if TYPE_CHECKING else object


class OneProcess(_Callback):
    """Refuses to be one of several processes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        check_one_process(type(self).__name__)
        super().__init__(*args, **kwargs)


class Broadcast(OneProcess):
    """Takes the arguments of a broadcast, which has nobody to reach."""

    def __init__(
        self,
        root_rank: int = 0,
        device: str = "",
        local_variables: Any = None,
    ) -> None:
        super().__init__()
        self.root_rank = root_rank
        self.device = device
        self.local_variables = local_variables
