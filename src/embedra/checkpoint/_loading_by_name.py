"""Puts the values of a checkpoint into objects by the names of variables."""

import functools
import logging
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from embedra import table as table_lib

from ._leaves import (
    ABSENT,
    assign,
    group_of,
    is_table,
    is_within,
    leaves,
    name_of,
    other_shape,
    reached,
    table_problem,
)
from ._loading import LoadReport
from ._named_values import NamedValues
from ._saved_objects import plain_name
from ._saved_tables import SavedTables


_log = logging.getLogger(__name__)


def load_by_name(
    target: Any,
    *,
    report: LoadReport,
    scope: str | None = None,
    strict: bool = False,
    without: tuple[str, ...] = (),
) -> LoadReport:
    """Loads from a checkpoint of `tf.compat.v1.train.Saver`.

    A variable is found by its name, also without or with the name of `target`
    before it; a table by its own. What was split into parts `/part_0` and so on
    is put together. The global step and slots of optimizers are left alone.

    Args:
        target: The object.
        report: Names the checkpoint, and says afterwards what was found.
        scope: Load only what has a name that begins with this, "/" after it.
        strict: Whether to raise, before anything is changed, if a value is
            missing, of another shape, or has no place.
        without: Attributes of `target` that are left alone.

    Returns:
        The report.

    Raises:
        MismatchError: If `strict` and the checkpoint does not fit.
    """
    values = NamedValues(SavedTables(report.path))
    report.pending = False
    left_alone = reached(target, without)
    unused = values.names()
    loads: list[Callable[[], None]] = []
    for leaf in leaves(target):
        name = name_of(leaf)
        if id(leaf) in left_alone or not is_within(name, scope, target):
            continue
        kind = "table" if is_table(leaf) else "variable"
        found = values.find(_names(name, target), kind)
        if found is None:
            report.skipped[name] = ABSENT
            continue
        unused.discard(found)
        problem = _problem(values, found, leaf, report.path)
        if problem:
            report.skipped[name] = problem
            continue
        report.add(leaf)
        loads.append(functools.partial(_load, values, found, leaf))
    if scope is None:
        report.unused = sorted(unused)
    if strict:
        report.check(scope)
    with tf.init_scope():
        for load in loads:
            load()
    _log.info("%s", report)
    return report


def _names(name: str, target: Any) -> list[str]:
    """Lists the names that a variable may have had."""
    owner = getattr(target, "name", "")
    own = name.removeprefix(f"{owner}/")
    return [name, own, f"{owner}/{own}", f"{plain_name(owner)}/{own}"]


def _problem(values: NamedValues, found: str, leaf: Any, path: str) -> str:
    """Says what hinders that a value is loaded, if anything does."""
    if is_table(leaf):
        return table_problem(leaf, values.tables[found].header, path)
    wanted = tuple(leaf.shape)
    shape = values.shape(found, wanted)
    return "" if shape == wanted else other_shape(wanted, shape)


def _load(values: NamedValues, found: str, leaf: Any) -> None:
    if not is_table(leaf):
        assign(leaf, values.value(found, tuple(leaf.shape)))
        return
    group = group_of(leaf)
    pending = (tf.zeros(0, tf.int64), tf.zeros((0, group.first.dim)))
    table_lib.replace_state(
        group,
        values.tables[found].header,
        functools.partial(values.chunks, found),
        pending,
    )
