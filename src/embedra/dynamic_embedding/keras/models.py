"""Saving models as SavedModels that hold their tables, and loading them."""

import importlib
import sys
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from embedra.distribute import (
    Communicator,
    job_communicator,
    one_writer,
    together,
)
from embedra.saved_model import export
from embedra.scopes import context

from ._processes import check_one_process


# In a SavedModel `assets.extra` is the place of files that TensorFlow does not
# read.
_EXTRA = "assets.extra"
_KERAS_FILE = Path(_EXTRA) / "model.keras"
_TF_KERAS_FILE = Path(_EXTRA) / "model.tf_keras.keras"


def de_save_model(
    model: Any,
    filepath: Any,
    overwrite: bool = True,
    include_optimizer: bool = True,
    signatures: Any = None,
    options: Any = None,
    save_traces: bool = True,
) -> None:
    """Saves a model with its tables, to serve it and to train it on.

    The model becomes a SavedModel, which any program that imports `embedra`
    serves by `tf.saved_model.load(filepath)`. To go on training,
    `load_model(filepath)` reads the `.keras` file inside, in `assets.extra`; it
    holds the tables with their slots, and the optimizer. A path that ends in
    `.keras` gives that file alone.

    In a job all ranks call this with the same path, and rank 0 writes whole
    tables, which others send it. The SavedModel is one of
    `embedra.saved_model.export` then, of a model of Keras 3: TensorFlow alone
    serves it.

    Args:
        model: The model, built, of Keras 3 or tf_keras.
        filepath: Folder to write, or a `.keras` file.
        overwrite: Whether what is there may be replaced.
        include_optimizer: Whether to save what training on needs. If False the
            SavedModel has no `.keras` file inside, and half the size.
        signatures: Functions to serve; see `tf.saved_model.save`. By default
            the model itself, as by `model.export`.
        options: A `tf.saved_model.SaveOptions`.
        save_traces: For models of tf_keras only.

    Raises:
        FileExistsError: If there is something at `filepath`, and `overwrite` is
            False.
        NotImplementedError: If Horovod has started several processes, of which
            Embedra does not know; and in a job for a SavedModel of a tf_keras
            model, or with `signatures` or `options`.
        RankError: On all ranks of a job, if one of them failed.
        ValueError: If a `.keras` file is asked for without optimizer.

    Example:
        >>> import tempfile
        >>> import keras
        >>> import numpy as np
        >>> import embedra.dynamic_embedding as de
        >>> ids = keras.Input((2,), dtype="int64")
        >>> rows = de.keras.layers.SquashedEmbedding(4)(ids)
        >>> model = keras.Model(ids, keras.layers.Dense(1)(rows))
        >>> folder = tempfile.mkdtemp() + "/model"
        >>> de.keras.models.de_save_model(model, folder)
        >>> served = tf.saved_model.load(folder)
        >>> served.serve(np.array([[1, 2]])).shape
        TensorShape([1, 1])
        >>> de.keras.models.load_model(folder).count_params()
        5
    """
    if context.world_size == 1:
        check_one_process("de_save_model")
    ranks = job_communicator()
    path = Path(filepath)
    with together(ranks, "saving a model", str(path)):
        if not overwrite and (ranks is None or ranks.rank == 0):
            _check_free(path)
        if path.suffix == ".keras":
            _check_whole(path, include_optimizer)
            with one_writer(path, ranks) as own:
                model.save(own)
            return
        if ranks is not None:
            _check_plain(model, signatures, options)
            export(model, path, overwrite=True)
            _save_inside(model, path, False, include_optimizer, ranks)
            return
    tf_keras = _tf_keras_of(model)
    if tf_keras is not None:
        tf_keras.models.save_model(
            model,
            str(path),
            include_optimizer=False,
            signatures=signatures,
            options=options,
            save_traces=save_traces,
            save_format="tf",
        )
    elif signatures is None and options is None:
        model.export(path, verbose=False)
    else:
        tf.saved_model.save(
            model, str(path), signatures=signatures, options=options
        )
    _save_inside(model, path, tf_keras is not None, include_optimizer, None)


# Its name where processes are many; and what TFRA puts in place of Keras's.
de_hvd_save_model = de_save_model
save_model = de_save_model


def load_model(
    filepath: Any, custom_objects: Any = None, compile: bool = True
) -> Any:
    """Loads a model that `de_save_model` saved, to train it on.

    Args:
        filepath: What the model was saved to.
        custom_objects: See `keras.models.load_model`.
        compile: Whether to compile the model as it was.

    Returns:
        The model.

    Raises:
        ValueError: If a folder has no `.keras` file inside.
    """
    path = Path(filepath)
    library = keras
    if path.is_dir():
        folder, path = path, path / _KERAS_FILE
        if (folder / _TF_KERAS_FILE).exists():
            path = folder / _TF_KERAS_FILE
            library = importlib.import_module("tf_keras")
        elif not path.exists():
            msg = (
                f"The SavedModel {str(folder)!r} holds no Keras model to train "
                "on: it was saved with include_optimizer=False, or not by "
                "de_save_model. tf.saved_model.load serves it."
            )
            raise ValueError(msg)
    return library.models.load_model(
        path, custom_objects=custom_objects, compile=compile
    )


def _save_inside(
    model: Any,
    folder: Path,
    is_tf_keras: bool,
    include_optimizer: bool,
    ranks: Communicator | None,
) -> None:
    """Puts into a SavedModel what training on needs, or removes it."""
    if ranks is None or ranks.rank == 0:
        for name in (_KERAS_FILE, _TF_KERAS_FILE):
            (folder / name).unlink(missing_ok=True)
        (folder / _EXTRA).mkdir(exist_ok=True)
    if include_optimizer:
        file = folder / (_TF_KERAS_FILE if is_tf_keras else _KERAS_FILE)
        with one_writer(file, ranks) as own:
            model.save(own)


def _check_free(path: Path) -> None:
    if path.exists():
        msg = f"There is something at {str(path)!r}, and overwrite=False."
        raise FileExistsError(msg)


def _check_plain(model: Any, signatures: Any, options: Any) -> None:
    """Raises unless a SavedModel of a model can be written by all ranks."""
    given = signatures is not None or options is not None
    if given or _tf_keras_of(model) is not None:
        msg = (
            "In a job, de_save_model writes SavedModels of models of Keras 3, "
            "without `signatures` and `options`. Save to a path that ends in "
            "`.keras`, which one process loads and exports."
        )
        raise NotImplementedError(msg)


def _check_whole(path: Path, include_optimizer: bool) -> None:
    if not include_optimizer:
        msg = (
            f"A .keras file holds the model's optimizer: {str(path)!r} cannot "
            "be saved with include_optimizer=False. Load it with "
            "compile=False, or save to a folder."
        )
        raise ValueError(msg)


def _tf_keras_of(model: Any) -> Any:
    """Returns tf_keras, if the model is one of it, without importing it."""
    tf_keras = sys.modules.get("tf_keras")
    if tf_keras is not None and isinstance(model, tf_keras.Model):
        return tf_keras
    return None
