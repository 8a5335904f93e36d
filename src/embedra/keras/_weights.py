"""Loading a model's weights from checkpoints of TensorFlow."""

from typing import Any, NamedTuple

import tensorflow as tf

from embedra._checks import checked_path
from embedra.checkpoint import (
    LoadReport,
    SavedObjects,
    has_objects,
    load,
    load_by_name,
)

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


def is_keras_file(path: Any) -> bool:
    """Whether a path is one of a file of Keras.

    Args:
        path: The path.

    Raises:
        TypeError: If it is none.
    """
    path = checked_path("filepath", path)
    return path.endswith(_KERAS_ENDINGS) and not tf.io.gfile.isdir(path)


def load_now(model: Any, pending: PendingWeights) -> None:
    """Loads weights into a model that is built.

    Args:
        model: The model.
        pending: What to load.
    """
    report = pending.report
    options: dict[str, Any] = {
        "scope": pending.scope or None,
        "strict": pending.strict,
        "without": ("optimizer", "save_counter"),
        "report": report,
    }
    if has_objects(report.path):
        saved = SavedObjects(report.path)
        # Without the name, the checkpoint is that of the model itself.
        node = saved.children(0).get("model", 0)
        load(saved, node, model, by_name=True, **options)
    else:
        load_by_name(model, **options)
    with tf.init_scope():
        for table in tables_of(model):
            if table.name in report.tables:
                # They would not fit an optimizer that begins anew.
                table.set_slots([])
