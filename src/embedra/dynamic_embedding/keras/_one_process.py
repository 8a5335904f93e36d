"""What callbacks of both libraries do where several processes train."""

from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from embedra.distribute import job_communicator

from ._processes import check_one_process


# At run time these are mixins, for the callbacks of two libraries.
_Callback: Any = keras.callbacks.Callback if TYPE_CHECKING else object


class OneProcess(_Callback):
    """Refuses to be one of several processes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        check_one_process(type(self).__name__)
        super().__init__(*args, **kwargs)


class Broadcast(_Callback):
    """Gives all ranks of a job the variables of one, after the first batch.

    By then all of them are there, those of the optimizer too. Tables are the
    same anyway: each row is on one rank.
    """

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
        self.broadcast_done = False

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Broadcasts, once.

        Args:
            batch: Unused.
            logs: Unused.
        """
        del batch, logs
        ranks = None if self.broadcast_done else job_communicator()
        self.broadcast_done = True
        if ranks is None:
            return
        own = {id(variable) for variable in self.local_variables or ()}
        optimizer = self.model.optimizer.variables
        for variable in [
            *self.model.variables,
            *(optimizer() if callable(optimizer) else optimizer),
        ]:
            # Random states are each process's own; tables have no elements.
            is_number = tf.as_dtype(variable.dtype) not in (tf.uint32, tf.bool)
            if (
                is_number
                and 0 not in variable.shape
                and id(variable) not in own
            ):
                value = ranks.broadcast(
                    tf.convert_to_tensor(variable),
                    self.root_rank,
                    label=variable.name,
                )
                variable.assign(value)
