"""Exports with Embedra's own ops, of which the tables can be trained on."""

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from embedra import _ops
from embedra.distribute import job_communicator
from embedra.table import Table, reading_from

from ._signatures import Endpoint
from ._traced import Traced, resources_of


def check_owner(model: Any) -> None:
    """Raises unless a model can own the tables that are exported with it.

    Args:
        model: What is to be exported.

    Raises:
        ValueError: If it is a mere function.
    """
    if isinstance(model, tf.Module | keras.layers.Layer):
        return
    msg = (
        "native_ops=True exports what owns its tables: a Keras model or layer, "
        f"or a tf.Module. Received: {type(model).__name__}."
    )
    raise ValueError(msg)


def export_native(
    model: Any, endpoints: Iterable[Endpoint], folder: str
) -> None:
    """Writes a SavedModel with whole tables.

    Args:
        model: A Keras model or layer, or a module.
        endpoints: The functions that are served.
        folder: The folder to write.

    Raises:
        ValueError: If the functions use tables that the model does not have.
    """
    traced = Traced(model)
    if job_communicator() is None:
        reading: Any = contextlib.nullcontext()
    else:
        # There are no ranks where it is loaded.
        traced.build(model, endpoints)
        reading = reading_from(WholeTables())
    with reading:
        for endpoint in endpoints:
            traced.add(endpoint)
    # As `keras.export.ExportArchive` has them.
    root = traced.root
    root.trainable_variables = list(model.trainable_variables)
    root.non_trainable_variables = list(model.non_trainable_variables)
    root.variables = list(model.variables)
    root.embedra_variables = traced.variables_but(map(_value, model.variables))
    root.embedra_resources = resources_of(model)
    traced.save(folder)


class WholeTables:
    """Reads tables that are whole where the export is loaded.

    It stands in for those that ranks hold together; see
    `embedra.table.StandIn`.
    """

    def read(
        self, tables: Sequence[Table], keys: tf.Tensor, default: Any
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads rows.

        Args:
            tables: The tables that hold one map between them.
            keys: Keys.
            default: What absent keys read as.

        Returns:
            Rows, and which keys are there.
        """
        rows, there = _read(tables[0], keys, default)
        for table in tables[1:]:
            its_rows, here = _read(table, keys, default)
            rows = tf.where(here[..., tf.newaxis], its_rows, rows)
            there |= here
        return rows, there


def _read(
    table: Table, keys: tf.Tensor, default: Any
) -> tuple[tf.Tensor, tf.Tensor]:
    found = _ops.table_lookup(
        [table.resource_handle],
        # No variable takes part: the handle only fills the place.
        [table.resource_handle],
        [keys],
        [table.default_row(default)],
        dims=[table.dim],
        dtype=table.dtype,
        insert=False,
    )
    return found.rows[0], found.found[0]


def _value(variable: Any) -> Any:
    """Returns the variable of TensorFlow in one of Keras."""
    return variable.value if isinstance(variable, keras.Variable) else variable
