"""What a checkpoint holds of a graph that is exported, and why it may not."""

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from embedra.checkpoint import SavedTables, read_table
from embedra.table import Table

from ._run_folder import check_whole, damaged, reading
from ._saved_states import SavedState, saved_states


_V1: Any = tf.compat.v1
_PART = re.compile(r"/part_\d+$")

RESTORE_ERRORS = (
    tf.errors.NotFoundError,
    tf.errors.InvalidArgumentError,
    tf.errors.DataLossError,
    tf.errors.OutOfRangeError,
)
"""What TensorFlow raises when a checkpoint is not one of the graph."""


class CheckpointSource:
    """Gives `embedra.saved_model.export_graph` what a checkpoint holds.

    Args:
        checkpoint: The checkpoint.
        saver: What restores variables of the graph; None for a new saver.
        config: A `ConfigProto` of sessions.
    """

    def __init__(
        self, checkpoint: str, saver: Any = None, config: Any = None
    ) -> None:
        check_whole(checkpoint)
        self.checkpoint = checkpoint
        self.saver = saver
        self._config = config
        with reading(checkpoint):
            self._saved = SavedTables(checkpoint)

    def twins_of(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Returns eager tables with what the checkpoint holds of others.

        Args:
            tables: Tables of the graph.

        Raises:
            ValueError: If the checkpoint does not hold them.
        """
        first = tables[0]
        keys = [s.key for s in saved_states() if s.tables[0] is first]
        if not keys or keys[0] not in self._saved.tables:
            msg = (
                f"Table {first.name!r} is not in checkpoint "
                f"{self.checkpoint!r}, from which the model is exported. "
                "Tables of the model must be made as they were in training, "
                "with checkpoint=True."
            )
            raise ValueError(msg)
        with reading(self.checkpoint):
            return [read_table(self._saved, keys[0])]

    def values_of(self, variables: Sequence[Any]) -> Sequence[Any]:
        """Returns what the checkpoint holds of variables of the graph.

        Args:
            variables: The variables.

        Raises:
            ValueError: If it does not hold them.
        """
        if not variables:
            return []
        saver = self.saver or _V1.train.Saver(list(variables))
        with _V1.Session(config=self._config) as session:
            try:
                saver.restore(session, self.checkpoint)
            except RESTORE_ERRORS as error:
                raise explained(error, self.checkpoint) from error
            values: Sequence[Any] = session.run(list(variables))
            return values


def explained(error: Exception, path: str) -> Exception:
    """Explains why a checkpoint was not restored, as far as it shows.

    To be called in the graph that it does not fit.

    Args:
        error: What TensorFlow says.
        path: The checkpoint.

    Returns:
        A better error, or the same.
    """
    if isinstance(error, tf.errors.DataLossError | tf.errors.OutOfRangeError):
        return damaged(path, error)
    reader = tf.train.load_checkpoint(path)
    saved = reader.get_variable_to_shape_map()
    shapes = {
        _PART.sub("", v.op.name): None
        if _PART.search(v.op.name)
        else v.shape.as_list()
        for v in _V1.global_variables()
    }
    shapes |= {f"{state.key}/keys": None for state in saved_states()}
    widths = {
        f"{state.key}/rows": [None, state.tables[0].dim]
        for state in saved_states()
    }
    missing = [name for name in shapes if name not in saved]
    reshaped = [
        f"{name} has shape {saved[name]} there and {shape} here"
        for name, shape in (shapes | widths).items()
        if name in saved
        and not tf.TensorShape(shape).is_compatible_with(saved[name])
    ]
    differences = [f"{name} is not in it" for name in missing] + reshaped
    differences += [
        one for state in saved_states() for one in _dtypes(state, reader)
    ]
    if not differences:
        return error
    msg = (
        f"Checkpoint {path!r} is not one of this model: "
        f"{'; '.join(differences)}. Build the model as it was, or use a new "
        "folder; `warm_start_from` of an estimator, or "
        "`embedra.dynamic_embedding.WarmStartHook`, start that from another "
        "model's checkpoint."
    )
    return ValueError(msg)


def _dtypes(state: SavedState, reader: Any) -> list[str]:
    """Returns in which dtypes a table and the saved one differ."""
    table, differing = state.tables[0], []
    saved: dict[str, Any] = reader.get_variable_to_dtype_map()
    rows, keys = f"{state.key}/rows", f"{state.key}/key_dtype"
    if rows in saved and saved[rows].name != table.dtype:
        differing.append(
            f"{rows} has dtype {saved[rows].name} there and {table.dtype} here"
        )
    if keys in saved:
        there = reader.get_tensor(keys).decode()
        if there != table.key_dtype:
            differing.append(
                f"{state.key} has keys of dtype {there} there and "
                f"{table.key_dtype} here"
            )
    return differing
