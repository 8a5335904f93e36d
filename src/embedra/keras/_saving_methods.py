"""SavingMethods: models that all ranks of a job save to one path."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from embedra.distribute import (
    Communicator,
    job_communicator,
    one_writer,
    together,
)


# At run time `SavingMethods` is a mixin, so that it comes first in the order.
_Model: Any = keras.Model if TYPE_CHECKING else object

# Files of Keras; other endings are those of folders and of files in parts.
_FILES = (".keras", ".h5", ".hdf5")


class SavingMethods(_Model):
    """The part of `ModelMethods` that saves files of Keras."""

    def save(
        self,
        filepath: str | os.PathLike[str],
        overwrite: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Saves the model, as `keras.Model.save`.

        In a job all ranks call this with the same path. Records of tables
        stream to rank 0, which alone writes there.

        Args:
            filepath: See `keras.Model.save`.
            overwrite: See there. In a job nobody is asked: False is an error
                if the file is there.
            *args: See there.
            **kwargs: See there.

        Raises:
            RankError: On all ranks of a job, if one of them failed.
        """

        def save(path: Any, overwrite: bool) -> None:
            super(SavingMethods, self).save(path, overwrite, *args, **kwargs)

        _save(save, filepath, overwrite)

    def save_weights(
        self,
        filepath: str | os.PathLike[str],
        overwrite: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Saves weights and tables, as `keras.Model.save_weights`.

        In a job all ranks call this with the same path. Records of tables
        stream to rank 0, which alone writes there.

        Args:
            filepath: See `keras.Model.save_weights`.
            overwrite: See there. In a job nobody is asked: False is an error
                if the file is there.
            *args: See there.
            **kwargs: See there.

        Raises:
            RankError: On all ranks of a job, if one of them failed.
        """

        def save(path: Any, overwrite: bool) -> None:
            super(SavingMethods, self).save_weights(
                path, overwrite, *args, **kwargs
            )

        _save(save, filepath, overwrite)


def _save(
    save: Callable[[Any, bool], None], path: Any, overwrite: bool
) -> None:
    communicator = job_communicator()
    if communicator is None:
        save(path, overwrite)
        return
    path = os.fspath(path)
    with together(communicator, "saving", path):
        _check_free(path, communicator, overwrite)
        if not path.endswith(_FILES):
            with one_writer(path, communicator) as own:
                save(own, True)
            return
        # The file appears when it is whole, and not before.
        folder, name = os.path.split(path)
        partial = os.path.join(folder, f".partial-{name}")
        try:
            with one_writer(partial, communicator) as own:
                save(own, True)
            if communicator.rank == 0:
                tf.io.gfile.rename(partial, path, overwrite=True)
        finally:
            if communicator.rank == 0 and tf.io.gfile.exists(partial):
                tf.io.gfile.remove(partial)


def _check_free(path: str, communicator: Communicator, overwrite: bool) -> None:
    if communicator.rank or overwrite or not tf.io.gfile.exists(path):
        return
    msg = (
        f"There is a file at {path!r} already, and `overwrite` is False. "
        "Choose another path, or overwrite it."
    )
    raise FileExistsError(msg)
