"""Puts the values of a checkpoint into objects, and says what was found."""

import logging
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

from embedra import table as table_lib

from ._leaves import (
    ABSENT,
    assign,
    is_table,
    is_within,
    leaves,
    name_of,
    other_shape,
    reached,
    table_problem,
)
from ._matching_by_name import match_by_name
from ._saved_objects import Pair, SavedObjects


_log = logging.getLogger(__name__)


class MismatchError(ValueError):
    """A checkpoint is not one of these objects."""


@dataclass
class LoadReport:
    """What was loaded from a checkpoint, and what was not.

    Attributes:
        path: Prefix of the checkpoint.
        variables: Names of the variables loaded.
        tables: Names of the tables loaded.
        skipped: What has no value in the checkpoint, by name: why.
        unused: Names in the checkpoint that nothing here has a place for.
        pending: Whether loading waits until the model is built.
    """

    path: str
    variables: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    pending: bool = False

    def add(self, leaf: Any) -> None:
        """Notes that a value is loaded.

        Args:
            leaf: What takes it.
        """
        (self.tables if is_table(leaf) else self.variables).append(
            name_of(leaf)
        )

    def check(self, scope: str | None) -> None:
        """Raises unless everything was found.

        Args:
            scope: What names were to begin with; None for all.

        Raises:
            MismatchError: If something was not.
        """
        if self.skipped or self.unused:
            raise MismatchError(str(self))
        if scope is not None and not self.variables and not self.tables:
            msg = f"{self}: there is nothing in scope {scope!r}"
            raise MismatchError(msg)

    def __str__(self) -> str:
        if self.pending:
            return f"{self.path}: to be loaded when the model is built"
        text = (
            f"{self.path}: {len(self.variables)} variables and "
            f"{len(self.tables)} tables loaded"
        )
        if self.skipped:
            listed = "; ".join(f"{n}: {why}" for n, why in self.skipped.items())
            text += f"; {len(self.skipped)} skipped: {listed}"
        if self.unused:
            text += f"; {len(self.unused)} unused: {', '.join(self.unused)}"
        return text


@dataclass
class _Plan:
    """What to assign; nothing is changed before all of it is known."""

    values: list[tuple[Any, str]] = field(default_factory=list)
    states: list[tuple[Any, Any, str]] = field(default_factory=list)


@dataclass
class _Matches:
    """What is the state of which, and why the rest has none."""

    leaves: list[Any]
    pairs: dict[int, Pair]
    used: set[int]
    reasons: dict[str, str] = field(default_factory=dict)


def load(
    saved: SavedObjects,
    node: int,
    target: Any,
    *,
    scope: str | None = None,
    strict: bool = False,
    without: tuple[str, ...] = (),
    by_name: bool = False,
    report: LoadReport | None = None,
) -> LoadReport:
    """Loads the state of an object, and of all that it refers to.

    Args:
        saved: The checkpoint.
        node: Number of the object's state.
        target: The object.
        scope: Load only what has a name that begins with this, "/" after it.
        strict: Whether to raise, before anything is changed, if a value is
            missing, of another shape, or has no place.
        without: Attributes of `target` that are left alone.
        by_name: Whether what attributes do not lead to is looked for by its
            name.
        report: Where to report; a new one by default.

    Returns:
        The report.

    Raises:
        MismatchError: If `strict` and the checkpoint does not fit.
    """
    report = report or LoadReport(saved.prefix)
    report.pending = False
    found = _matches(saved, node, target, without, by_name=by_name)
    plan = _Plan()
    for leaf in found.leaves:
        name = name_of(leaf)
        if not is_within(name, scope, target):
            continue
        pair = found.pairs.get(id(leaf))
        if pair is None:
            why = found.reasons.get(name, ABSENT)
        else:
            why = _add(plan, saved, pair)
        if why:
            report.skipped[name] = why
        else:
            report.add(leaf)
    if scope is None:
        report.unused = _unused(saved, node, found.used, without)
    if strict:
        report.check(scope)
    for variable, key in plan.values:
        assign(variable, saved.reader.get_tensor(key))
    for restore, leaf, name in plan.states:
        with tf.init_scope():
            restore({name: leaf}, tf.constant(saved.prefix))
    _log.info("%s", report)
    return report


def _matches(
    saved: SavedObjects,
    node: int,
    target: Any,
    without: tuple[str, ...],
    *,
    by_name: bool,
) -> _Matches:
    left_alone = reached(target, without)
    pairs = [
        pair
        for pair in saved.match(node, target, without)
        if id(pair.live) not in left_alone
    ]
    found = _Matches(
        [leaf for leaf in leaves(target) if id(leaf) not in left_alone],
        {id(pair.live): pair for pair in pairs},
        {pair.node for pair in pairs},
    )
    if not by_name:
        return found
    missed = [leaf for leaf in found.leaves if id(leaf) not in found.pairs]
    names = saved.names(node, without)
    free = {one: names[one] for one in names if one not in found.used}
    named, found.reasons = match_by_name(saved, free, missed, target)
    found.pairs |= {id(pair.live): pair for pair in named}
    found.used |= {pair.node for pair in named}
    return found


def _add(plan: _Plan, saved: SavedObjects, pair: Pair) -> str:
    """Adds a pair to the plan; returns why not, if not."""
    saver = saved.saver(pair.node)
    if saver is not None:
        restore = table_lib.restore_of(saver[0], pair.live)
        if restore is None:
            return f"the checkpoint has a {saver[0]} in its place"
        problem = _table_problem(saved, saver[1], pair.live)
        if not problem:
            plan.states.append((restore, pair.live, saver[1]))
        return problem
    key = saved.tensor_key(pair.node)
    if key is None or not isinstance(pair.live, tf.Variable | keras.Variable):
        return "the checkpoint has something else in its place"
    shape, wanted = tuple(saved.shapes[key]), tuple(pair.live.shape)
    if shape != wanted:
        return other_shape(wanted, shape)
    plan.values.append((pair.live, key))
    return ""


def _table_problem(saved: SavedObjects, name: str, table: Any) -> str:
    """Says what hinders that a table is restored, if anything does."""
    key = f"{name}/header"
    if not saved.reader.has_tensor(key):
        return ABSENT
    text = saved.reader.get_tensor(key)
    try:
        header = table_lib.TableHeader.from_json(text)
    except ValueError as error:
        return str(error)
    return table_problem(table, header, saved.prefix)


def _unused(
    saved: SavedObjects, node: int, used: set[int], without: tuple[str, ...]
) -> list[str]:
    known = saved.names(node, without)
    names = []
    for leaf in saved.leaves(node, without):
        if leaf in used:
            continue
        saver = saved.saver(leaf)
        key = saved.tensor_key(leaf)
        if saver is None and key and 0 in saved.shapes[key]:
            continue
        names.append(known.get(leaf) or (saver[1] if saver else str(key)))
    return sorted(names)
