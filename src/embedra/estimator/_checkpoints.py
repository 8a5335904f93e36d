"""Checkpoints of an estimator: which to take, what is wrong with one."""

import re
from typing import Any

import tensorflow as tf

from ._tables import saved_states


_PART = re.compile(r"/part_\d+$")


def chosen_checkpoint(model_dir: str, path: Any, purpose: str) -> str:
    """Returns the checkpoint to restore.

    Args:
        model_dir: Folder of checkpoints.
        path: A checkpoint, or None for the latest of the folder.
        purpose: What it is for, as messages say it.

    Raises:
        ValueError: If there is none.
    """
    if path is None:
        latest: str | None = tf.train.latest_checkpoint(model_dir)
        if latest is None:
            msg = (
                f"There is no checkpoint in {model_dir!r} to {purpose}. Train "
                "first, or pass `checkpoint_path`."
            )
            raise ValueError(msg)
        return latest
    if not tf.io.gfile.exists(f"{path}.index"):
        msg = (
            f"There is no checkpoint {str(path)!r} to {purpose}. Give the path "
            "without .index, as `estimator.latest_checkpoint()` does."
        )
        raise ValueError(msg)
    return str(path)


def global_step_of(path: str) -> int:
    """Returns at which step a checkpoint was saved.

    Args:
        path: The checkpoint.
    """
    return int(tf.train.load_variable(path, "global_step"))


def explained(error: Exception, path: str) -> Exception:
    """Explains why a checkpoint was not restored, as far as it shows.

    To be called in the graph that it does not fit.

    Args:
        error: What TensorFlow says.
        path: The checkpoint.

    Returns:
        A better error, or the same.
    """
    saved = tf.train.load_checkpoint(path).get_variable_to_shape_map()
    variables = tf.compat.v1.global_variables()
    shapes = {
        _PART.sub("", v.op.name): None
        if _PART.search(v.op.name)
        else v.shape.as_list()
        for v in variables
    }
    shapes |= {f"{state.key}/keys": None for state in saved_states()}
    missing = [name for name in shapes if name not in saved]
    reshaped = [
        f"{name} has shape {saved[name]} there and {shape} here"
        for name, shape in shapes.items()
        if name in saved and shape is not None and shape != saved[name]
    ]
    if not missing and not reshaped:
        return error
    differences = [f"{name} is not in it" for name in missing] + reshaped
    msg = (
        f"Checkpoint {path!r} is not one of this model: "
        f"{'; '.join(differences)}. Build the model as it was, or use a new "
        "`model_dir`, which can start from this one by `warm_start_from`."
    )
    return ValueError(msg)
