"""Folders of checkpoints of TF1 graphs: whether they are whole, leftovers."""

import contextlib
import os
import re
from collections.abc import Iterator

import tensorflow as tf


# What a saver has in the folder while it writes `model.ckpt-7`.
_UNFINISHED = re.compile(
    r"model\.ckpt-\d+_temp/?"
    r"|model\.ckpt-\d+\.[^/]*\.tempstate\d+"
    r"|checkpoint\.tmp[0-9a-f]{32}"
)
_DATA = re.compile(r"(model\.ckpt-\d+)\.data-\d{5}-of-\d{5}")
_COUNT = re.compile(r"-of-(\d{5})$")


def latest_whole(folder: str) -> str | None:
    """Returns the latest checkpoint of a folder.

    Args:
        folder: The folder; it need not be there.

    Returns:
        Its path, or None if there is none.

    Raises:
        ValueError: If files of the one that the folder names are gone.
    """
    latest: str | None = tf.train.latest_checkpoint(folder)
    if latest is not None:
        check_whole(latest)
        return latest
    state = tf.train.get_checkpoint_state(folder)
    if state is None or not state.model_checkpoint_path:
        return None
    msg = (
        f"The file 'checkpoint' in {folder!r} names "
        f"{state.model_checkpoint_path!r}, of which the index file is not "
        "there. Bring it back from a copy, name an earlier checkpoint in the "
        "file, or delete the file to begin anew."
    )
    raise ValueError(msg)


def check_whole(path: str) -> None:
    """Raises ValueError if data files of a checkpoint are gone.

    Args:
        path: The checkpoint, whose index is there.
    """
    found = tf.io.gfile.glob(f"{path}.data-*")
    missing = [f"{path}.data-*"]
    if found:
        count = int(_COUNT.findall(found[0])[0])
        names = [f"{path}.data-{i:05d}-of-{count:05d}" for i in range(count)]
        there = {os.path.basename(one) for one in found}
        missing = [n for n in names if os.path.basename(n) not in there]
    if missing:
        msg = (
            f"Checkpoint {path!r} is not whole: its index is there, but "
            f"{', '.join(missing)} is gone. Bring it back from a copy, or name "
            "an earlier checkpoint in the file 'checkpoint' of its folder."
        )
        raise ValueError(msg)


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Has a checkpoint named that cannot be read in the block.

    Args:
        path: The checkpoint.

    Raises:
        ValueError: If its files are damaged.
    """
    try:
        yield
    # As TensorFlow's reader translates what it finds.
    except (IndexError, tf.errors.OpError) as error:
        raise damaged(path, error) from error


def damaged(path: str, error: Exception) -> ValueError:
    """Returns the error for a checkpoint of which files cannot be read.

    Args:
        path: The checkpoint.
        error: What TensorFlow says.
    """
    return ValueError(
        f"Checkpoint {path!r} is damaged: its files cannot be read "
        f"({type(error).__name__}). Bring them back from a copy, or name an "
        "earlier checkpoint in the file 'checkpoint' of its folder."
    )


def remove_leftovers(folder: str) -> None:
    """Removes what a save that was killed has left in a folder.

    To be called by the one process that writes there, before it does.

    Args:
        folder: Folder of checkpoints; it need not be there.
    """
    if not tf.io.gfile.isdir(folder):
        return
    files = tf.io.gfile.listdir(folder)
    for file in files:
        data = _DATA.fullmatch(file)
        is_lone = data is not None and f"{data.group(1)}.index" not in files
        if not is_lone and not _UNFINISHED.fullmatch(file):
            continue
        path = os.path.join(folder, file.rstrip("/"))
        if tf.io.gfile.isdir(path):
            tf.io.gfile.rmtree(path)
        else:
            tf.io.gfile.remove(path)
