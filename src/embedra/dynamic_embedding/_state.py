"""The state of a variable in checkpoints of both kinds.

`tf.train.Checkpoint` writes it in chunks, by a registered saver. A
`tf.compat.v1.train.Saver` writes tensors by name, so there each column is one
tensor. Both hold the records of all devices together: what was saved with any
number of devices is restored into any other.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import tensorflow as tf

from embedra import _ops, table as table_lib

from ._expiry import Expiry
from ._graph_gather import gathered
from ._graph_header import (
    FIELDS,
    SavedShape,
    header_tensors,
    set_layout,
    to_header,
)
from ._shards import ShardedTables
from ._sharing import current_graph


# More records than a table can hold: an export in one piece.
EVERYTHING = 2**32

# What a v1 checkpoint holds of a variable, under `<name>/`.
COLUMNS = ("keys", "rows", "slots", "frequencies", "last_steps")
KEY_DTYPE = "key_dtype"

# States in use, by the first of their tables: variables that share tables
# share their state.
_BY_TABLE: WeakValueDictionary[int, "VariableState"] = WeakValueDictionary()


class VariableState(tf.__internal__.tracking.Trackable):
    """Saves and restores the tables of a variable as one.

    Args:
        key: Name in checkpoints of `tf.compat.v1.train.Saver`.
        shards: The tables.
    """

    def __init__(self, key: str, shards: ShardedTables) -> None:
        self.key = key
        self.shards = shards
        # Removes records as they are saved, unless None.
        self.expiry: Expiry | None = None
        self.is_in_graph = current_graph() is not None

    @property
    def name(self) -> str:
        """Name of an operation, by which meta graphs hold the state."""
        if not self.is_in_graph:
            return self.key
        return str(self.tables[0].resource_handle.op.name)

    @property
    def tables(self) -> Sequence[table_lib.Table]:
        """The tables."""
        return self.shards.tables

    @property
    def group(self) -> table_lib.TableGroup:
        """The tables, with what splits keys over them."""
        if len(self.tables) == 1:
            return table_lib.TableGroup(self.tables)
        return table_lib.TableGroup(self.tables, self.shards.shards_of)

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        """Names the state for a `tf.compat.v1.train.Saver`."""
        factories = tf.__internal__.tracking.saveable_objects_from_trackable(
            self
        )
        (factory,) = factories.values()

        def saveable(name: str = self.key) -> Any:
            return factory(f"{name}/")

        return {self.key: saveable}

    def _serialize_to_tensors(self) -> dict[str, tf.Tensor]:
        """Returns the state as tensors of a TF1 graph."""
        first = self.tables[0]
        header = dict(zip(FIELDS, header_tensors(first), strict=True))
        parts = [export_all(table) for table in self.tables]
        if self.expiry is not None:
            pairs = zip(self.tables, parts, strict=True)
            parts = [self.expiry.kept(*pair) for pair in pairs]
        steps = [_ops.table_step(t.resource_handle) for t in self.tables]
        here = table_lib.Records(
            *(
                tf.concat([getattr(part, name) for part in parts], axis=0)
                for name in COLUMNS
            )
        )
        records, step = gathered(
            here, tf.reduce_max(tf.stack(steps)), self.group.communicator
        )
        return {
            **records._asdict(),
            **header,
            "step": step,
            KEY_DTYPE: tf.constant(first.key_dtype),
        }

    def _restore_from_tensors(self, tensors: dict[str, tf.Tensor]) -> Any:
        """Returns the operation that replaces the state, or on failure none.

        Args:
            tensors: As `_serialize_to_tensors` gives them.
        """
        if current_graph() is None:
            return self._restore_eagerly(tensors)
        with tf.control_dependencies(_checks(self, tensors)):
            columns = [tf.identity(tensors[name]) for name in COLUMNS]
            columns = self.group.own(columns[0], columns)
        header = [tensors[name] for name in FIELDS]
        # Nothing is emptied before everything was read and checked.
        with tf.control_dependencies(columns):
            ready = [set_layout(table, header) for table in self.tables]
        with tf.control_dependencies(ready):
            imported = import_all(self.group, columns)
        bound = self.tables[0].bound
        if not bound.max_capacity:
            return imported
        with tf.control_dependencies([imported]):
            return _say_what_was_dropped(self, columns[0], bound.eviction)

    def _restore_eagerly(self, tensors: dict[str, tf.Tensor]) -> None:
        """Restores what a TF1 graph saved, in place of what is there."""
        saved = SavedShape(
            self.key,
            dim=tensors["rows"].shape[-1],
            dtype=tensors["rows"].dtype.name,
            key_dtype=tensors[KEY_DTYPE].numpy().decode(),
        )
        header = to_header(saved, [tensors[name].numpy() for name in FIELDS])
        table_lib.check_fits(self.tables[0], header, "the checkpoint")
        records = table_lib.Records(*(tensors[name] for name in COLUMNS))
        pending = (tf.zeros(0, tf.int64), tf.zeros((0, header.dim)))
        table_lib.replace_state(
            self.group, header, lambda: iter([records]), pending
        )


def state_of(variable: Any, unique_name: str) -> VariableState:
    """Returns the state of a new variable.

    Args:
        variable: The variable, with its tables.
        unique_name: Its name in the TF1 graph that it is made in.

    Returns:
        The same for variables that share tables.
    """
    table = variable.tables[0]
    found = _BY_TABLE.get(id(table))
    if found is None:
        found = VariableState(unique_name, variable.shards)
        _BY_TABLE[id(table)] = found
        graph = current_graph()
        if graph is not None and variable.checkpoint:
            key = tf.compat.v1.GraphKeys.SAVEABLE_OBJECTS
            graph.add_to_collection(key, found)
    return found


def export_all(table: table_lib.Table) -> _ops.TableExport:
    """Reads all records of a table in one piece.

    Args:
        table: The table.
    """
    return _ops.table_export(
        table.resource_handle,
        tf.constant(0, tf.int64),
        tf.constant(EVERYTHING, tf.int64),
        dtype=table.dtype,
        dim=table.dim,
    )


def import_all(
    group: table_lib.TableGroup, columns: Sequence[tf.Tensor]
) -> tf.Operation:
    """Adds records in a TF1 graph, each to its table.

    Args:
        group: The tables.
        columns: The columns of whole records.

    Returns:
        The operation to run.
    """
    imports = []
    parts = group.parts(columns[0], columns)
    for table, part in zip(group.tables, parts, strict=True):
        records = table_lib.Records(*part)
        rows = tf.ensure_shape(records.rows, (None, table.dim))
        imports.append(table.import_records(records._replace(rows=rows)))
    return tf.group(*imports)


def _say_what_was_dropped(
    state: VariableState, keys: tf.Tensor, eviction: str
) -> tf.Operation:
    """Returns an operation that warns if a restored state was too large."""
    # An op each: the tables may be on different servers.
    size = tf.add_n([table.size() for table in state.tables])
    dropped = tf.size(keys, tf.int64) - size

    def say() -> tf.Operation:
        return tf.print(
            f"WARNING: table {state.key!r}: the saved state holds",
            dropped,
            "records more than the table's max_capacity; those were dropped "
            f"by {eviction}.",
        )

    return tf.cond(dropped > 0, say, tf.no_op)


def _checks(
    state: VariableState, tensors: dict[str, tf.Tensor]
) -> list[tf.Operation]:
    """Returns operations that fail unless a restored state fits."""
    table = state.tables[0]
    rows = tensors["rows"]
    count = tf.size(tensors["keys"])
    slot_width = tf.reduce_sum(tensors["slot_widths"])
    damaged = f"The saved state of table {state.key!r} is damaged: "
    return [
        tf.debugging.Assert(
            tf.equal(tf.rank(rows), 2),
            [
                damaged + "its rows must have rank 2. Found shape:",
                tf.shape(rows),
            ],
        ),
        _must_equal(state, "dim", tf.shape(rows)[-1], table.dim),
        _must_equal(state, "key_dtype", tensors[KEY_DTYPE], table.key_dtype),
        *(
            tf.debugging.Assert(
                tf.equal(tf.shape(tensors[name])[0], count),
                [
                    f"{damaged}column {name!r} must have as many rows as there "
                    "are keys. Rows and keys:",
                    tf.shape(tensors[name])[0],
                    count,
                ],
            )
            for name in COLUMNS[1:]
        ),
        tf.debugging.Assert(
            tf.equal(tf.shape(tensors["slots"], tf.int64)[-1], slot_width),
            [f"{damaged}its slots must have width", slot_width],
        ),
    ]


def _must_equal(
    state: VariableState, what: str, saved: tf.Tensor, wanted: Any
) -> tf.Operation:
    return tf.debugging.Assert(
        tf.equal(saved, wanted),
        [
            f"The state of table {state.key!r} in the checkpoint does not fit "
            f"this one. {what} in the table: {wanted!r}. {what} in the file:",
            saved,
            "The table was left as it was: build it as it was when the state "
            "was saved.",
        ],
    )


def _save_groups(states: dict[str, VariableState], prefix: Any) -> Any:
    for state in states.values():
        if state.expiry is not None:
            state.expiry.evict(state.tables)
    return _by_group(table_lib.save_groups)(states, prefix)


def _by_group(
    function: Callable[..., Any],
) -> Callable[[dict[str, Any], Any], Any]:
    def call(states: dict[str, VariableState], prefix: Any) -> Any:
        if current_graph() is not None:
            msg = (
                "tf.train.Checkpoint saves tables only when executing eagerly. "
                "In a TF1 graph, use tf.compat.v1.train.Saver."
            )
            raise NotImplementedError(msg)
        groups = {path: state.group for path, state in states.items()}
        return function(groups, prefix)

    return call


table_lib.register_saver(
    VariableState,
    _save_groups,
    _by_group(table_lib.restore_groups),
)
