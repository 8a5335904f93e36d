"""What callbacks of both libraries do where several processes train."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from embedra.distribute import (
    Communicator,
    gather_values,
    job_communicator,
    one_writer,
    together,
)
from embedra.scopes import context

from ._processes import check_one_process


# At run time these are mixins, for the callbacks of two libraries.
_Callback: Any = keras.callbacks.Callback if TYPE_CHECKING else object

_LABEL = "saving a model"


class SavedByAll(_Callback):
    """Has all ranks of a job save together, when rank 0 decides to.

    Rank 0 does what the library's callback does, with a model that calls the
    others whenever it is to be saved. They have no part in what is decided, as
    their logs may differ.
    """

    save_freq: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if context.world_size == 1:
            # Horovod may have started others, without a launcher that we know.
            check_one_process(type(self).__name__)
        super().__init__(*args, **kwargs)
        self._ranks: Communicator | None = None

    def set_model(self, model: Any) -> None:
        """Takes the model that is trained.

        Args:
            model: The model.
        """
        self._ranks = job_communicator()
        if self._ranks is not None and self._ranks.rank == 0:
            model = _CallingOthers(model, self._ranks)
        super().set_model(model)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Saves, if that is done within epochs and due.

        Args:
            batch: Number of the batch.
            logs: Numbers of the batch.
        """
        save = partial(super().on_train_batch_end, batch, logs)
        if self.save_freq == "epoch":
            save()
        else:
            self._led_by_first(save)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Saves, if that is done at the end of epochs.

        Args:
            epoch: Number of the epoch.
            logs: Numbers of the epoch.
        """
        self._led_by_first(partial(super().on_epoch_end, epoch, logs))

    def _led_by_first(self, save: Callable[[], None]) -> None:
        """Runs what may save the model on rank 0; others take part in it."""
        if self._ranks is None:
            save()
            return
        with together(self._ranks, _LABEL):
            if self._ranks.rank == 0:
                save()
                gather_values(self._ranks, None, label=_LABEL)
                return
            while (order := self._next_order(self._ranks)) is not None:
                method, path = order
                with one_writer(path, self._ranks) as own:
                    getattr(self.model, method)(own, overwrite=True)

    def _next_order(self, ranks: Communicator) -> Any:
        """Waits for what rank 0 saves next; None if nothing more."""
        return gather_values(ranks, None, label=_LABEL)[0]


class _CallingOthers:
    """A model, as rank 0 saves it: each time the others are told to do so, too.

    Args:
        model: The model.
        ranks: The communicator.
    """

    def __init__(self, model: Any, ranks: Communicator) -> None:
        self._model = model
        self._ranks = ranks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def save(self, path: str, **kwargs: Any) -> None:
        self._save("save", path, kwargs)

    def save_weights(self, path: str, **kwargs: Any) -> None:
        self._save("save_weights", path, kwargs)

    def _save(self, method: str, path: str, kwargs: dict[str, Any]) -> None:
        gather_values(self._ranks, [method, path], label=_LABEL)
        with one_writer(path, self._ranks) as own:
            getattr(self._model, method)(own, **kwargs)


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
