"""Checkpoints of an estimator: which to take."""

from typing import Any

import tensorflow as tf

from embedra.train import check_whole, reading


def chosen_checkpoint(model_dir: str, path: Any, purpose: str) -> str:
    """Returns the checkpoint to restore.

    Args:
        model_dir: Folder of checkpoints.
        path: A checkpoint, or None for the latest of the folder.
        purpose: What it is for, as messages say it.

    Raises:
        ValueError: If there is none, or files of it are gone.
    """
    if path is None:
        latest: str | None = tf.train.latest_checkpoint(model_dir)
        if latest is None:
            msg = (
                f"There is no checkpoint in {model_dir!r} to {purpose}. Train "
                "first, or pass `checkpoint_path`."
            )
            raise ValueError(msg)
        check_whole(latest)
        return latest
    if not tf.io.gfile.exists(f"{path}.index"):
        msg = (
            f"There is no checkpoint {str(path)!r} to {purpose}. Give the path "
            "without .index, as `estimator.latest_checkpoint()` does."
        )
        raise ValueError(msg)
    check_whole(str(path))
    return str(path)


def global_step_of(path: str) -> int:
    """Returns at which step a checkpoint was saved.

    Args:
        path: The checkpoint.

    Raises:
        ValueError: If it cannot be read.
    """
    with reading(path):
        return int(tf.train.load_variable(path, "global_step"))
