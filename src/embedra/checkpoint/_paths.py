"""Paths of checkpoints: which can be used, and that they reach the disk."""

import os

import tensorflow as tf


# Of `tf.io.gfile.glob`, by which TensorFlow also looks for what it reads.
_WILDCARDS = "*?[\\"


def check_path(path: str) -> None:
    """Raises if a path is none where TensorFlow reads checkpoints.

    Args:
        path: A folder, or the prefix of a checkpoint.

    Raises:
        ValueError: If it has wildcards.
    """
    found = sorted(set(path) & set(_WILDCARDS))
    if found:
        msg = (
            f"TensorFlow cannot read checkpoints at {path!r}, as it takes "
            f"{' '.join(found)} for wildcards there. Use another name."
        )
        raise ValueError(msg)


def check_writable(directory: str, file: str) -> None:
    """Makes a folder, and raises if nothing can be written there.

    Args:
        directory: The folder.
        file: A file in it, which is made and removed.

    Raises:
        OSError: If not.
    """
    try:
        tf.io.gfile.makedirs(directory)
        with tf.io.gfile.GFile(file, "w") as written:
            written.write(" ")
        tf.io.gfile.remove(file)
    except tf.errors.OpError as error:
        msg = (
            f"Checkpoints cannot be written to folder {directory!r}: "
            f"{error.message}"
        )
        raise OSError(msg) from error


def flush(path: str) -> None:
    """Has a local file or folder written to disk.

    Args:
        path: Its path; one that is not there, or not local, is left alone.
    """
    if not os.path.exists(path):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def publish(partial: str, directory: str) -> None:
    """Gives the files of a complete checkpoint their place.

    Args:
        partial: The folder that they were written to; left empty.
        directory: The folder to move them to.
    """
    # Without its index a checkpoint is none: that is moved last.
    files = sorted(
        tf.io.gfile.listdir(partial), key=lambda f: f.endswith(".index")
    )
    for file in files:
        flush(os.path.join(partial, file))
    for file in files:
        source = os.path.join(partial, file)
        target = os.path.join(directory, file)
        tf.io.gfile.rename(source, target, overwrite=True)
    flush(directory)
