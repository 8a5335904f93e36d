"""warm_start: variables that begin with what an earlier model learnt."""

import dataclasses
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from embedra import table as table_lib
from embedra.checkpoint import SavedTable, SavedTables, slot_columns

from ._graph_header import header_constants, set_layout
from ._selection import Selection, dense_name
from ._sharing import current_graph
from ._state import COLUMNS, VariableState, import_all


_LOGGER = logging.getLogger(__name__)


class WarmStart(NamedTuple):
    """What a warm start does.

    Attributes:
        operation: What does it, in a TF1 graph; None elsewhere.
        restored: Names of variables and slots that are restored.
        skipped: Names of those that are not, and why.
    """

    operation: Any
    restored: list[str]
    skipped: dict[str, str]


def warm_start(
    ckpt_to_initialize_from: str,
    vars_to_warm_start: Any = ".*",
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> Any:
    """Restores variables from the checkpoint of another model, as far as asked.

    What was restored and what was not is logged; variables that the checkpoint
    lacks stay as they are.

    Args:
        ckpt_to_initialize_from: A checkpoint of `tf.compat.v1.train.Saver` or
            `tf.train.Checkpoint`, or a folder of which the latest is taken.
        vars_to_warm_start: Which variables: a regular expression that the
            beginning of names must match, for trainable variables and rows of
            tables, without slots of optimizers; a list of regular expressions,
            for all global variables and for tables with those of their slots
            that match by the name "<table>/<slot>"; or a list of variables,
            which come with all their slots. When executing eagerly names are
            known only of what `de.get_variable` made.
        var_name_to_prev_var_name: Names in the checkpoint of variables that
            have another name now.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.

    Raises:
        FileNotFoundError: If there is no checkpoint.
        ValueError: If nothing is restored, or a width or shape differs.
    """
    started = start(
        ckpt_to_initialize_from, vars_to_warm_start, var_name_to_prev_var_name
    )
    return started.operation


def start(
    checkpoint: str, selected: Any, previous: Mapping[str, str] | None
) -> WarmStart:
    """Does what `warm_start` says, and tells what it did.

    Args:
        checkpoint: As `ckpt_to_initialize_from`.
        selected: As `vars_to_warm_start`.
        previous: As `var_name_to_prev_var_name`.

    Raises:
        ValueError: If nothing is restored, or a width or shape differs.
    """
    saved = SavedTables(checkpoint)
    selection = Selection(selected)
    names = dict(previous or {})
    result = WarmStart(None, [], {})
    tables = list(_chosen_tables(selection, saved, names, result))
    dense = list(_chosen_dense(selection, saved, names, result))
    if not tables and not dense:
        msg = (
            f"Nothing of {selected!r} is in checkpoint {saved.path}. It holds "
            f"the tables {sorted(saved.tables)}. Skipped: {result.skipped}."
        )
        raise ValueError(msg)
    made = [variable.assign(_one(saved, name)) for variable, name in dense]
    made += [_restore(*chosen, saved) for chosen in tables]
    for name, reason in result.skipped.items():
        _LOGGER.warning("Warm start left out %s: %s", name, reason)
    _LOGGER.info("Warm start from %s: %s", saved.path, result.restored)
    if current_graph() is None:
        return result
    return result._replace(operation=tf.group(*made))


class _Chosen(NamedTuple):
    state: VariableState
    table: SavedTable
    slots: tuple[table_lib.Slot, ...]


def _chosen_tables(
    selection: Selection,
    saved: SavedTables,
    names: Mapping[str, str],
    result: WarmStart,
) -> Iterator[_Chosen]:
    for state in selection.states():
        table = saved.tables.get(names.get(state.key, state.key))
        if table is None:
            result.skipped[state.key] = "the checkpoint has no such table"
            continue
        source = f"checkpoint {saved.path}"
        table_lib.check_fits(state.tables[0], table.header, source)
        result.restored.append(state.key)
        slots = []
        for slot in table.header.slots:
            slot_name = f"{state.key}/{slot.name}"
            if selection.has_slot(state, slot):
                slots.append(slot)
                result.restored.append(slot_name)
            else:
                result.skipped[slot_name] = "the slot was not asked for"
        yield _Chosen(state, table, tuple(slots))


def _chosen_dense(
    selection: Selection,
    saved: SavedTables,
    names: Mapping[str, str],
    result: WarmStart,
) -> Iterator[tuple[Any, str]]:
    for variable in selection.dense():
        name = dense_name(variable)
        tensor = saved.dense_name(names.get(name, name))
        if tensor is None:
            result.skipped[name] = "the checkpoint has no such variable"
            continue
        if not variable.shape.is_compatible_with(saved.shapes[tensor]):
            msg = (
                f"Variable {name!r} has shape {tuple(variable.shape)}, but "
                f"{tensor!r} in checkpoint {saved.path} has shape "
                f"{tuple(saved.shapes[tensor])}. Leave it out of "
                "`vars_to_warm_start`."
            )
            raise ValueError(msg)
        result.restored.append(name)
        yield variable, tensor


def _one(saved: SavedTables, name: str) -> tf.Tensor:
    return saved.read([name])[0]


def _restore(
    state: VariableState,
    table: SavedTable,
    slots: Sequence[table_lib.Slot],
    saved: SavedTables,
) -> Any:
    """Replaces tables by what a checkpoint has of them.

    Seed and initializer stay: rows that are new start as in any new table.
    """
    own = state.tables[0]
    header = dataclasses.replace(
        table.header,
        slots=tuple(slots),
        # Without slots no step has been made.
        step=table.header.step if slots else 0,
        stream_name=own.stream_name,
        seed=own.seed,
        initializer=own.initializer.kind,
        parameters=own.initializer.parameters,
        scalars=table.header.scalars if slots else {},
    )
    wanted = np.array(slot_columns(table.header, slots), np.int32)

    def read(chunk: Mapping[str, str]) -> table_lib.Records:
        columns = saved.read([chunk[name] for name in COLUMNS])
        records = table_lib.Records(*columns)
        steps = records.last_steps
        return records._replace(
            slots=tf.gather(records.slots, wanted, axis=1),
            last_steps=steps if slots else tf.zeros_like(steps),
        )

    if current_graph() is None:
        pending = (tf.zeros(0, tf.int64), tf.zeros((0, own.dim)))
        table_lib.replace_state(
            state.group, header, lambda: map(read, table.chunks), pending
        )
        return None
    last = tf.group(
        *[set_layout(t, header_constants(header)) for t in state.tables]
    )
    for chunk in table.chunks:
        with tf.control_dependencies([last]):
            records = read(chunk)
            own_part = state.group.own(records.keys, records)
            last = import_all(state.group, own_part)
    return last


class WarmStartHook(tf.compat.v1.train.SessionRunHook):
    """Warm-starts at the beginning of training with a monitored session.

    A session that goes on with a run's own checkpoint, which shows in its
    global step, is left as it is. Of several workers only the chief shall
    have the hook.

    Args:
        ckpt_to_initialize_from: See `de.warm_start`.
        vars_to_warm_start: See `de.warm_start`.
        var_name_to_prev_var_name: See `de.warm_start`.

    Attributes:
        restored: Names of variables and slots that are restored.
        skipped: Names of those that are not, and why.
    """

    def __init__(
        self,
        ckpt_to_initialize_from: str,
        vars_to_warm_start: Any = ".*",
        var_name_to_prev_var_name: Mapping[str, str] | None = None,
    ) -> None:
        self._arguments = (
            ckpt_to_initialize_from,
            vars_to_warm_start,
            var_name_to_prev_var_name,
        )
        self.restored: list[str] = []
        self.skipped: dict[str, str] = {}
        self._operation: Any = None
        self._global_step: Any = None

    def begin(self) -> None:
        """Adds the operation to the graph."""
        self._operation, self.restored, self.skipped = start(*self._arguments)
        self._global_step = tf.compat.v1.train.get_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the operation, if training has not begun.

        Args:
            session: The session.
            coord: Unused.
        """
        del coord
        step = self._global_step
        if step is not None and session.run(step) > 0:
            _LOGGER.info("No warm start: training goes on.")
            return
        session.run(self._operation)
