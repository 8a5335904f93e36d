"""Lookups of a TF1 graph that is exported: what they become.

A lookup is traced for TensorFlow's own ops as for any exported model, executing
eagerly, and the trace is put into the graph. What it reads is made once more as
variables of the graph, which have the names under which `write_tables` writes
their content.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from embedra.table import Table, reading_from

from ._stock_tables import StockTables
from ._table_files import table_path


_SUFFIX = ".ATTRIBUTES/VARIABLE_VALUE"
_V1: Any = tf.compat.v1

Twins = Callable[[Sequence[Table]], Sequence[Table]]


class GraphTables:
    """Stands in for the tables of a TF1 graph; see `embedra.table.StandIn`.

    Args:
        twins_of: Given tables of the graph, gives eager ones that hold what is
            exported.

    Attributes:
        stock: The eager stand-in, which makes what is written.
        variables: The variables of the graph that rows are read from.
    """

    def __init__(self, twins_of: Twins) -> None:
        self.stock = StockTables(None)
        self.variables: list[Any] = []
        self._twins_of = twins_of
        self._twins: dict[tuple[int, ...], Sequence[Table]] = {}
        # By the eager handle; both are kept.
        self._handles: dict[int, tuple[Any, Any]] = {}

    def read(
        self, tables: Sequence[Table], keys: tf.Tensor, default: Any
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads rows.

        Args:
            tables: The tables that hold one map between them.
            keys: Keys, `int64`, any shape.
            default: What absent keys read as.

        Returns:
            Rows, and which keys are there.
        """
        traced = self._traced(tables, default)
        flat = tf.reshape(keys, (-1,))
        captured = traced.graph.captures
        rows, found = tf.graph_util.import_graph_def(
            traced.graph.as_graph_def(),
            input_map={
                traced.inputs[0].name: flat,
                **{inner.name: self._handle(o) for o, inner in captured},
            },
            return_elements=[output.name for output in traced.outputs],
            name="embedra_lookup",
        )
        shape = tf.concat([tf.shape(keys), [tables[0].dim]], axis=0)
        rows = tf.reshape(rows, shape)
        rows.set_shape(keys.shape.concatenate([tables[0].dim]))
        return rows, tf.reshape(found, tf.shape(keys))

    def _traced(self, tables: Sequence[Table], default: Any) -> Any:
        if tf.is_tensor(default):
            static = tf.get_static_value(default)
            default = default if static is None else np.asarray(static)
        identity = tuple(id(table) for table in tables)

        def read(keys: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return self.stock.read(self._twins[identity], keys, default)

        with tf.__internal__.eager_context.eager_mode():
            if identity not in self._twins:
                self._twins[identity] = self._twins_of(tables)
            spec = tf.TensorSpec((None,), tf.int64)
            function = tf.function(read, autograph=False)
            with reading_from(self.stock):
                return function.get_concrete_function(spec)

    def _handle(self, outer: Any) -> Any:
        """Returns the handle in the graph of what the trace reads."""
        if id(outer) not in self._handles:
            # At the top of the graph, wherever the lookup is.
            with (
                _V1.name_scope(None),
                tf.control_dependencies(None),
                tf.init_scope(),
            ):
                made = self._made(outer)
            self._handles[id(outer)] = (outer, made)
        return self._handles[id(outer)][1]

    def _made(self, outer: Any) -> Any:
        if outer.dtype != tf.resource:
            return tf.constant(outer.numpy())
        for i, table in enumerate(self.stock.made):
            parts = tf.train.TrackableView(table).children(table)
            for name, part in parts.items():
                if getattr(part, "handle", None) is outer:
                    path = f"{table_path(i)}/{name}/{_SUFFIX}"
                    return self._variable(part, path)
        msg = f"A lookup reads {outer!r}, which is no part of a table."
        raise AssertionError(msg)

    def _variable(self, part: Any, name: str) -> Any:
        dims = [0 if dim is None else dim for dim in part.shape]
        variable = _V1.Variable(
            tf.zeros(dims, part.dtype),
            name=name,
            shape=part.shape,
            validate_shape=False,
            trainable=False,
            collections=[],
            use_resource=True,
        )
        self.variables.append(variable)
        return variable.handle
