"""Folders that appear when they are complete, and not before."""

import contextlib
import os
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath
from typing import Any

import tensorflow as tf
from google.protobuf import text_format  # type: ignore[import-untyped]
from tensorflow.core.protobuf import saved_model_pb2

from embedra._checks import checked_path

from ._unfinished import remove_unfinished, temporary_name


GRAPH = "saved_model.pb"
TEXT_GRAPH = "saved_model.pbtxt"
EXTRA = "assets.extra"
# What the export itself puts there.
REPORT = "embedra.json"


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
    folder = checked_path("export_dir", export_dir)
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


class Pending:
    """A folder that is being filled.

    Args:
        temporary: Where its files go meanwhile.
        path: The final folder.

    Attributes:
        temporary: Where its files go meanwhile.
        path: The final folder. That of a version is known at the end of the
            `with` block, as others may export at the same time.
    """

    def __init__(self, temporary: str, path: str) -> None:
        self.temporary = temporary
        self.path = path


@contextlib.contextmanager
def appearing(
    folder: str, *, versioned: bool, overwrite: bool = False
) -> Iterator[Pending]:
    """Gives a temporary folder, which is renamed if all goes well.

    If not, it is removed; and so is what processes left that were killed.

    Args:
        folder: The final folder, as `final_folder` returned it.
        versioned: Whether another version is made if this one is there by then.
        overwrite: Whether what is there by then is replaced.

    Yields:
        The folder, to be filled.

    Raises:
        FileExistsError: If something is there by then.
    """
    # What a link names is replaced, not the link.
    target = folder if "://" in folder else os.path.realpath(folder)
    parent, name = os.path.split(target.rstrip("/"))
    remove_unfinished(parent)
    temporary = os.path.join(parent, temporary_name(name))
    pending = Pending(temporary, folder)
    tf.io.gfile.makedirs(temporary)
    try:
        yield pending
        _write_through(temporary)
        if versioned:
            pending.path = _moved_to_version(temporary, folder)
        elif overwrite:
            _replace(temporary, target)
        elif not _moved(temporary, target):
            _raise_taken(folder, "something by now")
    except BaseException:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
        raise


def _moved(source: str, target: str) -> bool:
    """Renames a folder, unless more than an empty folder is there."""
    try:
        # The file system itself sees that only empty ones are overwritten.
        tf.io.gfile.rename(source, target, overwrite=os.path.isdir(target))
    except (tf.errors.AlreadyExistsError, tf.errors.FailedPreconditionError):
        if not tf.io.gfile.exists(target):
            raise
        return False
    return True


def _moved_to_version(temporary: str, folder: str) -> str:
    parent, version = os.path.split(folder)
    while not _moved(temporary, folder):
        version = str(int(version) + 1)
        folder = os.path.join(parent, version)
    return folder


def _replace(temporary: str, target: str) -> None:
    olds: list[str] = []
    try:
        while not _moved(temporary, target):
            old = f"{temporary}.old{len(olds)}"
            # Another export may have moved it away already.
            with contextlib.suppress(tf.errors.NotFoundError):
                tf.io.gfile.rename(target, old)
                olds.append(old)
    except BaseException:
        if olds:
            _moved(olds[-1], target)
        raise
    for old in olds:
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
    extra: Mapping[str, Any] | Collection[Any] | None,
) -> dict[str, str]:
    """Returns the files to copy by their names in `assets.extra`.

    Args:
        extra: Files by name, or files that keep their names.

    Raises:
        FileNotFoundError: If a file is not there.
        TypeError: If a name or file is no path.
        ValueError: If it is none of these, or a name leads out of the folder,
            is used twice or is that of the report.
    """
    if extra is None:
        return {}
    if isinstance(extra, str | bytes | os.PathLike) or not isinstance(
        extra, Collection
    ):
        msg = (
            "`assets_extra` is a list of files, or a dict from names to files. "
            f"Received: {extra!r}"
        )
        raise ValueError(msg)
    what = "assets_extra"
    if not isinstance(extra, Mapping):
        paths = [checked_path(what, source) for source in extra]
        named = {PurePath(source).name: source for source in paths}
        if len(named) != len(paths):
            msg = f"Files in `assets_extra` have the same name: {list(extra)}"
            raise ValueError(msg)
        extra = named
    files = {
        checked_path(what, name): checked_path(what, source)
        for name, source in extra.items()
    }
    for name, source in files.items():
        path = PurePath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            msg = (
                "Names in `assets_extra` are paths below the folder "
                f"{EXTRA}. Received: {name!r}"
            )
            raise ValueError(msg)
        if path == PurePath(REPORT):
            msg = (
                f"The export itself writes {REPORT!r} to {EXTRA}. Give the "
                "file in `assets_extra` another name."
            )
            raise ValueError(msg)
        above = [str(one) for one in path.parents if str(one) in files]
        if above:
            msg = (
                f"In `assets_extra`, {above[0]!r} cannot be a file and the "
                f"folder of {name!r}."
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
