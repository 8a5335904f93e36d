"""Folders that appear when they are complete, and not before."""

import contextlib
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import tensorflow as tf
from google.protobuf import text_format  # type: ignore[import-untyped]
from tensorflow.core.protobuf import saved_model_pb2


GRAPH = "saved_model.pb"
TEXT_GRAPH = "saved_model.pbtxt"
EXTRA = "assets.extra"


def final_folder(export_dir: Any, *, versioned: bool, overwrite: bool) -> str:
    """Returns the folder that an export goes to.

    Args:
        export_dir: As it was given.
        versioned: Whether it goes to a new folder in there, named by the
            second.
        overwrite: Whether a SavedModel that is there may be replaced.

    Returns:
        A folder that is not there, or empty, or may be replaced.

    Raises:
        FileExistsError: If something else is there.
    """
    folder = str(os.fspath(export_dir))
    if "://" not in folder:
        folder = os.path.abspath(folder)
    if not versioned:
        check_free(folder, overwrite=overwrite)
        return folder
    if tf.io.gfile.exists(folder) and not tf.io.gfile.isdir(folder):
        _raise_taken(folder, "a file")
    version = int(time.time())
    while tf.io.gfile.exists(os.path.join(folder, str(version))):
        version += 1
    return os.path.join(folder, str(version))


def check_free(folder: str, *, overwrite: bool) -> None:
    """Raises unless an export may go to a folder.

    Args:
        folder: The folder.
        overwrite: Whether a SavedModel that is there may be replaced.

    Raises:
        FileExistsError: If something else is there.
    """
    if not tf.io.gfile.exists(folder):
        return
    if not tf.io.gfile.isdir(folder):
        _raise_taken(folder, "a file")
    names = tf.io.gfile.listdir(folder)
    is_model = GRAPH in names or TEXT_GRAPH in names
    if names and not (overwrite and is_model):
        what = "a SavedModel" if is_model else "other files"
        _raise_taken(folder, what)


def _raise_taken(folder: str, what: str) -> None:
    msg = (
        f"The export was to go to {folder!r}, where there is {what}. Choose a "
        "folder that is new or empty, pass versioned=True for a new folder in "
        "it, or overwrite=True to replace a SavedModel."
    )
    raise FileExistsError(msg)


@contextlib.contextmanager
def appearing(folder: str) -> Iterator[str]:
    """Gives a temporary folder, which is renamed if all goes well.

    If not, it is removed. What was in the final folder is replaced at the end.

    Args:
        folder: The final folder.

    Yields:
        The temporary folder, in the same parent.
    """
    path = PurePath(folder)
    parent = folder.rstrip("/")[: -len(path.name)] or "."
    temporary = os.path.join(parent, f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    tf.io.gfile.makedirs(temporary)
    try:
        yield temporary
        _write_through(temporary)
        old = f"{temporary}.old"
        if tf.io.gfile.exists(folder):
            tf.io.gfile.rename(folder, old)
        tf.io.gfile.rename(temporary, folder)
    except BaseException:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
        raise
    if tf.io.gfile.exists(old):
        tf.io.gfile.rmtree(old)


def _write_through(folder: str) -> None:
    """Sees that the files of a local folder are on the disk."""
    if not os.path.isdir(folder):
        return
    for parent, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(parent, name), "rb") as file:
                os.fsync(file.fileno())


def checked_extra(
    extra: Mapping[str, Any] | Sequence[Any] | None,
) -> dict[str, str]:
    """Returns the files to copy by their names in `assets.extra`.

    Args:
        extra: Files by name, or files that keep their names.

    Raises:
        FileNotFoundError: If a file is not there.
        ValueError: If a name leads out of the folder, or is used twice.
    """
    if extra is None:
        return {}
    if not isinstance(extra, Mapping):
        named = {PurePath(os.fspath(source)).name: source for source in extra}
        if len(named) != len(extra):
            msg = f"Files in `assets_extra` have the same name: {list(extra)}"
            raise ValueError(msg)
        extra = named
    files = {str(name): os.fspath(source) for name, source in extra.items()}
    for name, source in files.items():
        path = PurePath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            msg = (
                "Names in `assets_extra` are paths below the folder "
                f"{EXTRA}. Received: {name!r}"
            )
            raise ValueError(msg)
        if not tf.io.gfile.exists(source) or tf.io.gfile.isdir(source):
            msg = f"There is no file {source!r}, named in `assets_extra`."
            raise FileNotFoundError(msg)
    return files


def add_extra(folder: str, files: Mapping[str, str], texts: Any) -> None:
    """Fills a SavedModel's folder `assets.extra`.

    Args:
        folder: The SavedModel.
        files: Files to copy by their names in there.
        texts: Texts to write by their names in there.
    """
    for name, source in files.items():
        target = os.path.join(folder, EXTRA, name)
        tf.io.gfile.makedirs(os.path.dirname(target))
        tf.io.gfile.copy(source, target)
    for name, text in texts.items():
        target = os.path.join(folder, EXTRA, name)
        tf.io.gfile.makedirs(os.path.dirname(target))
        with tf.io.gfile.GFile(target, "w") as file:
            file.write(text)


def make_text(folder: str) -> None:
    """Replaces the graph file of a SavedModel by the same as text.

    Args:
        folder: The SavedModel.
    """
    binary = os.path.join(folder, GRAPH)
    model = saved_model_pb2.SavedModel()
    with tf.io.gfile.GFile(binary, "rb") as file:
        model.ParseFromString(file.read())
    with tf.io.gfile.GFile(os.path.join(folder, TEXT_GRAPH), "w") as file:
        file.write(text_format.MessageToString(model))
    tf.io.gfile.remove(binary)
