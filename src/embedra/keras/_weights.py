"""Loading a model's weights from checkpoints of `tf.train.Checkpoint`."""

import os
from typing import Any, NamedTuple

import tensorflow as tf

from embedra.checkpoint import LoadReport, SavedObjects, load

from ._summary import tables_of


_KERAS_ENDINGS = (".h5", ".hdf5", ".keras", ".weights.json")


class PendingWeights(NamedTuple):
    """Weights that are to be loaded.

    Attributes:
        report: Says from where, and afterwards what was found.
        scope: Beginning of the names to load; None for all.
        strict: Whether everything must be found.
    """

    report: LoadReport
    scope: str | None
    strict: bool


def is_keras_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path is one of a file of Keras.

    Args:
        path: The path.
    """
    path = os.fspath(path)
    return path.endswith(_KERAS_ENDINGS) and not tf.io.gfile.isdir(path)


def load_now(model: Any, pending: PendingWeights) -> None:
    """Loads weights into a model that is built.

    Args:
        model: The model.
        pending: What to load.
    """
    saved = SavedObjects(pending.report.path)
    # Without the name, the checkpoint is that of the model itself.
    node = saved.children(0).get("model", 0)
    load(
        saved,
        node,
        model,
        scope=pending.scope,
        strict=pending.strict,
        without=("optimizer", "save_counter"),
        report=pending.report,
    )
    with tf.init_scope():
        for table in tables_of(model):
            if table.name in pending.report.tables:
                # They would not fit an optimizer that begins anew.
                table.set_slots([])
