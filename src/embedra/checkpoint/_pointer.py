"""The file `checkpoint` of a folder, which points to the newest one."""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from ._paths import flush


POINTER = "checkpoint"

# What is deleted next.
_DELETING = re.compile(r"^# deleting (ckpt-\d+)$", re.MULTILINE)


class Kept(NamedTuple):
    """A checkpoint of a folder, and when it was written."""

    name: str
    seconds: float


def write_pointer(
    directory: str,
    kept: Sequence[Kept],
    deleted: Sequence[Kept],
    preserved: float,
) -> None:
    """Points to the newest checkpoint, as TensorFlow's readers expect.

    Args:
        directory: The folder.
        kept: Its checkpoints, the newest last.
        deleted: Those that are deleted next.
        preserved: When the latest one was written that stays for good.
    """
    lines = [f'model_checkpoint_path: "{kept[-1].name}"']
    for name, _ in kept:
        lines.append(f'all_model_checkpoint_paths: "{name}"')
    for _, seconds in kept:
        lines.append(f"all_model_checkpoint_timestamps: {seconds!r}")
    lines.append(f"last_preserved_timestamp: {preserved!r}")
    # Only then are they deleted, as no reader may be pointed to them.
    lines += [f"# deleting {old.name}" for old in deleted]
    written = os.path.join(directory, POINTER + ".tmp")
    with tf.io.gfile.GFile(written, "w") as file:
        file.write("\n".join(lines) + "\n")
    flush(written)
    path = os.path.join(directory, POINTER)
    tf.io.gfile.rename(written, path, overwrite=True)


def names_to_delete(directory: str) -> list[str]:
    """Returns the checkpoints that were about to be deleted.

    Args:
        directory: The folder.
    """
    path = os.path.join(directory, POINTER)
    if not tf.io.gfile.exists(path):
        return []
    with tf.io.gfile.GFile(path) as file:
        return _DELETING.findall(file.read())
